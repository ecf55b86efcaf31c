"""Which values of properties can be compared, and how a property is found."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

MISSING = object()

_KINDS: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "float",
    str: "text",
    bytes: "binary",
    UUID: "guid",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def kind_of(value: object) -> str | None:
    """The kind of a value; None where values cannot be compared. Subtypes are what they extend."""
    kind = _KINDS.get(type(value))
    if kind is not None or value is None:
        return kind
    return next((name for base, name in _KINDS.items() if isinstance(value, base)), None)


def plain(value: object) -> object:
    """Times as the milliseconds that messages carry; everything else as it is."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (aware - _EPOCH) // _MILLISECOND
    if isinstance(value, timedelta):
        return value // _MILLISECOND
    return value


def find(properties: Mapping[str, object], name: str) -> object:
    """The value under a name whose letter case does not count; the exact name goes first."""
    value = properties.get(name, MISSING)
    if value is MISSING and properties:
        folded = name.lower()
        for key in properties:
            if key.lower() == folded:
                return properties[key]
    return value
