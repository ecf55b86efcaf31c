"""Frames: what travels on a connection after the protocol headers."""

from struct import Struct
from typing import NamedTuple

from servicebus_emulator.amqp.composites import decode_performative, encode_composite
from servicebus_emulator.amqp.encoding import binary, uint
from servicebus_emulator.amqp.performatives import (
    SENDER,
    Accepted,
    Disposition,
    Performative,
    Released,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslPerformative,
    SaslResponse,
    State,
    Transfer,
)
from servicebus_emulator.amqp.types import AmqpError, decode_error

HEADER_AMQP = b"AMQP\x00\x01\x00\x00"
HEADER_SASL = b"AMQP\x03\x01\x00\x00"

_HEADER_BYTES = 8
_FRAME = Struct(">IBBH")
_AMQP, _SASL = 0, 1
_SASL_KINDS = frozenset({SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome})


class Frame(NamedTuple):
    channel: int
    performative: Performative | None
    """None is a heartbeat."""
    payload: bytes = b""


class FrameReader:
    """Frames out of a stream of bytes, however it is cut. After an error the stream is lost."""

    def __init__(self, max_frame_size: int) -> None:
        self._max_frame_size = max_frame_size
        self._chunks: list[bytes] = []
        self._offset = 0
        self._available = 0
        self._wanted = _HEADER_BYTES

    def feed(self, data: bytes) -> None:
        self._chunks.append(data)
        self._available += len(data)

    def take_header(self) -> bytes | None:
        """The next eight bytes, where a protocol header is expected."""
        if self._available < _HEADER_BYTES:
            return None
        data, start = self._joined(), self._offset
        self._take(_HEADER_BYTES)
        return data[start : start + _HEADER_BYTES]

    def next(self, max_frame_size: int | None = None) -> Frame | None:
        """None if the next frame is not all there yet. `max_frame_size`: for this frame alone."""
        if self._available < self._wanted:
            return None
        data, start = self._joined(), self._offset
        size, words, kind, channel = _FRAME.unpack_from(data, start)
        limit = max_frame_size or self._max_frame_size
        if not _HEADER_BYTES <= size <= limit or not 8 <= 4 * words <= size:
            raise _framing_error(f"a frame of {size} bytes with a header of {4 * words}")
        if self._available < size:
            self._wanted = size
            return None
        frame = _frame(data, start + 4 * words, start + size, kind, channel)
        self._take(size)
        return frame

    def _joined(self) -> bytes:
        """One chunk of all. It is called only when enough is there, so bytes that trickle in are
        not joined again and again."""
        if len(self._chunks) > 1:
            self._chunks[0] = self._chunks[0][self._offset :]
            self._chunks, self._offset = [b"".join(self._chunks)], 0
        return self._chunks[0]

    def _take(self, size: int) -> None:
        self._offset += size
        self._available -= size
        self._wanted = _HEADER_BYTES
        if self._available == 0:
            self._chunks.clear()
            self._offset = 0


def _frame(data: bytes, start: int, end: int, kind: int, channel: int) -> Frame:
    if kind > _SASL:
        raise _framing_error(f"a frame of type {kind}")
    if start == end:
        return Frame(channel, None)
    performative, at = decode_performative(data, start)
    if at > end:
        raise decode_error("a performative is longer than its frame")
    if type(performative) is Transfer and kind == _AMQP:
        return Frame(channel, performative, data[at:end])
    if at != end:
        raise decode_error("only a transfer has a payload")
    if (type(performative) in _SASL_KINDS) is not (kind == _SASL):
        raise decode_error("a performative is in a frame of the wrong type")
    return Frame(channel, performative)


def _framing_error(what: str) -> AmqpError:
    return AmqpError("amqp:connection:framing-error", f"{what} is not possible here")


def encode_frame(channel: int, performative: Performative | None, payload: bytes = b"") -> bytes:
    """Without a performative it is a heartbeat."""
    body = b"" if performative is None else encode_composite(performative)
    return _FRAME.pack(_HEADER_BYTES + len(body) + len(payload), 2, _AMQP, channel) + body + payload


