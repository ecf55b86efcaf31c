"""Whatever bytes come, they are read or they are an `AmqpError`, and it does not take long."""

from collections.abc import Callable
from contextlib import suppress
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from servicebus_emulator.amqp import (
    AmqpError,
    Attach,
    Described,
    FrameReader,
    Modified,
    Source,
    Target,
    Transfer,
    Ulong,
    decode,
    encode,
    encode_frame,
    skip,
)
from servicebus_emulator.messages import Message
from tests.emulator.amqp.values import VALUES

pytestmark = pytest.mark.check

MUCH = 1 << 18
ATTACH = Attach("link", 0, True, 0, 1, Source("a", default_outcome=Modified(True)), Target("b"))
FRAMES = encode_frame(3, ATTACH) + encode_frame(3, Transfer(0, 1, b"tag", 0, True), b"payload")
MESSAGE = Message.build(
    b"body", message_id="1", session_id="2", partition_key="2", ttl=5, properties={"a": 1, "b": "c"}
).encoded(sequence_number=1, enqueued_at=2, delivery_count=300, locked_until=3, state=0)


def read_frames(data: bytes) -> None:
    reader = FrameReader(4096)
    reader.feed(data)
    while reader.next():
        pass


def read_message(data: bytes) -> None:
    """All that can be asked of a message: what is wrong with it is said at once or never."""
    message = Message.parse(data)
    assert message.facts
    assert isinstance(message.body, bytes)
    changed = message.with_properties({"reason": "x"})
    assert changed.facts.properties["reason"] == "x"
    assert message.with_message_id("new").message_id == "new"
    message.encoded(sequence_number=1, enqueued_at=1, delivery_count=1, locked_until=1, state=0)
    assert Message.parse(message.stored()).size == message.size


def read_batch(data: bytes) -> None:
    Message.parse_batch(data)


READERS: list[Callable[[bytes], object]] = [
    decode,
    lambda data: skip(data, 0),
    read_frames,
    read_message,
    read_batch,
]


def read_all(data: bytes) -> None:
    for read in READERS:
        with suppress(AmqpError):
            read(data)


@given(st.binary(max_size=200))
@example(b"\x00\x53\x70")
@example(b"\x00\x53\x74\xa1\x00")
def test_random_bytes(data: bytes) -> None:
    read_all(data)
    read_all(b"\x00\x53\x74\xc1" + data)
    read_all((8 + len(data)).to_bytes(4, "big") + b"\x02\x00\x00\x00" + data)


@given(VALUES)
def test_any_value_in_any_place(value: object) -> None:
    data = encode(value)
    for code in range(0x70, 0x7A):
        read_all(b"\x00\x53" + bytes((code,)) + data)
    read_all(encode(Described(Ulong(0x12), ["name", value, value])))


@pytest.mark.parametrize("data", [FRAMES, MESSAGE], ids=["frames", "message"])
@given(data_of=st.data())
def test_mutated_bytes(data: bytes, data_of: st.DataObject) -> None:
    mutated = bytearray(data)
    for _ in range(data_of.draw(st.integers(1, 4))):
        mutated[data_of.draw(st.integers(0, len(data) - 1))] = data_of.draw(st.integers(0, 255))
    read_all(bytes(mutated))


@pytest.mark.parametrize("data", [FRAMES, MESSAGE], ids=["frames", "message"])
def test_every_single_byte_of_every_value(data: bytes) -> None:
    for index in range(len(data)):
        for octet in (0x00, 0x01, 0x40, 0x45, 0x7F, 0xA1, 0xB0, 0xC0, 0xD1, 0xF0, 0xFF):
            read_all(data[:index] + bytes((octet,)) + data[index + 1 :])


def test_bytes_cut_off_anywhere() -> None:
    whole = encode([{"a": [1, 2.5, b"x", None]}, Described(Ulong(1), ["text"] * 80)])
    for end in range(len(whole)):
        with pytest.raises(AmqpError):
            decode(whole[:end])


def _array_in_array(levels: int) -> bytes:
    """Each with one element, which is the next."""
    sizes = range(4 + 9 * levels, 4, -9)
    return b"".join(b"\xf0" + size.to_bytes(4, "big") + b"\x00\x00\x00\x01" for size in sizes)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xd0\x00\x10\x00\x00\x00\x00\x00\x01" * (MUCH // 9), id="lists"),
        pytest.param(b"\x00\x53\x01" * (MUCH // 3), id="descriptions"),
        pytest.param(b"\x00" * MUCH, id="descriptors"),
        pytest.param(_array_in_array(MUCH // 9), id="arrays"),
        pytest.param(b"\xe0\xff\xff\x00\x53\x01" * (MUCH // 6), id="described arrays"),
        pytest.param(b"\xf0\xff\xff\xff\xff\xff\xff\xff\xff\x40", id="an array of nothing"),
        pytest.param(b"\xd0\xff\xff\xff\xff\xff\xff\xff\xff", id="a count of four billion"),
        pytest.param(encode([[]] * (MUCH)), id="many empty lists"),
        pytest.param(encode([b"\xe0\x02\x00\x40"] * (MUCH // 8)), id="many arrays"),
        pytest.param(b"\x00\x53\x75\xa0\x00" * (MUCH // 5), id="many data sections"),
        pytest.param(b"\x00\x53\x76\x45" * (MUCH // 4), id="many sequences"),
        pytest.param(
            b"\x00\x53\x72\xd1" + (MUCH + 4).to_bytes(4, "big") + (MUCH).to_bytes(4, "big")
            + b"\x40" * MUCH,
            id="many annotations",
        ),
    ],
)  # fmt: skip
def test_much_malice_is_read_in_no_time(data: bytes) -> None:
    started = process_time()
    read_all(data)
    assert process_time() - started < 20  # quadratic time would be hours


def test_nesting_is_bounded() -> None:
    value: object = None
    for _ in range(32):
        value = [value]
    assert decode(encode(value))[0] == value
    with pytest.raises(AmqpError, match="nested deeper than 32"):
        decode(encode([value]))


def test_a_frame_that_trickles_in_takes_linear_time() -> None:
    frame = encode_frame(0, Transfer(0, 1, b"tag", 0, True), bytes(4 * MUCH))
    reader = FrameReader(8 * MUCH)
    started = process_time()
    for index in range(len(frame) - 1):
        reader.feed(frame[index : index + 1])
        assert reader.next() is None
    reader.feed(frame[-1:])
    assert reader.next()
    assert process_time() - started < 8
