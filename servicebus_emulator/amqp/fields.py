"""The types that fields of composites have: how each is written, and what may be read into it."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from servicebus_emulator.amqp import encoding
from servicebus_emulator.amqp.types import Kind, Symbol, decode_error

_Read: TypeAlias = Callable[[Any], Any]


class FieldType(NamedTuple):
    """`read` gets what was decoded and is never None; it raises for what the type does not hold."""

    write: Callable[[Any], bytes]
    read: _Read


def _of(kind: type, name: str) -> _Read:
    def read(value: object) -> object:
        if isinstance(value, kind):
            return value
        raise decode_error(f"a field is a {type(value).__name__}, and a {name} is expected")

    return read


def _unsigned(bits: int) -> _Read:
    limit = 1 << bits

    def read(value: object) -> object:
        if type(value) is int and 0 <= value < limit:
            return value
        raise decode_error(f"a field is {value!r:.40}, and a number of {bits} bits is expected")

    return read


def _read_symbols(value: object) -> object:
    """One symbol alone stands for an array of it."""
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in values):
        raise decode_error("a field holds something else than symbols")
    return values


def _read_map(value: object) -> object:
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return value
    raise decode_error("a field is no map of symbols")


def _write_map(value: dict[str, object]) -> bytes:
    return encoding.encode({Symbol(key): item for key, item in value.items()})


def _write_symbols(values: list[str]) -> bytes:
    return encoding.array(Kind.SYMBOL, values)


_write_ubyte = encoding.fixed(0x50, "B")
_write_ushort = encoding.fixed(0x60, "H")

BOOLEAN = FieldType(encoding.boolean, _of(bool, "boolean"))
UBYTE = FieldType(_write_ubyte, _unsigned(8))
USHORT = FieldType(_write_ushort, _unsigned(16))
UINT = FieldType(encoding.uint, _unsigned(32))
ULONG = FieldType(encoding.ulong, _unsigned(64))
STRING = FieldType(encoding.string, _of(str, "string"))
SYMBOL = FieldType(encoding.symbol, _of(str, "symbol"))
SYMBOLS = FieldType(_write_symbols, _read_symbols)
BINARY = FieldType(encoding.binary, _of(bytes, "binary"))
FIELDS = FieldType(_write_map, _read_map)
MAP = FieldType(encoding.encode, _of(dict, "map"))
