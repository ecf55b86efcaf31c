"""What the server needs to know of a message, out of its sections."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from servicebus_emulator.amqp import Ubyte, Uint, decode, encode, skip
from servicebus_emulator.amqp.sections import (
    APPLICATION_PROPERTIES,
    PROPERTIES,
    Section,
    sections,
)
from servicebus_emulator.amqp.types import AmqpError, decode_error
from servicebus_emulator.amqp.walking import map_entries
from servicebus_emulator.rules.facts import Facts

PROPERTY_COUNT = 13
MESSAGE_ID, TO, SUBJECT, REPLY_TO, CORRELATION_ID, CONTENT_TYPE = 0, 2, 3, 4, 5, 6
EXPIRY, CREATION, GROUP_ID, REPLY_TO_GROUP_ID = 8, 9, 10, 12
PARTITION_KEY = "x-opt-partition-key"
SCHEDULED = "x-opt-scheduled-enqueue-time"

_OURS = frozenset(
    {
        "x-opt-sequence-number",
        "x-opt-enqueued-time",
        "x-opt-enqueue-sequence-number",
        "x-opt-message-state",
        "x-opt-locked-until",
        "x-opt-deadletter-source",
    }
)
_LARGEST_UINT = 0xFFFFFFFF
_LISTS = frozenset({0x45, 0xC0, 0xD0})
_BYTES_OR_TEXT = frozenset({0xA0, 0xA1, 0xB0, 0xB1})


class Header(NamedTuple):
    kept: bytes = b"\x40\x40\x40"
    """Durable, priority and time to live, encoded: receivers get them."""
    ttl: int | None = None


class Annotations(NamedTuple):
    kept: bytes = b""
    """The user's keys and values, encoded."""
    number: int = 0
    """Of keys and values together."""
    partition_key: str | None = None
    scheduled_at: int | None = None


class Place(NamedTuple):
    """Where a section is, and where its value begins; a section that is absent has no value."""

    start: int
    value: int | None
    end: int


def read_header(data: bytes, value: int) -> Header:
    fields = _list_at(data, value, 5)
    durable, priority, ttl = (*fields, None, None, None)[:3]
    if durable is not None and type(durable) is not bool:
        raise decode_error("durable is no boolean")
    if not _is_number(priority, 0xFF) or not _is_number(ttl, _LARGEST_UINT):
        raise decode_error("the priority or the time to live is no number that fits")
    kept = (
        encode(durable),
        encode(None if priority is None else Ubyte(priority)),
        encode(None if ttl is None else Uint(ttl)),
    )
    return Header(b"".join(kept), ttl)


def read_annotations(data: bytes, value: int) -> Annotations:
    start, end, count = map_entries(data, value)
    offset, kept, number = start, [], 0
    partition_key = scheduled_at = None
    for _ in range(0, count, 2):
        begin = offset
        key, at = decode(data, begin)
        offset = skip(data, at)
        if key == PARTITION_KEY:
            partition_key, _ = decode(data, at)
        elif key == SCHEDULED:
            scheduled_at, _ = decode(data, at)
        elif isinstance(key, str) and key in _OURS:
            continue
        kept.append(data[begin:offset])
        number += 2
    if offset != end or count & 1:
        raise decode_error("the annotations are no map")
    if not isinstance(partition_key, str | None) or not isinstance(scheduled_at, int | None):
        raise decode_error("the partition key is no text, or the time of enqueueing is none")
    return Annotations(b"".join(kept), number, partition_key, scheduled_at)


def read_properties(data: bytes, value: int) -> list[Any]:
    fields = _list_at(data, value, PROPERTY_COUNT)
    if len(fields) < PROPERTY_COUNT:
        fields += [None] * (PROPERTY_COUNT - len(fields))
    group = fields[GROUP_ID]
    if group is not None and not isinstance(group, str):
        raise decode_error("the group id is no text")
    return fields


def facts_of(
    properties: Mapping[str, object], fields: list[Any], partition_key: str | None
) -> Facts:
    return Facts(
        properties=properties,
        message_id=text(fields[MESSAGE_ID]),
        correlation_id=text(fields[CORRELATION_ID]),
        to=text(fields[TO]),
        reply_to=text(fields[REPLY_TO]),
        subject=text(fields[SUBJECT]),
        session_id=fields[GROUP_ID],
        reply_to_session_id=text(fields[REPLY_TO_GROUP_ID]),
        content_type=text(fields[CONTENT_TYPE]),
        partition_key=partition_key,
    )


def properties_at(data: bytes, value: int | None) -> dict[str, object]:
    """The application properties of a map; none of something else, or of a map that is damaged."""
    try:
        properties = None if value is None else decode(data, value)[0]
    except AmqpError:
        return {}
    return properties if isinstance(properties, dict) else {}


def ttl_of(header_ttl: int | None, fields: list[Any]) -> int | None:
    """The header's, unless it is missing or as large as a header can say: then the two times that
    clients send beside it tell."""
    expiry, creation = fields[EXPIRY], fields[CREATION]
    if header_ttl is not None and header_ttl != _LARGEST_UINT:
        return header_ttl
    if isinstance(expiry, int) and isinstance(creation, int):
        return max(0, expiry - creation)
    return header_ttl


def text(value: object) -> str | None:
    """An id is text whatever its type was."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def binary_at(data: bytes, value: int) -> bytes:
    """The bytes of a binary or of a text."""
    start = value + (2 if data[value] < 0xB0 else 5)
    return data[start : skip(data, value)]


def is_bytes_or_text(data: bytes, value: int) -> bool:
    return data[value] in _BYTES_OR_TEXT


def in_order(data: bytes, found: list[Section]) -> tuple[bytes, list[Section]]:
    """For messages whose annotations come late, as some clients send them: the same with all of
    that at the beginning, before the bare message."""
    head = [data[start:end] for code, start, _, end in found if code < PROPERTIES]
    bare = [data[start:end] for code, start, _, end in found if code >= PROPERTIES]
    ordered = b"".join(head + bare)
    return ordered, sections(ordered)


def application_properties(found: list[Section], bare: int) -> Place:
    """Without such a section: where it would be."""
    place = bare
    for code, start, value, end in found:
        if code == APPLICATION_PROPERTIES:
            return Place(start, value, end)
        if code == PROPERTIES:
            place = end
    return Place(place, None, place)


def _list_at(data: bytes, value: int, longest: int) -> list[Any]:
    fields: list[Any] | None = decode(data, value)[0] if data[value] in _LISTS else None
    if fields is None or len(fields) > longest:
        raise decode_error(f"a section is no list of at most {longest} fields")
    return fields


def _is_number(value: object, largest: int) -> bool:
    return value is None or (type(value) is int and 0 <= value <= largest)
