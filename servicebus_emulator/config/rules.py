"""Reads the rules of a subscription."""

from servicebus_emulator.config.place import Place
from servicebus_emulator.rules import CorrelationFilter, Filter, Rule, RuleError, SqlFilter

_SYSTEM = {
    "ContentType": "content_type",
    "CorrelationId": "correlation_id",
    "Label": "subject",
    "MessageId": "message_id",
    "ReplyTo": "reply_to",
    "ReplyToSessionId": "reply_to_session_id",
    "SessionId": "session_id",
    "To": "to",
}
_SCALARS = (str, int, float, bool)


def read_rule(place: Place) -> Rule:
    place.members(["Name", "Properties"])
    properties = place.member("Properties")
    properties.members(["FilterType", "CorrelationFilter", "SqlFilter", "Action"])
    kind = properties.member("FilterType").choice(["Correlation", "Sql"])
    read = _correlation if kind == "Correlation" else _sql
    try:
        return Rule(place.member("Name").text(), read(properties), _action(properties))
    except RuleError as error:
        properties.refuse(str(error))


def _correlation(properties: Place) -> Filter:
    place = properties.member("CorrelationFilter")
    members = place.members([*_SYSTEM, "Properties"])
    if not members:
        place.refuse(f"at least one of {', '.join(_SYSTEM)}, Properties is expected")
    system = {_SYSTEM[name]: members[name].optional_text() for name in members if name in _SYSTEM}
    return CorrelationFilter(_values(place.member("Properties")), **system)


def _values(place: Place) -> dict[str, object]:
    if place.value is None:
        return {}
    if not isinstance(place.value, dict) or not place.value:
        place.refuse("an object with at least one member is expected")
    for name, value in place.value.items():
        if not isinstance(value, _SCALARS):
            place.member(name).refuse("a text, a number, true or false is expected")
    return dict(place.value)


def _sql(properties: Place) -> Filter:
    place = properties.member("SqlFilter")
    place.members(["SqlExpression"])
    expression = place.member("SqlExpression")
    try:
        return SqlFilter(expression.text())
    except RuleError as error:
        expression.refuse(str(error))


def _action(properties: Place) -> str | None:
    place = properties.member("Action")
    if place.value is None:
        return None
    place.members(["SqlExpression"])
    return place.member("SqlExpression").optional_text()
