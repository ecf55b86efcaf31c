from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicebus_emulator.amqp import (
    HEADER_AMQP,
    HEADER_SASL,
    Accepted,
    AmqpError,
    Begin,
    Close,
    Disposition,
    Error,
    Frame,
    FrameReader,
    Modified,
    Open,
    Rejected,
    Released,
    SaslInit,
    SaslOutcome,
    State,
    Transfer,
    disposition_frame,
    encode_frame,
    encode_sasl_frame,
    transfer_frame,
    transfer_frames,
)
from tests.emulator.amqp.values import unsigned

TRANSFER = Transfer(2, 7, b"tag", 0, settled=False)
FRAMES = [
    Frame(0, Open("container", "host", 65536)),
    Frame(1, Begin(None, 0, 100, 100)),
    Frame(0, None),
    Frame(1, TRANSFER, b"payload" * 30),
    Frame(1, Disposition(True, 7, None, True, Accepted())),
    Frame(0, Close(Error("amqp:internal-error", "why"))),
]
STREAM = b"".join(encode_frame(*frame) for frame in FRAMES)


def frames_of(*chunks: bytes, max_frame_size: int = 1 << 20) -> list[Frame]:
    reader = FrameReader(max_frame_size)
    found = []
    for chunk in chunks:
        reader.feed(chunk)
        while frame := reader.next():
            found.append(frame)
    return found


def test_frames_come_out_as_they_went_in() -> None:
    assert frames_of(STREAM) == FRAMES


@pytest.mark.parametrize("cut", range(len(STREAM)))
def test_a_stream_can_be_cut_at_any_byte(cut: int) -> None:
    assert frames_of(STREAM[:cut], STREAM[cut:]) == FRAMES


def test_a_stream_can_come_byte_by_byte() -> None:
    assert frames_of(*(STREAM[index : index + 1] for index in range(len(STREAM)))) == FRAMES


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_a_stream_can_be_cut_into_many_pieces(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in pairwise(edges)]
    assert frames_of(*pieces) == FRAMES


def test_protocol_headers_are_taken_when_they_are_expected() -> None:
    reader = FrameReader(512)
    init = SaslInit("ANONYMOUS", b"", "host")
    reader.feed(HEADER_SASL[:5])
    assert reader.take_header() is None
    reader.feed(HEADER_SASL[5:] + encode_sasl_frame(init) + HEADER_AMQP + STREAM[:3])
    assert reader.take_header() == HEADER_SASL
    assert reader.next() == Frame(0, init)
    assert reader.take_header() == HEADER_AMQP
    assert reader.take_header() is None


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("0000000702000000", id="smaller than its header"),
        pytest.param("0000020102000000", id="larger than agreed"),
        pytest.param("ffffffff02000000", id="four billion bytes"),
        pytest.param("0000000801000000", id="a header of four bytes"),
        pytest.param("0000000803000000", id="a header longer than the frame"),
        pytest.param("0000000802020000", id="an unknown type"),
        pytest.param(HEADER_AMQP.hex(), id="a protocol header"),
    ],
)
def test_impossible_frames_are_framing_errors(data: str) -> None:
    with pytest.raises(AmqpError) as refused:
        frames_of(bytes.fromhex(data), max_frame_size=512)
    assert refused.value.condition == "amqp:connection:framing-error"


def test_an_extended_header_is_skipped() -> None:
    assert frames_of(bytes.fromhex("0000000c03000001deadbeef")) == [Frame(1, None)]


@pytest.mark.parametrize(
    ("data", "other_type"),
    [
        pytest.param(encode_sasl_frame(SaslOutcome(0)), b"\x00", id="sasl as amqp"),
        pytest.param(encode_frame(0, Close()), b"\x01", id="amqp as sasl"),
        pytest.param(encode_frame(0, TRANSFER), b"\x01", id="transfer as sasl"),
    ],
)
def test_a_performative_belongs_into_its_type_of_frame(data: bytes, other_type: bytes) -> None:
    with pytest.raises(AmqpError, match="wrong type"):
        frames_of(data[:5] + other_type + data[6:])


def test_only_a_transfer_has_a_payload() -> None:
    with pytest.raises(AmqpError, match="only a transfer"):
        frames_of(encode_frame(0, Close(), b"x"))


def test_a_performative_ends_within_its_frame() -> None:
    close = encode_frame(0, Close(Error("a", "b")))
    shorter = (len(close) - 1).to_bytes(4, "big") + close[4:]
    with pytest.raises(AmqpError, match="longer than its frame"):
        frames_of(shorter + close)


@given(
    channel=unsigned(16),
    handle=unsigned(32),
    delivery_id=unsigned(32),
    tag=st.binary(max_size=32),
    settled=st.booleans(),
    payload=st.binary(max_size=600),
    message_format=unsigned(32),
)
def test_a_transfer_by_hand_is_the_one_by_the_table(
    channel: int,
    handle: int,
    delivery_id: int,
    tag: bytes,
    settled: bool,
    payload: bytes,
    message_format: int,
) -> None:
    data = transfer_frame(
        *(channel, handle, delivery_id, tag, settled, payload), message_format=message_format
    )
    transfer = Transfer(handle, delivery_id, tag, message_format, settled)
    assert frames_of(data) == [Frame(channel, transfer, payload)]
    assert frames_of(encode_frame(channel, transfer, payload)) == [
        Frame(channel, transfer, payload)
    ]


@given(st.booleans(), st.integers(0, 5000), st.integers(512, 1500))
def test_a_long_payload_is_split_over_frames(
    settled: bool, length: int, max_frame_size: int
) -> None:
    last, tag, payload = 2**32 - 1, b"t" * 32, bytes(n % 251 for n in range(length))
    data = transfer_frames(
        *(1, last, last, tag, settled, payload, max_frame_size), message_format=last
    )
    first, *rest = frames_of(data, max_frame_size=max_frame_size)
    assert first.payload + b"".join(frame.payload for frame in rest) == payload
    assert first.performative == Transfer(last, last, tag, last, settled, more=bool(rest))
    mores = [Transfer(last, settled=settled, more=True)] * (len(rest) - 1)
    assert [frame.performative for frame in rest[:-1]] == mores
    assert [frame.performative for frame in rest[-1:]] == [Transfer(last, settled=settled)] * bool(
        rest
    )
    assert len(rest) <= length // (max_frame_size - 65)


@pytest.mark.parametrize(
    "state",
    [
        Accepted(),
        Released(),
        Rejected(),
        Rejected(Error("com.microsoft:message-lock-lost", "x" * 10)),
        Rejected(Error("com.microsoft:message-lock-lost", "x" * 1000)),
        Modified(True, False),
    ],
    ids=["accepted", "released", "rejected", "short error", "long error", "modified"],
)
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("role", [True, False])
def test_a_disposition_by_hand_is_the_one_by_the_table(
    state: State, settled: bool, role: bool
) -> None:
    [frame] = frames_of(disposition_frame(65535, 2**32 - 1, state, settled, role=role))
    assert frame == Frame(65535, Disposition(role, 2**32 - 1, None, settled, state))
    assert isinstance(frame.performative, Disposition)
    assert type(frame.performative.state) is type(state)


def test_a_disposition_speaks_for_the_sender_unless_told() -> None:
    [frame] = frames_of(disposition_frame(0, 1, Accepted(), True))
    assert frame.performative == Disposition(False, 1, None, True, Accepted())
