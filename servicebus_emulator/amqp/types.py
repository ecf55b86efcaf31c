"""The types of AMQP 1.0 that Python has no type for, and the error of this package.

What is decoded is plain: every integer is an `int`. The wrappers are for those who encode, to say
which type of AMQP they mean.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class AmqpError(Exception):
    """What the peer sent is wrong: the connection or the link ends with this condition."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(f"{condition}: {description}")
        self.condition = condition
        self.description = description


def decode_error(description: str) -> AmqpError:
    return AmqpError("amqp:decode-error", description)


class Symbol(str):
    """A name out of a known set, in ASCII."""

    __slots__ = ()


class Char(str):
    """One character of Unicode."""

    __slots__ = ()


class Ubyte(int):
    __slots__ = ()


class Ushort(int):
    __slots__ = ()


class Uint(int):
    __slots__ = ()


class Ulong(int):
    __slots__ = ()


class Byte(int):
    __slots__ = ()


class Short(int):
    __slots__ = ()


class Int(int):
    __slots__ = ()


class Long(int):
    __slots__ = ()


class Timestamp(int):
    """Milliseconds since the epoch."""

    __slots__ = ()


class Float(float):
    """With 32 bits; a plain `float` has 64."""

    __slots__ = ()


class Decimal32(bytes):
    """The four bytes as they travel: nobody here computes with them."""

    __slots__ = ()


class Decimal64(bytes):
    __slots__ = ()


class Decimal128(bytes):
    __slots__ = ()


class Described(NamedTuple):
    """A value with what it means."""

    descriptor: object
    value: object


class Kind(Enum):
    """What an array may hold when we write it; the value is the constructor of the elements."""

    BOOLEAN = 0x56
    UBYTE = 0x50
    USHORT = 0x60
    UINT = 0x70
    ULONG = 0x80
    INT = 0x71
    LONG = 0x81
    DOUBLE = 0x82
    TIMESTAMP = 0x83
    UUID = 0x98
    BINARY = 0xB0
    STRING = 0xB1
    SYMBOL = 0xB3


class Array(NamedTuple):
    """Values of one type. Decoded, an array is a list."""

    kind: Kind
    values: Sequence[object]
