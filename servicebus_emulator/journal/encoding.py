"""Records to bytes and back.

The records of a group are one JSON array, in which everything that JSON does not have is an object
with one key, the kind: `{"message": 1024}` stands for the next 1024 bytes of the blobs beside it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, NamedTuple, get_args
from uuid import UUID

from servicebus_emulator.amqp import AmqpError
from servicebus_emulator.broker.records import Record
from servicebus_emulator.broker.settings import QueueSettings, SubscriptionSettings, TopicSettings
from servicebus_emulator.messages import Message
from servicebus_emulator.rules import CorrelationFilter, FalseFilter, Rule, SqlFilter, TrueFilter

_MICROSECOND = timedelta(microseconds=1)
_RECORDS: dict[str, Callable[..., Record]] = {kind.__name__: kind for kind in get_args(Record)}
_PARTS: dict[type, str] = {
    QueueSettings: "queue",
    TopicSettings: "topic",
    SubscriptionSettings: "subscription",
    Rule: "rule",
    TrueFilter: "true",
    FalseFilter: "false",
    CorrelationFilter: "correlation",
    SqlFilter: "sql",
}


class Encoded(NamedTuple):
    records: bytes
    blobs: bytes


class Encoder:
    """Made once and used for every group, because a JSON encoder costs more than a small group."""

    def __init__(self) -> None:
        self._blobs: list[bytes] = []
        self._json = json.JSONEncoder(
            separators=(",", ":"), check_circular=False, default=self._tagged
        )

    def encode(self, records: Iterable[Record]) -> Encoded:
        self._blobs.clear()
        heads = [(type(record).__name__, *record) for record in records]
        text = self._json.encode(heads)
        return Encoded(text.encode("ascii"), b"".join(self._blobs))

    def _tagged(self, value: object) -> dict[str, object]:
        """Called by JSON for what it does not have. Messages come first: they are nearly all."""
        if isinstance(value, Message):
            self._blobs.append(stored := value.stored())
            return {"message": len(stored)}
        if isinstance(value, bytes):
            self._blobs.append(value)
            return {"bytes": len(value)}
        part = _PARTS.get(type(value))
        return _scalar(value) if part is None else {part: _fields(value)}


def decode(encoded: Encoded) -> Iterator[Record]:
    """`ValueError` where this is not what `encode` makes."""
    reader = _Reader(encoded.blobs)
    try:
        for kind, *values in json.loads(encoded.records, object_hook=reader.untagged):
            yield _RECORDS[kind](*values)
    except (AmqpError, KeyError, TypeError) as error:
        raise ValueError(f"a record that this version does not know ({error})") from error


def _scalar(value: object) -> dict[str, object]:
    match value:
        case UUID():
            return {"uuid": str(value)}
        case datetime():
            return {"datetime": value.isoformat()}
        case timedelta():
            return {"timedelta": value // _MICROSECOND}
    raise TypeError(f"a journal cannot keep a {type(value).__name__}")


def _fields(part: Any) -> list[tuple[str, object]]:
    named = ((field.name, getattr(part, field.name)) for field in fields(part) if field.init)
    return [(name, _listed(value)) for name, value in named]


def _listed(value: object) -> object:
    """A mapping as pairs, since every object of the JSON is a tagged value."""
    return {"map": list(value.items())} if isinstance(value, Mapping) else value


class _Reader:
    """Puts tagged values back. JSON hands them out in the order of the text, which is the order of
    the blobs."""

    def __init__(self, blobs: bytes) -> None:
        self._blobs = blobs
        self._offset = 0

    def untagged(self, tagged: dict[str, Any]) -> object:
        ((kind, value),) = tagged.items()
        if kind == "message":
            return Message.parse(self._blob(value))
        if kind == "bytes":
            return self._blob(value)
        return _READERS[kind](value)

    def _blob(self, length: int) -> bytes:
        start, self._offset = self._offset, self._offset + length
        return self._blobs[start : self._offset]


def _part(kind: type) -> Callable[[list[tuple[str, object]]], object]:
    return lambda pairs: kind(**dict(pairs))


_READERS: dict[str, Callable[[Any], object]] = {
    "map": dict,
    "uuid": UUID,
    "datetime": datetime.fromisoformat,
    "timedelta": lambda microseconds: microseconds * _MICROSECOND,
    **{name: _part(kind) for kind, name in _PARTS.items()},
}
