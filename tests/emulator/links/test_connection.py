"""The protocol below the messages: how connections, sessions and links begin and end."""

from collections.abc import Sequence

import pytest
from azure.servicebus._pyamqp.utils import generate_sas_token

from servicebus_emulator.amqp import (
    HEADER_AMQP,
    HEADER_SASL,
    Attach,
    Begin,
    Close,
    Coordinator,
    Described,
    Detach,
    End,
    Flow,
    Int,
    Long,
    Open,
    SaslInit,
    Source,
    Symbol,
    Target,
    Transfer,
    Ulong,
    encode,
    encode_frame,
    encode_sasl_frame,
)
from servicebus_emulator.broker import Broker, Content, QueueSettings
from servicebus_emulator.connection_limits import ConnectionLimits
from servicebus_emulator.messages import Message
from servicebus_emulator.sas import Keys
from tests.emulator.links.peer import QUEUE, SENDING, FakeHost, Peer, put, working_host

BEGUN = Begin(
    remote_channel=0,
    next_outgoing_id=0,
    incoming_window=2**31 - 1,
    outgoing_window=2**31 - 1,
    handle_max=255,
)


def condition_of_close(peer: Peer) -> str:
    error = peer.one(Close).error
    assert error is not None
    return str(error.condition)


def test_frames_may_be_pipelined_before_any_answer() -> None:
    peer = Peer(working_host())
    everything = b"".join(
        (
            HEADER_SASL,
            encode_sasl_frame(SaslInit(Symbol("ANONYMOUS"))),
            HEADER_AMQP,
            encode_frame(0, Open("peer")),
            encode_frame(0, Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)),
        )
    )
    for byte in everything:
        peer.write(bytes([byte]))
    assert not peer.connection.is_over
    assert peer.bytes_read.endswith(encode_frame(0, BEGUN))


def test_sasl_may_be_left_out() -> None:
    peer = Peer(working_host())
    peer.write(HEADER_AMQP)
    assert peer.bytes_read == HEADER_AMQP
    assert not peer.connection.is_over


def test_a_mechanism_that_is_not_known_ends_the_connection() -> None:
    peer = Peer(working_host())
    peer.write(HEADER_SASL + encode_sasl_frame(SaslInit(Symbol("GSSAPI"))))
    assert peer.connection.is_over


@pytest.mark.parametrize("header", [b"HTTP/1.1", b"AMQP\x00\x00\x09\x01", b"AMQP\x02\x01\x00\x00"])
def test_another_protocol_is_told_which_one_is_spoken_here(header: bytes) -> None:
    peer = Peer(working_host())
    peer.write(header)
    assert peer.bytes_read == HEADER_AMQP
    assert peer.connection.is_over


def test_a_connection_closes_with_an_answer() -> None:
    peer = Peer(working_host()).begin()
    peer.send(Close())
    assert peer.one(Close).error is None
    assert peer.connection.is_over


