"""Python values to AMQP bytes, in the shortest form of each type."""

from collections.abc import Callable, Mapping, Sequence
from struct import Struct, error
from typing import Any
from uuid import UUID

from servicebus_emulator.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Kind,
    Long,
    Short,
    Symbol,
    Timestamp,
    Ubyte,
    Uint,
    Ulong,
    Ushort,
)

_UINT32 = Struct(">I")
_SIZE_AND_COUNT = Struct(">II")
_LARGEST_LONG = 2**63 - 1


def encode(value: object) -> bytes:
    """`ValueError` for what its type cannot hold, `TypeError` for what AMQP has no type for."""
    encoder = _ENCODERS.get(type(value)) or _inherited(value)
    try:
        return encoder(value)
    except (error, OverflowError) as reason:
        raise ValueError(f"{value!r} does not fit into its type: {reason}") from reason


def uint(value: int) -> bytes:
    if value == 0:
        return b"\x43"
    return bytes((0x52, value)) if 0 < value < 256 else _large_uint(value)


def ulong(value: int) -> bytes:
    if value == 0:
        return b"\x44"
    return bytes((0x53, value)) if 0 < value < 256 else _large_ulong(value)


def boolean(value: bool) -> bytes:
    return b"\x41" if value else b"\x42"


def string(value: str) -> bytes:
    return _sized(0xA1, value.encode())


def symbol(value: str) -> bytes:
    return _sized(0xA3, value.encode("ascii"))


def binary(value: bytes) -> bytes:
    return _sized(0xA0, value)


def map_of(encoded: bytes, count: int) -> bytes:
    """A map out of its encoded keys and values; `count` says how many there are of both."""
    return _compound(0xC1, encoded, count)


def list_of(fields: Sequence[bytes]) -> bytes:
    return _compound(0xC0, b"".join(fields), len(fields)) if fields else b"\x45"


def described(code: int, encoded: bytes) -> bytes:
    return b"\x00" + ulong(code) + encoded


def array(kind: Kind, values: Sequence[object]) -> bytes:
    pack = _ELEMENTS[kind]
    return _compound(0xE0, bytes((kind.value,)) + b"".join(map(pack, values)), len(values))


def _sized(code: int, data: bytes) -> bytes:
    if len(data) < 256:
        return bytes((code, len(data))) + data
    return bytes((code + 0x10,)) + _UINT32.pack(len(data)) + data


def _compound(code: int, encoded: bytes, count: int) -> bytes:
    if len(encoded) < 255 and count < 256:
        return bytes((code, len(encoded) + 1, count)) + encoded
    return bytes((code + 0x10,)) + _SIZE_AND_COUNT.pack(len(encoded) + 4, count) + encoded


def fixed(code: int, form: str) -> Callable[[Any], bytes]:
    pack = Struct(">B" + form).pack
    return lambda value: pack(code, value)


def _small_or(small: int, large: Callable[[int], bytes]) -> Callable[[int], bytes]:
    return lambda value: bytes((small, value & 0xFF)) if -128 <= value < 128 else large(value)


_large_uint = fixed(0x70, "I")
_large_ulong = fixed(0x80, "Q")
_int = _small_or(0x54, fixed(0x71, "i"))
_long = _small_or(0x55, fixed(0x81, "q"))


def _integer(value: int) -> bytes:
    return _long(value) if value <= _LARGEST_LONG else _large_ulong(value)


def _decimal(code: int, width: int) -> Callable[[bytes], bytes]:
    def encoded(value: bytes) -> bytes:
        if len(value) != width:
            raise ValueError(f"a decimal of {8 * width} bits has {width} bytes")
        return bytes((code,)) + value

    return encoded


def _char(value: str) -> bytes:
    if len(value) != 1:
        raise ValueError("a char is one character")
    return b"\x73" + _UINT32.pack(ord(value))


def _map(value: Mapping[object, object]) -> bytes:
    items = [encode(part) for item in value.items() for part in item]
    return map_of(b"".join(items), len(items))


def _described(value: Described) -> bytes:
    return b"\x00" + encode(value.descriptor) + encode(value.value)


def _plain(form: str) -> Callable[[Any], bytes]:
    return Struct(">" + form).pack


def _with_size(data: bytes) -> bytes:
    return _UINT32.pack(len(data)) + data


_ELEMENTS: Mapping[Kind, Callable[[Any], bytes]] = {
    Kind.BOOLEAN: _plain("?"),
    Kind.UBYTE: _plain("B"),
    Kind.USHORT: _plain("H"),
    Kind.UINT: _plain("I"),
    Kind.ULONG: _plain("Q"),
    Kind.INT: _plain("i"),
    Kind.LONG: _plain("q"),
    Kind.DOUBLE: _plain("d"),
    Kind.TIMESTAMP: _plain("q"),
    Kind.UUID: lambda value: value.bytes,
    Kind.BINARY: _with_size,
    Kind.STRING: lambda value: _with_size(value.encode()),
    Kind.SYMBOL: lambda value: _with_size(value.encode("ascii")),
}

_ENCODERS: Mapping[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"\x40",
    bool: boolean,
    int: _integer,
    float: fixed(0x82, "d"),
    str: string,
    bytes: binary,
    UUID: lambda value: b"\x98" + value.bytes,
    Symbol: symbol,
    Char: _char,
    Ubyte: fixed(0x50, "B"),
    Ushort: fixed(0x60, "H"),
    Uint: uint,
    Ulong: ulong,
    Byte: fixed(0x51, "b"),
    Short: fixed(0x61, "h"),
    Int: _int,
    Long: _long,
    Float: fixed(0x72, "f"),
    Timestamp: fixed(0x83, "q"),
    Decimal32: _decimal(0x74, 4),
    Decimal64: _decimal(0x84, 8),
    Decimal128: _decimal(0x94, 16),
    Described: _described,
    Array: lambda value: array(*value),
    list: lambda value: list_of([encode(item) for item in value]),
    tuple: lambda value: list_of([encode(item) for item in value]),
    dict: _map,
    bytearray: lambda value: binary(bytes(value)),
    memoryview: lambda value: binary(bytes(value)),
}


def _inherited(value: object) -> Callable[[Any], bytes]:
    for kind in type(value).__mro__:
        if kind in _ENCODERS:
            return _ENCODERS[kind]
    raise TypeError(f"AMQP has no type for {type(value).__name__}")
