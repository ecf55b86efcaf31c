"""The sections of a message, found without a look into them."""

from typing import TypeAlias

from servicebus_emulator.amqp.decoding import decode
from servicebus_emulator.amqp.types import decode_error
from servicebus_emulator.amqp.walking import skip

HEADER = 0x70
DELIVERY_ANNOTATIONS = 0x71
MESSAGE_ANNOTATIONS = 0x72
PROPERTIES = 0x73
APPLICATION_PROPERTIES = 0x74
DATA = 0x75
SEQUENCE = 0x76
VALUE = 0x77
FOOTER = 0x78

_BINARY = frozenset({0xA0, 0xB0})
_NAMES = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE,
    "amqp:amqp-value:*": VALUE,
    "amqp:footer:map": FOOTER,
}


Section: TypeAlias = tuple[int, int, int, int]
"""Its code, where it starts, where its value starts behind the descriptor, and where it ends."""


def sections(data: bytes) -> list[Section]:
    """All of them, as they come. Each but data and sequences may come once."""
    found: list[Section] = []
    offset, size, seen = 0, len(data), 0
    while offset < size:
        start = offset
        if data[start : start + 2] == b"\x00\x53" and start + 2 < size:
            code, value = data[start + 2], start + 3
        else:
            code, value = _named(data, start)
        offset = skip(data, value)
        if not HEADER <= code <= FOOTER or offset > size:
            raise decode_error(f"section 0x{code:x} is unknown, or longer than the message")
        if code == DATA and data[value] not in _BINARY:
            raise decode_error("a data section is not binary")
        if code <= seen and _is_repeated(code, found):
            raise decode_error(f"a message has two sections 0x{code:x}")
        seen = code
        found.append((code, start, value, offset))
    return found


def _is_repeated(code: int, found: list[Section]) -> bool:
    return code not in (DATA, SEQUENCE) and any(code == other[0] for other in found)


def _named(data: bytes, offset: int) -> tuple[int, int]:
    """The descriptor in one of its longer forms."""
    if data[offset] != 0:
        raise decode_error("a message consists of described sections")
    descriptor, value = decode(data, offset + 1)
    code = _NAMES.get(descriptor, -1) if isinstance(descriptor, str) else descriptor
    if not isinstance(code, int):
        raise decode_error("a section is described by something else than a number or a symbol")
    return code, value