def encode_sasl_frame(performative: SaslPerformative) -> bytes:
    body = encode_composite(performative)
    return _FRAME.pack(_HEADER_BYTES + len(body), 2, _SASL, 0) + body


_TRANSFER = Struct(">IBBH 4sBB BI BI")
_TRANSFER_MARK = b"\x00\x53\x14\xc0"
_MORE = Struct(">IBBH 4sBB BI 5s")
_FIXED = 4 + 2 + 5 + 5  # marks, size and count, handle, delivery id
_LIST_LEFT = 1 + 5 + 5  # of them what the size of the list counts
_LONGEST_HEAD = _HEADER_BYTES + _FIXED + 34 + 5 + 2  # with a tag of 32 bytes, the longest there is
_SETTLED = {
    (False, False): b"\x42\x42",
    (True, False): b"\x41\x42",
    (False, True): b"\x42\x41",
    (True, True): b"\x41\x41",
}


def transfer_frame(
    channel: int,
    handle: int,
    delivery_id: int,
    delivery_tag: bytes,
    settled: bool,
    payload: bytes,
    *,
    message_format: int = 0,
    more: bool = False,
) -> bytes:
    """A whole delivery in one frame, or its first one. Made by hand because every message goes
    this way."""
    rest = binary(delivery_tag) + uint(message_format) + _SETTLED[settled, more]
    size = _HEADER_BYTES + _FIXED + len(rest) + len(payload)
    head = _TRANSFER.pack(
        *(size, 2, _AMQP, channel, _TRANSFER_MARK, _LIST_LEFT + len(rest), 6),
        *(0x70, handle, 0x70, delivery_id),
    )
    return b"".join((head, rest, payload))


def transfer_frames(
    channel: int,
    handle: int,
    delivery_id: int,
    delivery_tag: bytes,
    settled: bool,
    payload: bytes,
    max_frame_size: int,
    *,
    message_format: int = 0,
) -> bytes:
    """As many frames as the peer's largest frame makes necessary."""
    room = max_frame_size - _LONGEST_HEAD
    first = transfer_frame(
        *(channel, handle, delivery_id, delivery_tag, settled, payload[:room]),
        message_format=message_format,
        more=len(payload) > room,
    )
    if len(payload) <= room:
        return first
    parts = [first]
    for start in range(room, len(payload), room):
        is_last = start + room >= len(payload)
        parts.append(_continued(channel, handle, settled, payload[start : start + room], is_last))
    return b"".join(parts)


def _continued(channel: int, handle: int, settled: bool, payload: bytes, is_last: bool) -> bytes:
    flags = b"\x40\x40\x40" + _SETTLED[settled, not is_last]
    size = _MORE.size + len(payload)
    return _MORE.pack(size, 2, _AMQP, channel, _TRANSFER_MARK, 11, 6, 0x70, handle, flags) + payload


_DISPOSITION = Struct(">IBBH 4sBB sBI 2s")
_DISPOSITION_MARK = b"\x00\x53\x15\xc0"
_ROLES = {False: b"\x42", True: b"\x41"}
_UNSETTLED_OR_NOT = {False: b"\x40\x42", True: b"\x40\x41"}  # after the absent last id
_STATES = {Accepted: b"\x00\x53\x24\x45", Released: b"\x00\x53\x26\x45"}


def disposition_frame(
    channel: int, first: int, state: State, settled: bool, *, role: bool = SENDER
) -> bytes:
    """The state of one delivery. Made by hand because every settlement is answered this way."""
    encoded = _STATES.get(type(state)) or encode_composite(state)
    if len(encoded) > 200:
        return encode_frame(channel, Disposition(role, first, None, settled, state))
    size = _DISPOSITION.size + len(encoded)
    head = _DISPOSITION.pack(
        *(size, 2, _AMQP, channel, _DISPOSITION_MARK, 9 + len(encoded), 5),
        *(_ROLES[role], 0x70, first, _UNSETTLED_OR_NOT[settled]),
    )
    return head + encoded
