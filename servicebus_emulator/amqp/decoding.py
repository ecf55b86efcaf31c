"""AMQP bytes to Python values. Whatever the bytes are, it ends soon, and wrong ones are an
`AmqpError`: nesting is bounded, a compound has no more elements than bytes, and every element must
end where its compound says."""

from collections.abc import Callable
from typing import Any, TypeAlias

from servicebus_emulator.amqp.scalars import SCALARS, Decoder
from servicebus_emulator.amqp.types import Described, decode_error
from servicebus_emulator.amqp.walking import DAMAGE, large_span, small_span

_Span: TypeAlias = Callable[[bytes, int], tuple[int, int, int]]

_DEEPEST = 32
_NULL, _EMPTY_LIST, _SHORT_TEXT = 0x40, 0x45, 0xA1


def decode(data: bytes | memoryview, offset: int = 0) -> tuple[Any, int]:
    """The value at `offset`, and where the next one begins. A memoryview is copied first."""
    if type(data) is not bytes:
        data = bytes(data)
    try:
        return _DECODERS[data[offset]](data, offset + 1, 0)
    except DAMAGE as reason:
        raise decode_error(f"the bytes are cut off or no text: {reason}") from reason


def _list(span: _Span) -> Decoder:
    def decoded(data: bytes, offset: int, depth: int) -> tuple[list[Any], int]:
        at, end, count = span(data, offset)
        depth = _deeper(depth)
        values: list[Any] = [None] * count
        for index in range(count):
            code = data[at]
            if code == _NULL:  # most fields of composites are absent
                at += 1
            else:
                values[index], at = _DECODERS[code](data, at + 1, depth)
        return values, _exact(at, end)

    return decoded


def _map(span: _Span) -> Decoder:
    def decoded(data: bytes, offset: int, depth: int) -> tuple[dict[Any, Any], int]:
        at, end, count = span(data, offset)
        depth = _deeper(depth)
        if count & 1:
            raise decode_error("a map has a key without a value")
        values = {}
        for _ in range(0, count, 2):
            # Short texts are read in place: most application properties are. One that is too long
            # is found out at the end, for no element may end behind its compound.
            code = data[at]
            if code == _SHORT_TEXT:
                start = at + 2
                at = start + data[at + 1]
                key: Any = data[start:at].decode()
            else:
                key, at = _key(data, at, depth)
            code = data[at]
            if code == _SHORT_TEXT:
                start = at + 2
                at = start + data[at + 1]
                values[key] = data[start:at].decode()
            else:
                values[key], at = _DECODERS[code](data, at + 1, depth)
        return values, _exact(at, end)

    return decoded


def _key(data: bytes, offset: int, depth: int) -> tuple[Any, int]:
    key, at = _DECODERS[data[offset]](data, offset + 1, depth)
    if isinstance(key, list | dict | Described):
        raise decode_error("a key of a map is a compound")
    return key, at


def _array(span: _Span) -> Decoder:
    def decoded(data: bytes, offset: int, depth: int) -> tuple[list[Any], int]:
        at, end, count = span(data, offset)
        depth = _deeper(depth)
        if at == end:
            return [], end
        element, at = _constructor(data, at, depth)
        values = []
        for _ in range(count):
            value, at = element(data, at, depth)
            values.append(value)
        return values, _exact(at, end)

    return decoded


def _constructor(data: bytes, offset: int, depth: int) -> tuple[Decoder, int]:
    """How the elements of an array are read, and where they begin."""
    code = data[offset]
    if code:
        return _DECODERS[code], offset + 1
    depth = _deeper(depth)
    descriptor, at = _descriptor(data, offset + 1, depth)
    inner, at = _constructor(data, at, depth)

    def element(data: bytes, offset: int, depth: int) -> tuple[Described, int]:
        value, at = inner(data, offset, depth)
        return Described(descriptor, value), at

    return element, at


def _described(data: bytes, offset: int, depth: int) -> tuple[Described, int]:
    depth = _deeper(depth)
    descriptor, at = _descriptor(data, offset, depth)
    value, at = _DECODERS[data[at]](data, at + 1, depth)
    return Described(descriptor, value), at


def _descriptor(data: bytes, offset: int, depth: int) -> tuple[Any, int]:
    code = data[offset]
    if code not in SCALARS or code == _EMPTY_LIST:
        raise decode_error("a descriptor is no simple value")
    return SCALARS[code](data, offset + 1, depth)


def _deeper(depth: int) -> int:
    if depth >= _DEEPEST:
        raise decode_error(f"values are nested deeper than {_DEEPEST}")
    return depth + 1


def _exact(at: int, end: int) -> int:
    if at != end:
        raise decode_error("the elements of a compound do not fill its size")
    return end


def _unknown(data: bytes, offset: int, _depth: int) -> tuple[object, int]:
    raise decode_error(f"there is no type with the constructor 0x{data[offset - 1]:02x}")


_DECODERS: list[Decoder] = [SCALARS.get(code, _unknown) for code in range(256)]
_DECODERS[0x00] = _described
_DECODERS[0xC0] = _list(small_span)
_DECODERS[0xC1] = _map(small_span)
_DECODERS[0xD0] = _list(large_span)
_DECODERS[0xD1] = _map(large_span)
_DECODERS[0xE0] = _array(small_span)
_DECODERS[0xF0] = _array(large_span)
