"""A topology as a table, as the configuration of an emulator, and as Bicep."""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import NamedTuple

from lucius_bus.filters import Filter, MatchAll, PropertyFilter
from lucius_bus.topology import SubscriptionSettings, Topology

_NAMESPACE = "sbemulatorns"  # the only name that Microsoft's emulator takes
_BICEP_HEAD = """\
@description('The Service Bus namespace, in the resource group of this deployment.')
param namespaceName string

resource bus 'Microsoft.ServiceBus/namespaces@2021-11-01' existing = {
  name: namespaceName
}
"""
_BICEP_TAIL = """\
var topicNames = flatten(map(groups, g => g.topics))
var placed = map(groups, g => map(g.topics, t => map(g.subscriptions, s => union(s, { topic: t }))))
var subscriptions = flatten(flatten(placed))
var filtered = filter(subscriptions, one => contains(one, 'correlationFilter'))

resource topics 'Microsoft.ServiceBus/namespaces/topics@2021-11-01' = [for name in topicNames: {
  parent: bus
  name: name
  properties: {}
}]

resource topicSubscriptions 'Microsoft.ServiceBus/namespaces/topics/subscriptions@2021-11-01' = \
[for one in subscriptions: {
  name: '${namespaceName}/${one.topic}/${one.name}'
  properties: one.properties
  dependsOn: [
    topics
  ]
}]

// A new subscription has a rule named $Default that lets everything through: these replace it.
resource rules 'Microsoft.ServiceBus/namespaces/topics/subscriptions/rules@2021-11-01' = \
[for one in filtered: {
  name: '${namespaceName}/${one.topic}/${one.name}/$Default'
  properties: {
    filterType: 'CorrelationFilter'
    correlationFilter: any(one).correlationFilter
  }
  dependsOn: [
    topicSubscriptions
  ]
}]
"""


class Row(NamedTuple):
    topic: str
    subscription: str
    filter: str
    lock: str
    deliveries: str
    sessions: str
    ttl: str
    on_expiry: str


def as_rows(topology: Topology) -> list[Row]:
    """One for each subscription, in the order of the topology; a topic without any has one too."""
    rows = []
    for topic, subscriptions in topology.topics.items():
        rows += [_row(topic, one) for one in subscriptions] or [Row(topic, *[""] * 7)]
    return rows


def _row(topic: str, one: SubscriptionSettings) -> Row:
    return Row(
        topic,
        one.name,
        _condition(one.filter),
        iso_duration(one.lock_duration),
        str(one.max_delivery_count),
        "yes" if one.requires_session else "no",
        "" if one.default_ttl is None else iso_duration(one.default_ttl),
        "dead letter" if one.dead_letter_on_expiry else "drop",
    )


def _condition(wanted: Filter) -> str:
    if isinstance(wanted, MatchAll):
        return "everything"
    conditions = _correlation(wanted, "message id", "session id")
    properties = conditions.pop("properties", {})
    assert isinstance(properties, dict)
    pairs = {**conditions, **properties}
    return " and ".join(f"{name} = {value!r}" for name, value in pairs.items())


def as_config_json(topology: Topology) -> str:
    """The file from which Microsoft's emulator, and ours, make their entities."""
    topics = [
        {"Name": name, "Properties": {}, "Subscriptions": [_config(one) for one in subscriptions]}
        for name, subscriptions in topology.topics.items()
    ]
    namespace = {"Name": _NAMESPACE, "Queues": [], "Topics": topics}
    user = {"Namespaces": [namespace], "Logging": {"Type": "File"}}
    return json.dumps({"UserConfig": user}, indent=2) + "\n"


def _config(one: SubscriptionSettings) -> dict[str, object]:
    properties = {name[0].upper() + name[1:]: value for name, value in _properties(one).items()}
    config: dict[str, object] = {"Name": one.name, "Properties": properties}
    if not isinstance(one.filter, MatchAll):
        conditions = _correlation(one.filter, "MessageId", "SessionId")
        if "properties" in conditions:
            conditions["Properties"] = conditions.pop("properties")
        rule = {"FilterType": "Correlation", "CorrelationFilter": conditions}
        config["Rules"] = [{"Name": one.name, "Properties": rule}]
    return config