def test_the_first_frame_must_be_open() -> None:
    peer = Peer(working_host())
    peer.greet()
    peer.send(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    assert condition_of_close(peer) == "amqp:not-allowed"


def test_a_second_open_is_an_error() -> None:
    peer = Peer(working_host()).begin()
    peer.send(Open("again"))
    assert condition_of_close(peer) == "amqp:not-allowed"


def test_a_channel_is_used_once_at_a_time() -> None:
    peer = Peer(working_host()).begin()
    peer.send(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    assert condition_of_close(peer) == "amqp:not-allowed"


def test_frames_for_a_session_that_has_ended_are_passed_over() -> None:
    peer = Peer(working_host()).begin()
    peer.send(End())
    peer.send(Detach(3, closed=True))
    assert [type(one) for one in peer.said()] == [End]
    assert not peer.connection.is_over


def test_empty_frames_keep_the_connection_as_often_as_the_peer_asks() -> None:
    host = working_host()
    peer = Peer(host)
    peer.greet()
    peer.send(Open("peer", idle_time_out=60_000))
    peer.one(Open)
    for _ in range(3):
        host.pass_time(30_000)
        assert peer.said() == [None]


def test_a_peer_that_wants_frames_too_often_is_refused() -> None:
    peer = Peer(working_host())
    peer.greet()
    peer.send(Open("peer", idle_time_out=10))
    assert condition_of_close(peer) == "amqp:not-allowed"


def test_a_peer_that_sends_empty_frames_is_never_silent() -> None:
    host = working_host()
    peer = Peer(host).begin()
    for _ in range(10):
        host.pass_time(host.limits.idle_ms // 2)
        peer.write(b"\x00\x00\x00\x08\x02\x00\x00\x00")
    assert not peer.connection.is_over


def test_no_peer_is_silent_before_the_whole_idle_time_out() -> None:
    host = working_host()
    peer = Peer(host).begin()
    host.pass_time(host.limits.idle_ms // 2 - 1)
    peer.write(b"\x00\x00\x00\x08\x02\x00\x00\x00")
    for _ in range(2):
        host.pass_time(host.limits.idle_ms // 2)
    assert not peer.connection.is_over
    host.pass_time(host.limits.idle_ms // 2)
    assert condition_of_close(peer) == "amqp:connection:forced"


def test_a_peer_that_has_opened_and_shown_a_token_is_past_the_handshake() -> None:
    resource = "sb://host/work"
    expiry = working_host().clock() // 1000 + 60
    signed: str = generate_sas_token(resource, "root", "secret", expiry)  # type: ignore[no-untyped-call]
    for keys, token, is_kept in (
        (Keys(), None, True),
        (Keys({"root": "secret"}), None, False),
        (Keys({"root": "secret"}), signed, True),
    ):
        peer = Peer(FakeHost(keys=keys)).begin()
        if token is not None:
            peer.connection.authorization.put(resource, token)
        peer.connection.end_handshake()
        assert peer.connection.is_over is not is_kept


def test_a_sasl_frame_is_short() -> None:
    peer = Peer(working_host())
    peer.write(HEADER_SASL)
    peer.write((4096).to_bytes(4, "big") + b"\x02\x01\x00\x00")
    assert peer.connection.is_over


def test_a_connection_has_so_many_links_and_no_more() -> None:
    host = working_host()
    host.limits = ConnectionLimits(links=2)
    peer = Peer(host).begin()
    for handle in range(2):
        peer.attach_receiver(handle=handle)
    assert not peer.connection.is_over
    peer.attach_receiver(handle=2)
    assert condition_of_close(peer) == "amqp:resource-limit-exceeded"


def test_requests_of_a_peer_that_does_not_read_wait_with_it() -> None:
    """A kilobyte of requests for a mebibyte each: one is answered, then the rest."""
    host = working_host()
    put(host, 250, 100_000)
    peer = Peer(host).begin()
    source, target = Source(f"{QUEUE}/$management"), Target("reply")
    peer.send(Attach("responses", 0, role=True, source=source, target=target))
    source, target = Source("reply"), Target(f"{QUEUE}/$management")
    peer.send(Attach("requests", 1, role=False, source=source, target=target))
    peer.frames()
    asked = b"".join(encode_frame(0, *_peek(number)) for number in range(20))
    peer.takes_output = False
    peer.connection.receive(asked)
    first = len(peer.connection.take_output())
    assert 1_000_000 < first < 1_500_000
    assert peer.connection.take_output() == b""
    for _ in range(19):
        peer.connection.resume()
        assert len(peer.connection.take_output()) > 1_000_000
    peer.connection.resume()
    assert peer.connection.take_output() == b""


def _peek(number: int) -> tuple[Transfer, bytes]:
    body = {"from-sequence-number": Long(0), "message-count": Int(250)}
    sections = (
        Described(Ulong(0x73), [Ulong(number), None, None, None, "reply"]),
        Described(Ulong(0x74), {"operation": "com.microsoft:peek-message"}),
        Described(Ulong(0x77), body),
    )
    transfer = Transfer(1, delivery_id=number, delivery_tag=b"t", message_format=0)
    return transfer, b"".join(encode(each) for each in sections)


def test_a_transfer_without_a_link_ends_the_connection() -> None:
    peer = Peer(working_host()).begin()
    peer.transfer(0, b"")
    assert condition_of_close(peer) == "amqp:session:unattached-handle"


def test_a_link_to_nowhere_is_refused_and_the_connection_goes_on() -> None:
    peer = Peer(working_host()).begin()
    peer.attach_receiver("nowhere")
    answer, refusal = peer.one(Attach), peer.one(Detach)
    assert (answer.source, answer.target) == (None, None)
    assert refusal.error is not None
    assert refusal.error.condition == "amqp:not-found"
    peer.attach_receiver()
    assert peer.one(Attach).source is not None


def test_transactions_are_refused_by_name() -> None:
    peer = Peer(working_host()).begin()
    peer.send(Attach("sender", 0, role=False, source=Source("me"), target=Coordinator()))
    error = peer.one(Detach).error
    assert error is not None
    assert error.condition == "amqp:not-implemented"


def test_a_handle_is_used_once_at_a_time() -> None:
    peer = Peer(working_host()).begin()
    peer.attach_sender()
    peer.attach_sender()
    assert condition_of_close(peer) == "amqp:session:handle-in-use"


def test_addresses_are_uris_or_paths_in_any_letter_case() -> None:
    host = working_host()
    for address in ("amqps://127.0.0.1:5672/Work", "WORK", "/work", "amqp://x/wo%72k"):
        peer = Peer(host).begin()
        peer.attach_sender(address)
        assert peer.one(Attach).target == Target(address)


def test_a_sender_learns_how_large_a_message_may_be() -> None:
    host = working_host()
    host.broker.create_queue("large", QueueSettings(max_message_bytes=1_000_000))
    peer = Peer(host).begin()
    peer.attach_sender("large")
    answer = peer.one(Attach)
    assert answer.max_message_size == 1_000_000
    assert answer.properties == {"com.microsoft:max-message-batch-size": 1_000_000}


def test_a_queue_that_is_deleted_ends_its_links() -> None:
    host = working_host()
    peer = Peer(host).begin()
    peer.attach_receiver()
    peer.credit(1)
    host.broker.delete_queue(QUEUE)
    error = peer.one(Detach).error
    assert error is not None
    assert error.condition == "amqp:not-found"


def test_what_is_sent_on_a_link_that_just_ended_is_passed_over() -> None:
    host = working_host()
    peer = Peer(host).begin()
    peer.attach_receiver(handle=SENDING)
    host.broker.delete_queue(QUEUE)
    peer.transfer(0, Message.build(b"late").stored())
    assert not peer.connection.is_over


def test_credit_for_senders_is_renewed_before_it_is_used_up() -> None:
    host = working_host()
    peer = Peer(host).begin()
    peer.attach_sender()
    credit = peer.one(Flow).link_credit
    assert credit is not None
    payload = Message.build(b"x").stored()
    for number in range(credit):
        peer.transfer(number, payload, settled=True)
    granted = [one for one in peer.said() if isinstance(one, Flow)]
    assert granted
    assert granted[-1].delivery_count is not None
    assert granted[-1].delivery_count + (granted[-1].link_credit or 0) > credit


def test_a_peer_that_vanishes_leaves_its_messages_locked() -> None:
    host = working_host()
    put(host, 1)
    peer = Peer(host).begin()
    peer.attach_receiver()
    peer.credit(1)
    assert len(peer.received()) == 1
    peer.connection.closed()
    second = Peer(host).begin()
    second.attach_receiver()
    second.credit(1)
    assert second.received() == []
    host.pass_time(60_000)
    assert len(second.received()) == 1


def test_a_defect_ends_one_connection_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Defective(Broker):
        def send(self, _address: str, _messages: Sequence[Content], /) -> None:
            raise ZeroDivisionError

    host = working_host()
    sound = Peer(host).begin()
    peer = Peer(host).begin()
    peer.attach_sender()
    host.broker.__class__ = Defective
    peer.transfer(0, Message.build(b"x").stored())
    assert condition_of_close(peer) == "amqp:internal-error"
    assert "ZeroDivisionError" in caplog.text
    sound.attach_receiver()
    assert sound.one(Attach).source is not None
