"""What an existing subscription has otherwise than the topology wants it."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from azure.servicebus.management import (
    CorrelationRuleFilter,
    RuleProperties,
    SqlRuleFilter,
    SubscriptionProperties,
    TopicProperties,
    TrueRuleFilter,
)

from lucius_bus.filters import Filter, MatchAll, PropertyFilter
from lucius_bus.port import Misused
from lucius_bus.topology import Drift, SubscriptionSettings

_NOTHING = "nothing"
_ENDLESS = timedelta(days=10675199)
_SYSTEM = (
    "correlation_id",
    "message_id",
    "to",
    "reply_to",
    "label",
    "session_id",
    "reply_to_session_id",
    "content_type",
)


def topic_drift(entity: str, found: TopicProperties) -> Iterator[Drift]:
    """The outbox may publish a message again: it must not be swallowed as a duplicate of one that
    was delivered and failed."""
    if found.requires_duplicate_detection:
        yield Drift(entity, "duplicate detection", "False", "True")
    yield from _status_drift(entity, found.status)


def settings_drift(
    entity: str, wanted: SubscriptionSettings, found: SubscriptionProperties
) -> Iterator[Drift]:
    pairs = (
        ("lock duration", wanted.lock_duration, _span(found.lock_duration)),
        ("max delivery count", wanted.max_delivery_count, found.max_delivery_count),
        ("sessions", wanted.requires_session, bool(found.requires_session)),
        ("default ttl", wanted.default_ttl, _span(found.default_message_time_to_live)),
        (
            "dead letter on expiry",
            wanted.dead_letter_on_expiry,
            bool(found.dead_lettering_on_message_expiration),
        ),
    )
    for setting, want, have in pairs:
        if want != have:
            yield Drift(entity, setting, str(want), str(have))
    yield from _status_drift(entity, found.status)


def rules_drift(entity: str, wanted: Filter, found: Sequence[RuleProperties]) -> Iterator[Drift]:
    """One rule with the filter that is wanted is right, whatever its name."""
    fitting = [rule for rule in found if is_same_filter(wanted, rule)]
    if not fitting:
        shown = "; ".join(_shown(rule) for rule in found) or _NOTHING
        yield Drift(entity, "filter", filter_text(wanted), shown)
        return
    for rule in found:
        if rule is not fitting[0]:
            yield Drift(entity, "rule", _NOTHING, _shown(rule))


def is_same_filter(wanted: Filter, rule: RuleProperties) -> bool:
    found = rule.filter
    if rule.action is not None:
        return False
    match wanted:
        case MatchAll():
            return _lets_all_through(found)
        case PropertyFilter():
            return isinstance(found, CorrelationRuleFilter) and _conditions(found) == _wanted(
                wanted
            )
    return False


def correlation_of(wanted: PropertyFilter) -> CorrelationRuleFilter:
    return CorrelationRuleFilter(
        message_id=wanted.message_id,
        session_id=wanted.session_id,
        properties=dict(wanted.properties),
    )


def filter_text(wanted: Filter) -> str:
    match wanted:
        case MatchAll():
            return "everything"
        case PropertyFilter():
            return _conditions_text(_wanted(wanted))
    raise Misused(f"a subscription on Service Bus cannot have the filter {wanted}")


_Conditions = dict[str, tuple[type, object]]


def _wanted(wanted: PropertyFilter) -> _Conditions:
    return _conditions(correlation_of(wanted))


def _conditions(found: CorrelationRuleFilter) -> _Conditions:
    """By name, with the type: 1 is neither "1" nor True."""
    system = {f"sys.{name}": getattr(found, name) for name in _SYSTEM}
    values = system | dict(found.properties or {})
    return {name: (type(value), value) for name, value in values.items() if value is not None}


def _conditions_text(conditions: _Conditions) -> str:
    return " and ".join(f"{name} = {value!r}" for name, (_, value) in sorted(conditions.items()))


def _lets_all_through(found: object) -> bool:
    if isinstance(found, TrueRuleFilter):
        return True
    if not isinstance(found, SqlRuleFilter):
        return False
    return (found.sql_expression or "").replace(" ", "") == "1=1"


def _shown(rule: RuleProperties) -> str:
    found = rule.filter
    if isinstance(found, CorrelationRuleFilter):
        text = _conditions_text(_conditions(found))
    elif isinstance(found, SqlRuleFilter):
        text = found.sql_expression or _NOTHING
    else:
        text = "an unknown filter"
    return f"{rule.name}: {text}" + (" with an action" if rule.action is not None else "")


def _status_drift(entity: str, status: object) -> Iterator[Drift]:
    shown = str(getattr(status, "value", status))
    if shown != "Active":
        yield Drift(entity, "status", "Active", shown)


def _span(found: timedelta | str | None) -> timedelta | str | None:
    """The service has its longest duration where there is no limit."""
    if isinstance(found, timedelta) and found >= _ENDLESS:
        return None
    return found
