"""Rules of a subscription as they travel over its management node."""

from collections.abc import Mapping
from typing import Any

from servicebus_emulator.amqp import Described, Ulong
from servicebus_emulator.broker import Broker, InvalidArgument
from servicebus_emulator.rules import (
    CorrelationFilter,
    FalseFilter,
    Filter,
    Rule,
    RuleError,
    SqlFilter,
    TrueFilter,
)

_RULE = 0x0000_0137_0000_0004
_NO_ACTION = 0x0000_0137_0000_0005
_SQL = 0x0000_0013_7000_0006
_TRUE = 0x0000_0013_7000_0007
_FALSE = 0x0000_0013_7000_0008
_CORRELATION = 0x0000_0013_7000_0009
_SYSTEM = {
    "correlation-id": "correlation_id",
    "message-id": "message_id",
    "to": "to",
    "reply-to": "reply_to",
    "label": "subject",
    "session-id": "session_id",
    "reply-to-session-id": "reply_to_session_id",
    "content-type": "content_type",
}
"""The fields of a correlation filter on the wire, in their order there."""


def add_rule(broker: Broker, entity: str, body: Mapping[str, Any]) -> None:
    topic, subscription = _names(entity)
    rule = _parse(str(body["rule-name"]), body["rule-description"])
    broker.create_rule(topic, subscription, rule)


def remove_rule(broker: Broker, entity: str, body: Mapping[str, Any]) -> None:
    topic, subscription = _names(entity)
    broker.delete_rule(topic, subscription, str(body["rule-name"]))


def listed_rules(broker: Broker, entity: str, skip: int, top: int) -> list[dict[str, object]]:
    topic, subscription = _names(entity)
    rules = broker.rules(topic, subscription)[skip : skip + top]
    return [{"rule-description": _described(rule)} for rule in rules]


def _names(entity: str) -> tuple[str, str]:
    topic, _, subscription = entity.partition("/")
    kind, _, name = subscription.partition("/")
    if kind.lower() != "subscriptions" or not name or "/" in name:
        raise InvalidArgument(f"{entity} is no subscription: only those have rules")
    return topic, name


def _parse(name: str, described: Mapping[str, Any]) -> Rule:
    action = (described.get("sql-rule-action") or {}).get("expression")
    try:
        return Rule(name, _filter(described), action)
    except RuleError as error:
        raise InvalidArgument(str(error)) from error


def _filter(described: Mapping[str, Any]) -> Filter:
    if "sql-filter" in described:
        return SqlFilter(str(described["sql-filter"]["expression"]))
    if "correlation-filter" in described:
        found = described["correlation-filter"]
        system = {ours: found.get(theirs) for theirs, ours in _SYSTEM.items()}
        return CorrelationFilter(dict(found.get("properties") or {}), **system)
    return TrueFilter()


def _described(rule: Rule) -> Described:
    action = Described(Ulong(_NO_ACTION), [])
    return Described(Ulong(_RULE), [_described_filter(rule.filter), action, rule.name])


def _described_filter(found: Filter) -> Described:
    match found:
        case SqlFilter():
            return Described(Ulong(_SQL), [found.expression])
        case CorrelationFilter():
            fields: list[object] = [getattr(found, ours) for ours in _SYSTEM.values()]
            return Described(Ulong(_CORRELATION), [*fields, dict(found.properties)])
        case FalseFilter():
            return Described(Ulong(_FALSE), [])
    return Described(Ulong(_TRUE), [])
