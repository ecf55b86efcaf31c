"""Bytes that are no AMQP, or nearly: that connection ends with an error, no other is disturbed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servicebus_emulator.amqp import (
    HEADER_AMQP,
    HEADER_SASL,
    Accepted,
    Attach,
    Begin,
    Close,
    Disposition,
    Flow,
    FrameReader,
    Open,
    SaslInit,
    Source,
    Symbol,
    Target,
    Transfer,
    encode_frame,
    encode_sasl_frame,
)
from servicebus_emulator.broker import QueueSettings
from servicebus_emulator.messages import Message
from tests.emulator.links.peer import QUEUE, FakeHost, Peer, working_host
from tests.runner.tiers import examples

MESSAGE = Message.build(b"x" * 100, message_id="m", properties={"service": "ocr", "lane": 3})
CONVERSATION = (
    HEADER_SASL,
    encode_sasl_frame(SaslInit(Symbol("ANONYMOUS"))),
    HEADER_AMQP,
    encode_frame(0, Open("peer", hostname="here", max_frame_size=65536, idle_time_out=1000)),
    encode_frame(1, Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100)),
    encode_frame(1, Attach("c", 0, True, source=Source("$cbs"), target=Target("$cbs"))),
    encode_frame(1, Attach("d", 1, False, source=Source("$cbs"), target=Target("$cbs"))),
    encode_frame(1, Attach("s", 2, False, source=Source("me"), target=Target(QUEUE))),
    encode_frame(1, Attach("r", 3, True, source=Source(QUEUE), target=Target("me"))),
    encode_frame(1, Flow(0, 100, 0, 100, 3, 0, 10)),
    encode_frame(1, Transfer(2, 0, b"0", 0), MESSAGE.stored()),
    encode_frame(1, Transfer(1, 1, b"1", 0), MESSAGE.stored()),
    encode_frame(1, Disposition(True, 0, None, False, Accepted())),
    encode_frame(0, Close()),
)
STREAM = b"".join(CONVERSATION)


def last_words(peer: Peer) -> list[object]:
    """The frames that the peer was sent, from the protocol header of AMQP on."""
    start = peer.bytes_read.find(HEADER_AMQP)
    if start < 0:
        return []
    words: list[object] = []
    reader = FrameReader(1 << 20)
    reader.feed(bytes(peer.bytes_read[start + len(HEADER_AMQP) :]))
    while (frame := reader.next()) is not None:
        words.append(frame.performative)
    return words


def check_that_others_work(host: FakeHost) -> None:
    host.broker.create_queue("other", QueueSettings())
    sound = Peer(host).begin()
    sound.attach_receiver("other")
    sound.credit(1)
    host.broker.send("other", [MESSAGE])
    assert sound.received()


def feed(data: bytes) -> Peer:
    """What comes out must be AMQP; where the connection ended, a close is the last word."""
    host = working_host()
    peer = Peer(host)
    peer.write(data)
    words = last_words(peer)
    if peer.connection.is_over and words:
        assert isinstance(words[-1], Close)
    check_that_others_work(host)
    return peer


def test_the_conversation_itself_is_sound() -> None:
    peer = feed(STREAM)
    assert peer.connection.is_over
    (close,) = [word for word in last_words(peer) if isinstance(word, Close)]
    assert close.error is None


@given(st.binary(max_size=300))
def test_noise_ends_a_connection_at_most(noise: bytes) -> None:
    feed(noise)
    feed(HEADER_AMQP + noise)


@settings(max_examples=examples(200))
@given(st.data())
def test_a_conversation_with_changed_bytes_ends_at_most_its_connection(data: st.DataObject) -> None:
    stream = bytearray(STREAM)
    for _ in range(data.draw(st.integers(1, 6))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    feed(bytes(stream))


@given(st.lists(st.sampled_from(CONVERSATION), max_size=12))
def test_frames_in_any_order_end_at_most_their_connection(frames: list[bytes]) -> None:
    opening = CONVERSATION[:3]
    feed(b"".join((*opening, *frames)))


@given(st.integers(0, len(STREAM)))
def test_a_conversation_may_break_off_anywhere(length: int) -> None:
    host = working_host()
    peer = Peer(host)
    peer.write(STREAM[:length])
    peer.connection.closed()
    check_that_others_work(host)


@pytest.mark.parametrize(
    "frame",
    [
        b"\x00\x00\x00\x07\x02\x00\x00\x00",
        b"\x7f\xff\xff\xff\x02\x00\x00\x00",
        b"\x00\x00\x00\x08\x00\x00\x00\x00",
        b"\x00\x00\x00\x08\x02\x07\x00\x00",
        b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x10\x40",
        b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x99\x45",
        b"\x00\x00\x00\x0e\x02\x00\x00\x00" + b"\xff" * 6,
    ],
)
def test_a_malformed_frame_is_answered_with_its_error(frame: bytes) -> None:
    peer = feed(b"".join(CONVERSATION[:5]) + frame)
    close = last_words(peer)[-1]
    assert isinstance(close, Close)
    assert close.error is not None
    assert str(close.error.condition).startswith("amqp:")
    assert close.error.condition != "amqp:internal-error"
