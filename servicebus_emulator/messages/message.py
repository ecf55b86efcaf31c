"""The message."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

from servicebus_emulator.amqp import Symbol
from servicebus_emulator.amqp.encoding import binary, described
from servicebus_emulator.amqp.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    VALUE,
    Section,
    sections,
)
from servicebus_emulator.amqp.types import decode_error
from servicebus_emulator.messages import reading, writing
from servicebus_emulator.messages.reading import Annotations, Header, Place
from servicebus_emulator.rules.facts import Facts

_NOTHING: Mapping[str, object] = MappingProxyType({})
_NO_PROPERTIES: list[Any] = [None] * reading.PROPERTY_COUNT
_PLAIN = frozenset({str, int})
_NO_HEADER = Header()
_NO_ANNOTATIONS = Annotations()


class Message:
    """Immutable. Application properties are decoded when somebody asks for `facts`; ones that
    cannot be decoded are as if there were none, for then it is too late to refuse the message."""

    __slots__ = (
        "_annotations",
        "_application_properties",
        "_bare",
        "_data",
        "_delivery_annotations",
        "_facts",
        "_header",
        "_properties",
        "message_id",
        "partition_key",
        "scheduled_at",
        "session_id",
        "size",
        "ttl",
    )

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._header = _NO_HEADER
        self._annotations = _NO_ANNOTATIONS
        self._delivery_annotations = b""
        self._properties = _NO_PROPERTIES
        self._facts: Facts | None = None
        self._read(data)
        self.size = len(data)
        self.message_id = reading.text(self._properties[reading.MESSAGE_ID])
        self.session_id: str | None = self._properties[reading.GROUP_ID]
        self.partition_key = self._annotations.partition_key
        self.scheduled_at = self._annotations.scheduled_at
        self.ttl = reading.ttl_of(self._header.ttl, self._properties)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """`AmqpError` if it is no message."""
        return cls(data)

    @classmethod
    def parse_batch(cls, data: bytes) -> list[Self]:
        """Of a transfer whose message format is that of a batch: each data section is a message.
        What the envelope says of the first one is not needed."""
        bodies = [one for one in sections(data) if one[0] >= DATA]
        if any(code != DATA for code, *_ in bodies):
            raise decode_error("a batch consists of data sections")
        return [cls(reading.binary_at(data, value)) for _, _, value, _ in bodies]

    @classmethod
    def build(
        cls,
        body: bytes,
        *,
        message_id: str | None = None,
        session_id: str | None = None,
        partition_key: str | None = None,
        ttl: int | None = None,
        scheduled_at: int | None = None,
        correlation_id: str | None = None,
        subject: str | None = None,
        to: str | None = None,
        reply_to: str | None = None,
        reply_to_session_id: str | None = None,
        content_type: str | None = None,
        properties: Mapping[str, object] = _NOTHING,
    ) -> Self:
        """As a client would send it."""
        fields = {
            reading.MESSAGE_ID: message_id,
            reading.TO: to,
            reading.SUBJECT: subject,
            reading.REPLY_TO: reply_to,
            reading.CORRELATION_ID: correlation_id,
            reading.CONTENT_TYPE: None if content_type is None else Symbol(content_type),
            reading.GROUP_ID: session_id,
            reading.REPLY_TO_GROUP_ID: reply_to_session_id,
        }
        parts = (
            writing.client_header(ttl),
            writing.client_annotations(partition_key, scheduled_at),
            writing.composite(PROPERTIES, fields, reading.PROPERTY_COUNT),
            writing.application_properties(b"", None, properties) if properties else b"",
            described(DATA, binary(body)),
        )
        built = cls(b"".join(parts))
        if _are_plain(properties):
            known = reading.facts_of(dict(properties), built._properties, partition_key)
            built._facts = known  # as they would be read
        return built

    @property
    def facts(self) -> Facts:
        if self._facts is None:
            properties = reading.properties_at(self._data, self._application_properties.value)
            self._facts = reading.facts_of(properties, self._properties, self.partition_key)
        return self._facts

    @property
    def body(self) -> bytes:
        """Data sections joined, or a value of bytes or text; of other bodies the whole sections."""
        data = self._data
        bodies = [one for one in sections(data) if DATA <= one[0] <= VALUE]
        if all(code == DATA or _is_text(data, code, value) for code, _, value, _ in bodies):
            return b"".join(reading.binary_at(data, value) for _, _, value, _ in bodies)
        return b"".join(data[start:end] for _, start, _, end in bodies)

    def encoded(
        self,
        *,
        sequence_number: int,
        enqueued_at: int,
        delivery_count: int,
        locked_until: int | None,
        state: int,
        dead_letter_source: str | None = None,
        enqueue_sequence_number: int = 0,
    ) -> bytes:
        """What a receiver gets."""
        annotations = writing.annotations(
            self._annotations.kept,
            self._annotations.number,
            sequence_number=sequence_number,
            enqueued_at=enqueued_at,
            locked_until=locked_until,
            state=state,
            dead_letter_source=dead_letter_source,
            enqueue_sequence_number=enqueue_sequence_number,
        )
        header = writing.header(self._header.kept, delivery_count)
        bare = self._data[self._bare :]
        return b"".join((header, self._delivery_annotations, annotations, bare))

    def with_properties(self, changes: Mapping[str, object]) -> Self:
        """The same message with these application properties replaced or added."""
        start, value, end = self._application_properties
        section = writing.application_properties(self._data, value, changes)
        return type(self)(self._data[:start] + section + self._data[end:])

    def with_message_id(self, message_id: str) -> Self:
        """The same message under this id."""
        found = (one[1:] for one in sections(self._data) if one[0] == PROPERTIES)
        start, value, end = next(found, (self._bare, None, self._bare))
        section = writing.properties_with_id(self._data, value, message_id)
        return type(self)(self._data[:start] + section + self._data[end:])

    def stored(self) -> bytes:
        """What `parse` makes the same message of."""
        return self._data

    def _read(self, data: bytes) -> None:
        """In one loop and not by parts, because every message comes this way."""
        bare, place = -1, None
        is_in_order = True
        found = sections(data)
        for code, start, value, end in found:
            if code < PROPERTIES:
                is_in_order = is_in_order and bare < 0
                self._read_head(data, code, start, value, end)
                continue
            if bare < 0:
                bare = start
            if code == PROPERTIES:
                self._properties = reading.read_properties(data, value)
            elif code == APPLICATION_PROPERTIES:
                place = Place(start, value, end)
        if not is_in_order:
            self._data, found = reading.in_order(data, found)
            bare, place = _start_of_bare(found), None
        self._bare = bare if bare >= 0 else len(data)
        self._application_properties = place or reading.application_properties(found, self._bare)

    def _read_head(self, data: bytes, code: int, start: int, value: int, end: int) -> None:
        if code == MESSAGE_ANNOTATIONS:
            self._annotations = reading.read_annotations(data, value)
        elif code == HEADER:
            self._header = reading.read_header(data, value)
        else:
            self._delivery_annotations = data[start:end]


def _are_plain(properties: Mapping[str, object]) -> bool:
    """Whether they come back as what they are given as."""
    return all(type(value) in _PLAIN for value in properties.values())


def _start_of_bare(found: list[Section]) -> int:
    return next(start for code, start, _, _ in found if code >= PROPERTIES)


def _is_text(data: bytes, code: int, value: int) -> bool:
    return code == VALUE and reading.is_bytes_or_text(data, value)
