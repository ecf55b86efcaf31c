"""Rules of a subscription in the XML of Service Bus, both ways."""

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from xml.etree.ElementTree import Element

from servicebus_emulator.administration.atom import INSTANCE, SERVICE_BUS
from servicebus_emulator.administration.exchange import Refusal
from servicebus_emulator.administration.text import (
    escaped,
    read_boolean,
    read_number,
    write_boolean,
    write_time,
)
from servicebus_emulator.durations import read_duration, write_duration
from servicebus_emulator.rules import (
    CorrelationFilter,
    FalseFilter,
    Filter,
    Rule,
    RuleError,
    SqlFilter,
    TrueFilter,
)

_TYPE = f"{{{INSTANCE}}}type"
_SCHEMA = "http://www.w3.org/2001/XMLSchema"
_LARGEST_INT = 2**31 - 1
_MILLISECOND = timedelta(milliseconds=1)
_SQL_VERSION = "<CompatibilityLevel>20</CompatibilityLevel>"
_CORRELATION = {
    "CorrelationId": "correlation_id",
    "MessageId": "message_id",
    "To": "to",
    "ReplyTo": "reply_to",
    "Label": "subject",
    "SessionId": "session_id",
    "ReplyToSessionId": "reply_to_session_id",
    "ContentType": "content_type",
}


def read_rule(name: str, description: Element) -> Rule:
    """`Refusal`: it is not a rule that can be used."""
    written = _find(description, "Filter")
    try:
        found = TrueFilter() if written is None else _read_filter(written)
        return Rule(name, found, _read_action(description))
    except RuleError as error:
        raise Refusal(400, f"the rule {name} cannot be used: {error}") from error


def read_default_rule(subscription: Element) -> Rule | None:
    """The only rule of a subscription that is made with one, instead of `$Default`."""
    description = _find(subscription, "DefaultRuleDescription")
    if description is None:
        return None
    return read_rule(_text(description, "Name") or "$Default", description)


def write_rule(rule: Rule, created_at: int) -> str:
    action = '<Action i:type="EmptyRuleAction"/>'
    if rule.action is not None:
        action = f'<Action i:type="SqlRuleAction">{_sql(rule.action)}</Action>'
    created = f"<CreatedAt>{write_time(created_at)}</CreatedAt>"
    return f"{_write_filter(rule.filter)}{action}{created}<Name>{escaped(rule.name)}</Name>"


def _read_filter(written: Element) -> Filter:
    kind = written.get(_TYPE, "").rpartition(":")[2]
    read = _READERS.get(kind)
    if read is None:
        raise Refusal(400, f"a filter has the type {', '.join(_READERS)}, not {kind!r}")
    return read(written)


def _read_correlation(written: Element) -> Filter:
    system = {field: _text(written, element) for element, field in _CORRELATION.items()}
    return CorrelationFilter(_read_values(_find(written, "Properties")), **system)


def _read_sql(written: Element) -> Filter:
    parameters = _read_values(_find(written, "Parameters"))
    return SqlFilter(_text(written, "SqlExpression") or "", parameters)


_READERS: Mapping[str, Callable[[Element], Filter]] = {
    "CorrelationFilter": _read_correlation,
    "SqlFilter": _read_sql,
    "TrueFilter": lambda _: TrueFilter(),
    "FalseFilter": lambda _: FalseFilter(),
}


def _read_action(description: Element) -> str | None:
    action = _find(description, "Action")
    if action is None or action.get(_TYPE, "EmptyRuleAction").endswith("EmptyRuleAction"):
        return None
    return _text(action, "SqlExpression")


def _read_values(parent: Element | None) -> dict[str, object]:
    pairs = [] if parent is None else list(parent)
    return dict(_read_value(pair) for pair in pairs)


def _read_value(pair: Element) -> tuple[str, object]:
    name, value = _text(pair, "Key"), _find(pair, "Value")
    if name is None or value is None:
        raise Refusal(400, "a property of a filter needs Key and Value")
    kind = value.get(_TYPE, "string").rpartition(":")[2]
    read = _VALUES.get(kind)
    if read is None:
        raise Refusal(400, f"{name}: values have the type {', '.join(_VALUES)}, not {kind!r}")
    try:
        return name, read(value.text or "")
    except ValueError as error:
        raise Refusal(400, f"{name}: this is no {kind}") from error


def _read_double(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a finite number")
    return number


def _read_duration(text: str) -> timedelta:
    milliseconds = read_duration(text)
    if milliseconds is None:
        raise ValueError("a duration that ends")
    return timedelta(milliseconds=milliseconds)


_VALUES: Mapping[str, Callable[[str], object]] = {
    "string": str,
    "int": read_number,
    "long": read_number,
    "short": read_number,
    "boolean": read_boolean,
    "double": _read_double,
    "float": _read_double,
    "dateTime": datetime.fromisoformat,
    "duration": _read_duration,
}


def _write_filter(found: Filter) -> str:
    match found:
        case CorrelationFilter():
            return f'<Filter i:type="CorrelationFilter">{_correlation(found)}</Filter>'
        case SqlFilter():
            sql = _sql(found.expression, _values("Parameters", found.parameters))
            return f'<Filter i:type="SqlFilter">{sql}</Filter>'
        case FalseFilter():
            return f'<Filter i:type="FalseFilter">{_sql("1=0")}</Filter>'
    return f'<Filter i:type="TrueFilter">{_sql("1=1")}</Filter>'


def _correlation(found: CorrelationFilter) -> str:
    values = ((element, getattr(found, field)) for element, field in _CORRELATION.items())
    system = "".join(
        f"<{element}>{escaped(value)}</{element}>" for element, value in values if value is not None
    )
    return system + _values("Properties", found.properties)


def _sql(expression: str, parameters: str = "") -> str:
    return f"<SqlExpression>{escaped(expression)}</SqlExpression>{_SQL_VERSION}{parameters}"


def _values(element: str, values: Mapping[str, object]) -> str:
    pairs = "".join(_pair(name, value) for name, value in values.items())
    return f"<{element}>{pairs}</{element}>" if pairs else ""


def _pair(name: str, value: object) -> str:
    kind, text = _kind_and_text(value)
    return (
        f"<KeyValueOfstringanyType><Key>{escaped(name)}</Key>"
        f'<Value i:type="d6p1:{kind}" xmlns:d6p1="{_SCHEMA}">{escaped(text)}</Value>'
        "</KeyValueOfstringanyType>"
    )


def _kind_and_text(value: object) -> tuple[str, str]:
    match value:
        case bool():
            return "boolean", write_boolean(value)
        case int():
            return "int" if abs(value) <= _LARGEST_INT else "long", str(value)
        case float():
            return "double", repr(value)
        case datetime():
            return "dateTime", value.isoformat()
        case timedelta():
            return "duration", write_duration(value // _MILLISECOND)
    return "string", str(value)


def _find(parent: Element, name: str) -> Element | None:
    return parent.find(f"{{{SERVICE_BUS}}}{name}")


def _text(parent: Element, name: str) -> str | None:
    found = _find(parent, name)
    return None if found is None else found.text
