"""What the server writes into a message."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import Struct

from servicebus_emulator.amqp import Int, Symbol, Timestamp, Uint, decode, encode, skip
from servicebus_emulator.amqp.encoding import described, list_of, map_of, string, symbol, uint
from servicebus_emulator.amqp.sections import (
    APPLICATION_PROPERTIES,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
)
from servicebus_emulator.amqp.walking import large_span, map_entries, small_span
from servicebus_emulator.messages.reading import PARTITION_KEY, SCHEDULED, properties_at

_SEQUENCE_NUMBER = symbol("x-opt-sequence-number") + b"\x81"
_ENQUEUED = symbol("x-opt-enqueued-time") + b"\x83"
_ENQUEUE_NUMBER = symbol("x-opt-enqueue-sequence-number") + b"\x81"
_STATE = symbol("x-opt-message-state") + b"\x71"
_LOCKED_UNTIL = symbol("x-opt-locked-until") + b"\x83"
_DEAD_LETTER_SOURCE = symbol("x-opt-deadletter-source")
_ALWAYS = Struct(
    f">{len(_SEQUENCE_NUMBER)}sq {len(_ENQUEUED)}sq {len(_ENQUEUE_NUMBER)}sq {len(_STATE)}si"
)
_LOCK = Struct(f">{len(_LOCKED_UNTIL)}sq")
_ANNOTATIONS = Struct(">4sII")
_EMPTY_LIST, _SMALL_LIST = 0x45, 0xC0
_NULL = b"\x40"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def header(kept: bytes, delivery_count: int) -> bytes:
    count = b"\x43" if delivery_count == 0 else uint(delivery_count)
    return b"\x00\x53\x70\xc0" + bytes((len(kept) + len(count) + 2, 5)) + kept + b"\x40" + count


def annotations(
    kept: bytes,
    count: int,
    *,
    sequence_number: int,
    enqueued_at: int,
    locked_until: int | None,
    state: int,
    dead_letter_source: str | None,
    enqueue_sequence_number: int,
) -> bytes:
    """The section of the user's annotations, which are encoded already, and of ours."""
    ours = _ALWAYS.pack(
        *(_SEQUENCE_NUMBER, sequence_number, _ENQUEUED, enqueued_at),
        *(_ENQUEUE_NUMBER, enqueue_sequence_number, _STATE, state),
    )
    count += 8
    if locked_until is not None:
        ours += _LOCK.pack(_LOCKED_UNTIL, locked_until)
        count += 2
    if dead_letter_source is not None:
        ours += _DEAD_LETTER_SOURCE + string(dead_letter_source)
        count += 2
    head = _ANNOTATIONS.pack(b"\x00\x53\x72\xd1", 4 + len(kept) + len(ours), count)
    return head + kept + ours


def application_properties(data: bytes, value: int | None, changes: Mapping[str, object]) -> bytes:
    """The section whose map is at `value`, with these properties replaced or added."""
    kept = _kept_properties(data, value, changes)
    added = b"".join([_name(key) + _property(item) for key, item in changes.items()])
    number = 2 * (len(kept) + len(changes))
    return described(APPLICATION_PROPERTIES, map_of(b"".join(kept) + added, number))


def properties_with_id(data: bytes, value: int | None, message_id: str) -> bytes:
    """The section whose list is at `value`, its first field replaced, all else as it was."""
    fields = [] if value is None else _fields(data, value)
    return described(PROPERTIES, list_of([string(message_id), *fields[1:]]))


def milliseconds(moment: datetime) -> int:
    """Since the epoch; a moment without a zone is taken for UTC, as the clients do."""
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // _MILLISECOND


def client_header(ttl: int | None) -> bytes:
    """`ValueError` for more than the 49 days that a header can say."""
    return b"" if ttl is None else described(HEADER, encode([None, None, Uint(ttl)]))


def client_annotations(partition_key: str | None, scheduled_at: int | None) -> bytes:
    given: dict[object, object] = {}
    if partition_key is not None:
        given[Symbol(PARTITION_KEY)] = partition_key
    if scheduled_at is not None:
        given[Symbol(SCHEDULED)] = Timestamp(scheduled_at)
    return described(MESSAGE_ANNOTATIONS, encode(given)) if given else b""


def composite(code: int, fields: Mapping[int, object], count: int) -> bytes:
    """A section that is a list, out of its fields by index; nothing if it has none."""
    given = [index for index, value in fields.items() if value is not None and index < count]
    if not given:
        return b""
    values = map(fields.get, range(max(given) + 1))
    return described(code, list_of([_NULL if value is None else encode(value) for value in values]))


def _fields(data: bytes, value: int) -> list[bytes]:
    """Those of a list, as they are encoded."""
    if data[value] == _EMPTY_LIST:
        return []
    span = small_span if data[value] == _SMALL_LIST else large_span
    offset, _, count = span(data, value + 1)
    fields = []
    for _ in range(count):
        end = skip(data, offset)
        fields.append(data[offset:end])
        offset = end
    return fields


def _kept_properties(data: bytes, value: int | None, changes: Mapping[str, object]) -> list[bytes]:
    """Key and value of those that do not change, as the user encoded them."""
    if value is None or not properties_at(data, value):
        return []
    kept = []
    offset, _, count = map_entries(data, value)
    for _ in range(0, count, 2):
        start = offset
        key, at = decode(data, start)
        offset = skip(data, at)
        if key not in changes:
            kept.append(data[start:offset])
    return kept


@lru_cache(256)
def _name(key: str) -> bytes:
    """There are few, and every message has them."""
    return string(key)


def _property(value: object) -> bytes:
    """As the Python client of Service Bus does it: an int has 32 bits where it fits."""
    if type(value) is str:
        return string(value)
    if type(value) is int and -(2**31) <= value < 2**31:
        return encode(Int(value))
    if isinstance(value, datetime):
        return encode(Timestamp(milliseconds(value)))
    return encode(value)
