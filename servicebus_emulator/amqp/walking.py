"""A walk over AMQP bytes without a look into the values: where they begin and where they end."""

from struct import Struct, error

from servicebus_emulator.amqp.types import decode_error

DAMAGE = (IndexError, error, UnicodeDecodeError)
"""What reading raises where bytes are missing, or where they are no text."""

_UINT32 = Struct(">I").unpack_from
_SIZE_AND_COUNT = Struct(">II").unpack_from


def skip(data: bytes, offset: int) -> int:
    """Where the value at `offset` ends, without a look into it. It may end behind the data."""
    try:
        return _end_of(data, offset)
    except DAMAGE as reason:
        raise decode_error(f"the bytes are cut off: {reason}") from reason


def _end_of(data: bytes, offset: int) -> int:
    code = data[offset]
    while code == 0:
        offset = _end_of_descriptor(data, offset + 1)
        code = data[offset]
    width = _WIDTHS[code]
    if width >= 0:
        return offset + 1 + width
    if width == _ONE_BYTE:
        return offset + 2 + data[offset + 1]
    if width == _FOUR_BYTES:
        size: int = _UINT32(data, offset + 1)[0]
        return offset + 5 + size
    raise decode_error(f"there is no type with the constructor 0x{code:02x}")


def _end_of_descriptor(data: bytes, offset: int) -> int:
    code = data[offset]
    if code == 0 or code >= 0xC0:
        raise decode_error("a descriptor is no simple value")
    return _end_of(data, offset)


def map_entries(data: bytes, offset: int) -> tuple[int, int, int]:
    """Of the map at `offset`: where its keys and values begin, where they end, their number."""
    try:
        code = data[offset]
        if code == 0xC1:
            return small_span(data, offset + 1)
        if code == 0xD1:
            return large_span(data, offset + 1)
    except DAMAGE as reason:
        raise decode_error(f"the bytes are cut off: {reason}") from reason
    raise decode_error(f"a map is expected, not the constructor 0x{code:02x}")


def small_span(data: bytes, offset: int) -> tuple[int, int, int]:
    size, count = data[offset], data[offset + 1]
    end = offset + 1 + size
    if count >= size or end > len(data):
        raise decode_error("a compound is longer than its bytes")
    return offset + 2, end, count


def large_span(data: bytes, offset: int) -> tuple[int, int, int]:
    size, count = _SIZE_AND_COUNT(data, offset)
    end = offset + 4 + size
    if size < 4 or count > size - 4 or end > len(data):
        raise decode_error("a compound is longer than its bytes")
    return offset + 8, end, count


_ONE_BYTE, _FOUR_BYTES, _NO_TYPE = -1, -2, -3
_BY_UPPER_HALF = {
    0x4: 0,
    0x5: 1,
    0x6: 2,
    0x7: 4,
    0x8: 8,
    0x9: 16,
    0xA: _ONE_BYTE,
    0xB: _FOUR_BYTES,
    0xC: _ONE_BYTE,
    0xD: _FOUR_BYTES,
    0xE: _ONE_BYTE,
    0xF: _FOUR_BYTES,
}
_WIDTHS = [_BY_UPPER_HALF.get(code >> 4, _NO_TYPE) for code in range(256)]
