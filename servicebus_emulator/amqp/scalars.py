"""Values of AMQP that hold no other values, from bytes.

A decoder gets the data, the offset behind the constructor and the depth, and gives the value and
where it ends.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, TypeAlias
from uuid import UUID

from servicebus_emulator.amqp.types import (
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Symbol,
    Timestamp,
    decode_error,
)

Decoder: TypeAlias = Callable[[bytes, int, int], tuple[Any, int]]

_UINT32 = Struct(">I").unpack_from


def _constant(value: object) -> Decoder:
    return lambda _data, offset, _depth: (value, offset)


def _empty(_data: bytes, offset: int, _depth: int) -> tuple[list[Any], int]:
    return [], offset


def _octet(data: bytes, offset: int, _depth: int) -> tuple[int, int]:
    return data[offset], offset + 1


def _boolean(data: bytes, offset: int, _depth: int) -> tuple[bool, int]:
    octet = data[offset]
    if octet > 1:
        raise decode_error("a boolean is neither 0 nor 1")
    return octet == 1, offset + 1


def _packed(form: str, kind: Callable[[Any], object] | None = None) -> Decoder:
    packed = Struct(">" + form)
    unpack, width = packed.unpack_from, packed.size
    if kind is None:
        return lambda data, offset, _depth: (unpack(data, offset)[0], offset + width)
    return lambda data, offset, _depth: (kind(unpack(data, offset)[0]), offset + width)


def _char(code: int) -> Char:
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise decode_error("a char is not one of Unicode")
    return Char(chr(code))


def _uuid(data: bytes) -> UUID:
    return UUID(bytes=data)


def _sized(large: bool, read: Callable[[bytes], object]) -> Decoder:
    def decoded(data: bytes, offset: int, _depth: int) -> tuple[object, int]:
        if large:
            start = offset + 4
            end: int = start + _UINT32(data, offset)[0]
        else:
            start = offset + 1
            end = start + data[offset]
        if end > len(data):
            raise decode_error("a value is longer than the bytes")
        return read(data[start:end]), end

    return decoded


def _text(data: bytes) -> str:
    return data.decode()


def _symbol(data: bytes) -> Symbol:
    return Symbol(data, "ascii")


def _small_text(data: bytes, offset: int, _depth: int) -> tuple[str, int]:
    """Apart from `_sized`, because it is by far the most frequent."""
    start = offset + 1
    end = start + data[offset]
    if end > len(data):
        raise decode_error("a value is longer than the bytes")
    return data[start:end].decode(), end


SCALARS: Mapping[int, Decoder] = {
    0x40: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x43: _constant(0),
    0x44: _constant(0),
    0x45: _empty,
    0x50: _octet,
    0x51: _packed("b"),
    0x52: _octet,
    0x53: _octet,
    0x54: _packed("b"),
    0x55: _packed("b"),
    0x56: _boolean,
    0x60: _packed("H"),
    0x61: _packed("h"),
    0x70: _packed("I"),
    0x71: _packed("i"),
    0x72: _packed("f"),
    0x73: _packed("I", _char),
    0x74: _packed("4s", Decimal32),
    0x80: _packed("Q"),
    0x81: _packed("q"),
    0x82: _packed("d"),
    0x83: _packed("q", Timestamp),
    0x84: _packed("8s", Decimal64),
    0x94: _packed("16s", Decimal128),
    0x98: _packed("16s", _uuid),
    0xA0: _sized(False, bytes),
    0xA1: _small_text,
    0xA3: _sized(False, _symbol),
    0xB0: _sized(True, bytes),
    0xB1: _sized(True, _text),
    0xB3: _sized(True, _symbol),
}