def as_bicep(topology: Topology) -> str:
    """Topics with the same subscriptions are written once. `ValueError`: a filter that Resource
    Manager cannot hold."""
    groups: dict[str, list[str]] = {}
    for topic, subscriptions in topology.topics.items():
        written = _bicep([_resource(one) for one in subscriptions], "    ")
        groups.setdefault(written, []).append(topic)
    written_groups = "".join(_group(topics, written) for written, topics in groups.items())
    return f"{_BICEP_HEAD}\nvar groups = [\n{written_groups}]\n{_BICEP_TAIL}"


def _group(topics: list[str], subscriptions: str) -> str:
    return f"  {{\n    topics: {_bicep(topics, '    ')}\n    subscriptions: {subscriptions}\n  }}\n"


def _resource(one: SubscriptionSettings) -> dict[str, object]:
    resource: dict[str, object] = {"name": one.name, "properties": _properties(one)}
    if not isinstance(one.filter, MatchAll):
        resource["correlationFilter"] = _correlation(one.filter, "messageId", "sessionId")
        _refuse_numbers(one)
    return resource


def _refuse_numbers(one: SubscriptionSettings) -> None:
    assert isinstance(one.filter, PropertyFilter)
    numbers = [name for name, value in one.filter.properties.items() if not isinstance(value, str)]
    if numbers:
        raise ValueError(
            f"the filter of {one.name} compares {', '.join(numbers)} with a number, and Resource"
            " Manager holds texts only: apply this topology by the administration instead"
        )


def _properties(one: SubscriptionSettings) -> dict[str, object]:
    """As Resource Manager names them; the emulator begins the same names with a capital."""
    properties: dict[str, object] = {
        "lockDuration": iso_duration(one.lock_duration),
        "maxDeliveryCount": one.max_delivery_count,
        "requiresSession": one.requires_session,
        "deadLetteringOnMessageExpiration": one.dead_letter_on_expiry,
    }
    if one.default_ttl is not None:
        properties["defaultMessageTimeToLive"] = iso_duration(one.default_ttl)
    return properties


def _correlation(wanted: Filter, message_id: str, session_id: str) -> dict[str, object]:
    if not isinstance(wanted, PropertyFilter):
        raise TypeError(f"a subscription on Service Bus cannot have the filter {wanted}")
    system = {message_id: wanted.message_id, session_id: wanted.session_id}
    found: dict[str, object] = {name: value for name, value in system.items() if value is not None}
    if wanted.properties:
        found["properties"] = dict(wanted.properties)
    return found


def iso_duration(span: timedelta) -> str:
    minutes, seconds = divmod(span, timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    fraction = f"{seconds.total_seconds():f}".rstrip("0").rstrip(".")
    counts = ((hours, "H"), (minutes, "M"), (fraction, "S"))
    time = "".join(f"{count}{unit}" for count, unit in counts if str(count) != "0")
    date = f"{days}D" if days else ""
    return f"P{date}T{time}" if time else f"P{date or 'T0S'}"


def _bicep(value: object, indent: str) -> str:
    match value:
        case Mapping():
            return "\n".join(["{", *_fields(value, indent + "  "), indent + "}"])
        case list():
            items = (f"{indent}  {_bicep(item, indent + '  ')}" for item in value)
            return "\n".join(["[", *items, indent + "]"])
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
    return _bicep_text(str(value))


def _fields(fields: Mapping[str, object], indent: str) -> Iterator[str]:
    for name, value in fields.items():
        key = name if name.isidentifier() and name.isascii() else _bicep_text(name)
        yield f"{indent}{key}: {_bicep(value, indent)}"


def _bicep_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\${")
    for character, code in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        escaped = escaped.replace(character, code)
    return f"'{escaped}'"
