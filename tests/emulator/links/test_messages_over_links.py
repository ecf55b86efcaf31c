"""Messages over links: sent, delivered, settled."""

import pytest

from servicebus_emulator.amqp import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    Error,
    Flow,
    Modified,
    Rejected,
    Released,
    Transfer,
)
from servicebus_emulator.amqp.encoding import binary, described
from servicebus_emulator.amqp.sections import DATA
from servicebus_emulator.broker import QueueSettings
from servicebus_emulator.faults import Fault, FaultKind, Point
from servicebus_emulator.messages import Message
from tests.emulator.links.peer import QUEUE, FakeHost, Peer, put, working_host

BATCH = 0x80013700
LOCK = 60_000


@pytest.fixture
def host() -> FakeHost:
    return working_host()


@pytest.fixture
def peer(host: FakeHost) -> Peer:
    peer = Peer(host).begin()
    peer.attach_sender()
    peer.attach_receiver()
    peer.frames()
    return peer


def ids(peer: Peer) -> list[str | None]:
    return [message.message_id for message in peer.received()]


def outcome(peer: Peer) -> object:
    """Of what was sent last, or settled last: the answer is always final."""
    answer = peer.one(Disposition)
    assert answer.settled
    return answer.state


def rejection(peer: Peer) -> str:
    state = outcome(peer)
    assert isinstance(state, Rejected)
    assert state.error is not None
    return str(state.error.condition)


def delivered(peer: Peer, host: FakeHost, count: int = 1) -> list[str | None]:
    put(host, count)
    peer.credit(count)
    return ids(peer)


def active(host: FakeHost) -> int:
    return host.broker.queue(QUEUE).counts.active


def test_a_message_is_accepted_and_delivered_as_it_was(peer: Peer) -> None:
    sent = Message.build(b"page", message_id="m", properties={"service": "ocr"})
    peer.transfer(7, sent.stored())
    answer = peer.one(Disposition)
    assert (answer.role, answer.first, answer.state) == (True, 7, Accepted())
    peer.credit(1)
    (found,) = peer.received()
    assert (found.body, found.message_id) == (b"page", "m")
    assert found.facts.properties == {"service": "ocr"}


def test_a_message_without_an_id_is_given_one(peer: Peer) -> None:
    peer.transfer(0, Message.build(b"page", subject="s").stored())
    peer.credit(1)
    (found,) = peer.received()
    assert found.message_id is not None
    assert len(found.message_id) == 32
    assert (found.facts.subject, found.body) == ("s", b"page")


def test_a_batch_is_several_messages(peer: Peer) -> None:
    messages = [Message.build(b"x", message_id=f"m{n}") for n in range(3)]
    batch = b"".join(described(DATA, binary(one.stored())) for one in messages)
    peer.transfer(0, batch, message_format=BATCH)
    peer.credit(5)
    assert ids(peer) == ["m0", "m1", "m2"]


def test_a_message_may_come_in_several_frames(peer: Peer) -> None:
    data = Message.build(b"x" * 1000, message_id="m").stored()
    peer.transfer(0, data[:400], more=True)
    peer.transfer(0, data[400:700], more=True, delivery_id=None)
    peer.transfer(0, data[700:], delivery_id=None)
    peer.credit(1)
    assert ids(peer) == ["m"]


def test_an_aborted_delivery_never_was(peer: Peer) -> None:
    data = Message.build(b"x", message_id="m").stored()
    peer.transfer(0, data[:5], more=True)
    peer.transfer(0, b"", aborted=True)
    peer.transfer(1, data)
    peer.credit(5)
    assert ids(peer) == ["m"]


def test_what_is_settled_by_the_sender_is_not_answered(peer: Peer) -> None:
    peer.transfer(0, Message.build(b"x").stored(), settled=True)
    assert peer.said() == []


@pytest.mark.parametrize("payload", [b"", b"\x00", b"no message", b"\x00\x53\x75\xa0\xff"])
def test_what_is_no_message_is_rejected_alone(peer: Peer, payload: bytes) -> None:
    peer.transfer(0, payload)
    if payload:
        assert rejection(peer) == "amqp:decode-error"
    peer.transfer(1, Message.build(b"x").stored())
    assert isinstance(outcome(peer), Accepted)


def test_a_message_that_is_too_large_is_rejected_and_nothing_of_it_is_kept(peer: Peer) -> None:
    part = b"x" * 60_000
    for number in range(100):
        peer.transfer(0, part, more=number < 99)
    assert rejection(peer) == "amqp:link:message-size-exceeded"
    peer.transfer(1, Message.build(b"x").stored())
    assert isinstance(outcome(peer), Accepted)


def test_rejections_have_all_fields_of_an_error(peer: Peer) -> None:
    """The Python client reads the third without asking whether it is there."""
    peer.transfer(0, b"nothing")
    assert b"\xc0" in peer.bytes_read
    state = outcome(peer)
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert len(state.error) == 3


def test_nothing_is_delivered_without_credit(peer: Peer, host: FakeHost) -> None:
    put(host, 3)
    assert ids(peer) == []
    peer.credit(2)
    assert ids(peer) == ["m0", "m1"]
    peer.credit(2, seen=0)
    assert ids(peer) == []
    peer.credit(1, seen=2)
    assert ids(peer) == ["m2"]


def test_credit_waits_for_messages(peer: Peer, host: FakeHost) -> None:
    peer.credit(2)
    put(host, 3)
    assert ids(peer) == ["m0", "m1"]


def test_a_drained_link_has_no_credit_left(peer: Peer, host: FakeHost) -> None:
    put(host, 1)
    peer.credit(5, drain=True)
    answer = [one for one in peer.said() if isinstance(one, Flow)][-1]
    assert (answer.delivery_count, answer.link_credit, answer.drain) == (5, 0, True)
    put(host, 1)
    assert ids(peer) == []


def test_an_echo_is_answered(peer: Peer) -> None:
    peer.credit(5, echo=True)
    assert peer.one(Flow).link_credit == 5
    peer.credit(0, handle=None, echo=True)  # type: ignore[arg-type]
    assert peer.one(Flow).handle is None


def test_the_window_of_the_session_is_kept(host: FakeHost) -> None:
    peer = Peer(host).begin(window=2)
    peer.attach_receiver()
    put(host, 5)
    peer.credit(5, window=2)
    assert len(peer.received()) == 2
    peer.credit(5, seen=0, window=2, next_incoming_id=2)
    assert len(peer.received()) == 2


def test_a_large_message_is_cut_to_the_frames_of_the_peer(host: FakeHost) -> None:
    peer = Peer(host).begin(max_frame_size=512)
    peer.attach_receiver()
    put(host, 1, size=5000)
    peer.credit(1)
    frames = [one for one in peer.frames() if isinstance(one.performative, Transfer)]
    assert len(frames) > 9
    assert Message.parse(b"".join(one.payload for one in frames)).body == b"x" * 5000
    more = [one.performative.more for one in frames if isinstance(one.performative, Transfer)]
    assert more == [True] * (len(frames) - 1) + [False]


def test_a_peer_that_does_not_read_gets_nothing_more(peer: Peer, host: FakeHost) -> None:
    peer.connection.block()
    put(host, 2)
    peer.credit(2)
    assert ids(peer) == []
    peer.connection.unblock()
    assert ids(peer) == ["m0", "m1"]


def test_completed_is_gone_and_answered(peer: Peer, host: FakeHost) -> None:
    delivered(peer, host)
    peer.settle(0, Accepted())
    answer = peer.one(Disposition)
    assert (answer.role, answer.first, answer.settled) == (False, 0, True)
    assert answer.state == Accepted()
    assert active(host) == 0


def test_a_range_is_settled_at_once(peer: Peer, host: FakeHost) -> None:
    delivered(peer, host, 3)
    peer.settle(0, Accepted(), last=2)
    assert len([one for one in peer.said() if isinstance(one, Disposition)]) == 3
    assert active(host) == 0


def test_a_range_of_all_numbers_settles_what_is_held_and_takes_no_time(
    peer: Peer, host: FakeHost
) -> None:
    delivered(peer, host, 2)
    peer.settle(0, Accepted(), last=2**32 - 1)
    assert active(host) == 0


def test_an_abandoned_message_comes_again_and_is_counted(peer: Peer, host: FakeHost) -> None:
    delivered(peer, host)
    peer.settle(0, Modified(delivery_failed=True))
    peer.credit(1, seen=1)
    assert isinstance(outcome(peer), Modified)
    (found,) = host.broker.source(QUEUE).peek(0, 1)
    assert found.delivery_count == 1


def test_a_released_message_comes_again_uncounted(peer: Peer, host: FakeHost) -> None:
    delivered(peer, host)
    peer.settle(0, Released())
    assert isinstance(outcome(peer), Released)
    peer.credit(1, seen=1)
    assert ids(peer) == ["m0"]
    (found,) = host.broker.source(QUEUE).peek(0, 1)
    assert found.delivery_count == 0


def test_a_deferred_message_is_set_aside_with_its_changes(peer: Peer, host: FakeHost) -> None:
    delivered(peer, host)
    peer.settle(0, Modified(True, True, {"why": "later"}))
    assert isinstance(outcome(peer), Modified)
    assert host.broker.queue(QUEUE).counts.deferred == 1
    (found,) = host.broker.source(QUEUE).peek(0, 1)
    assert found.message.facts.properties == {"why": "later"}


def test_a_dead_letter_has_its_reason_and_the_answer_no_error(peer: Peer, host: FakeHost) -> None:
    delivered(peer, host)
    why = {"DeadLetterReason": "Bad", "DeadLetterErrorDescription": "no JSON", "tries": 3}
    peer.settle(0, Rejected(Error("com.microsoft:dead-letter", "no JSON", why)))
    assert outcome(peer) == Rejected(None)
    (dead,) = host.broker.source(f"{QUEUE}/$DeadLetterQueue").take(1)
    assert dead.message.facts.properties == why


def test_a_rejection_without_a_reason_is_a_dead_letter_too(peer: Peer, host: FakeHost) -> None:
    delivered(peer, host)
    peer.settle(0, Rejected())
    assert host.broker.queue(QUEUE).counts.dead == 1


@pytest.mark.parametrize("state", [Accepted(), Modified(True), Rejected(), Modified(True, True)])
def test_a_lock_that_ran_out_settles_nothing(peer: Peer, host: FakeHost, state: object) -> None:
    delivered(peer, host)
    host.pass_time(LOCK)
    peer.settle(0, state)
    assert rejection(peer) == "com.microsoft:message-lock-lost"
    assert active(host) == 1


def test_what_was_never_delivered_cannot_be_settled(peer: Peer) -> None:
    peer.settle(99, Accepted())
    assert rejection(peer) == "com.microsoft:message-lock-lost"


def test_a_message_is_settled_once(peer: Peer, host: FakeHost) -> None:
    delivered(peer, host)
    peer.settle(0, Accepted())
    assert outcome(peer) == Accepted()
    peer.settle(0, Accepted())
    assert rejection(peer) == "com.microsoft:message-lock-lost"


def test_what_nobody_settles_is_not_remembered_for_ever(host: FakeHost) -> None:
    peer = Peer(host).begin(window=50_000)
    host.broker.create_queue("endless", QueueSettings(max_delivery_count=2000))
    peer.attach_receiver("endless")
    host.broker.send("endless", [Message.build(b"x", message_id=str(n)) for n in range(1000)])
    for turn in range(20):
        peer.credit(1000, seen=turn * 1000, window=50_000, next_incoming_id=turn * 1000)
        host.pass_time(LOCK)
    (session,) = peer.connection._sessions.values()
    assert len(session.unsettled._held) <= 6000


def test_receive_and_delete_leaves_nothing_to_settle(host: FakeHost) -> None:
    peer = Peer(host).begin()
    peer.attach_receiver(snd_settle_mode=1)
    put(host, 1)
    peer.credit(1)
    assert peer.one(Transfer).settled
    assert active(host) == 0


def test_a_link_that_ends_leaves_its_messages_locked(peer: Peer, host: FakeHost) -> None:
    delivered(peer, host)
    peer.send(Detach(1, closed=True))
    assert peer.one(Detach).error is None
    assert host.broker.source(QUEUE).take(1) == []


SESSIONS = "sessions"
FILTER = "com.microsoft:session-filter"


@pytest.fixture
def sessions(host: FakeHost) -> Peer:
    host.broker.create_queue(SESSIONS, QueueSettings(requires_session=True))
    return Peer(host).begin()


def put_session(host: FakeHost, session_id: str) -> None:
    host.broker.send(SESSIONS, [Message.build(b"x", message_id="m", session_id=session_id)])


def test_a_session_is_granted_by_name_until_its_link_ends(sessions: Peer, host: FakeHost) -> None:
    sessions.attach_receiver(SESSIONS, 1, filter={FILTER: "a"})
    answer = sessions.one(Attach)
    assert answer.source is not None
    assert answer.source.filter == {FILTER: "a"}
    assert answer.properties is not None
    ticks = answer.properties["com.microsoft:locked-until-utc"]
    assert ticks == 621_355_968_000_000_000 + (host.now + LOCK) * 10_000
    other = Peer(host).begin()
    other.attach_receiver(SESSIONS, 1, filter={FILTER: "a"})
    error = other.one(Detach).error
    assert error is not None
    assert error.condition == "com.microsoft:session-cannot-be-locked"
    sessions.send(Detach(1, closed=True))
    other.attach_receiver(SESSIONS, 2, filter={FILTER: "a"})
    assert other.one(Attach).source is not None


def test_the_next_session_is_waited_for(sessions: Peer, host: FakeHost) -> None:
    sessions.attach_receiver(SESSIONS, 1, filter={FILTER: None})
    assert sessions.said() == []
    put_session(host, "b")
    answer = sessions.one(Attach)
    assert answer.source is not None
    assert answer.source.filter == {FILTER: "b"}
    sessions.credit(1)
    assert ids(sessions) == ["m"]


def test_the_wait_for_a_session_ends_when_the_peer_said(sessions: Peer, host: FakeHost) -> None:
    timeout = {"com.microsoft:timeout": 5_000}
    sessions.attach_receiver(SESSIONS, 1, filter={FILTER: None}, properties=timeout)
    host.pass_time(4_999)
    assert sessions.said() == []
    host.pass_time(1)
    error = sessions.one(Detach).error
    assert error is not None
    assert error.condition == "com.microsoft:timeout"
    put_session(host, "b")
    assert sessions.said() == []


def test_a_link_whose_session_lock_ran_out_ends(sessions: Peer, host: FakeHost) -> None:
    sessions.attach_receiver(SESSIONS, 1, filter={FILTER: "a"})
    host.pass_time(LOCK)
    error = sessions.one(Detach).error
    assert error is not None
    assert error.condition == "com.microsoft:session-lock-lost"


def test_what_a_dying_connection_gives_back_is_not_delivered_to_it(
    sessions: Peer, host: FakeHost
) -> None:
    put_session(host, "a")
    for handle, wanted in enumerate(["a", None]):
        sessions.attach_receiver(SESSIONS, handle, filter={FILTER: wanted})
        sessions.credit(1, handle=handle)
    other = Peer(host).begin()
    other.attach_receiver(SESSIONS, 1, filter={FILTER: None})
    sessions.connection.closed()
    other.credit(1)
    assert ids(other) == ["m"]


@pytest.mark.parametrize(("queue", "wanted"), [(SESSIONS, None), (QUEUE, {FILTER: "a"})])
def test_sessions_are_where_they_are(sessions: Peer, queue: str, wanted: object) -> None:
    sessions.attach_receiver(queue, 1, filter=wanted)
    error = sessions.one(Detach).error
    assert error is not None
    assert error.condition == "amqp:not-allowed"


def fault(host: FakeHost, kind: FaultKind, point: Point, **more: int) -> None:
    host.faults.add(Fault(kind, QUEUE, point, **more))


def test_a_fault_drops_the_connection_and_nothing_is_done(peer: Peer, host: FakeHost) -> None:
    fault(host, FaultKind.DROP, Point.SEND)
    peer.transfer(0, Message.build(b"x").stored())
    assert peer.connection.is_dropped
    assert active(host) == 0


def test_a_fault_drops_the_connection_after_it_was_done(peer: Peer, host: FakeHost) -> None:
    fault(host, FaultKind.LOSE_ANSWER, Point.SEND)
    peer.transfer(0, Message.build(b"x").stored())
    assert peer.connection.is_dropped
    assert active(host) == 1


def test_a_fault_refuses_as_a_busy_server_does(peer: Peer, host: FakeHost) -> None:
    fault(host, FaultKind.REFUSE, Point.SEND)
    peer.transfer(0, Message.build(b"x").stored())
    assert rejection(peer) == "com.microsoft:server-busy"
    assert active(host) == 0
    fault(host, FaultKind.REFUSE, Point.ATTACH)
    peer.attach_sender(handle=5)
    error = peer.one(Detach).error
    assert error is not None
    assert error.condition == "com.microsoft:server-busy"


def test_a_fault_delays_what_comes_and_keeps_the_order(peer: Peer, host: FakeHost) -> None:
    fault(host, FaultKind.DELAY, Point.SEND, delay_ms=500)
    peer.transfer(0, Message.build(b"x", message_id="a").stored())
    peer.transfer(1, Message.build(b"x", message_id="b").stored())
    assert (peer.said(), active(host)) == ([], 0)
    host.pass_time(500)
    assert [one.first for one in peer.said() if isinstance(one, Disposition)] == [0, 1]
    assert active(host) == 2


def test_a_fault_delays_a_delivery(peer: Peer, host: FakeHost) -> None:
    fault(host, FaultKind.DELAY, Point.RECEIVE, delay_ms=500)
    assert delivered(peer, host) == []
    host.pass_time(500)
    assert ids(peer) == ["m0"]


def test_a_fault_delivers_twice_and_the_first_holder_has_lost(peer: Peer, host: FakeHost) -> None:
    fault(host, FaultKind.DUPLICATE, Point.RECEIVE)
    put(host, 1)
    peer.credit(2)
    assert ids(peer) == ["m0", "m0"]
    peer.settle(0, Accepted())
    assert rejection(peer) == "com.microsoft:message-lock-lost"
    peer.settle(1, Accepted())
    assert outcome(peer) == Accepted()


def test_a_fault_loses_a_settlement_that_was_answered(peer: Peer, host: FakeHost) -> None:
    delivered(peer, host)
    fault(host, FaultKind.LOSE_SETTLEMENT, Point.SETTLE)
    peer.settle(0, Accepted())
    assert outcome(peer) == Accepted()
    host.pass_time(LOCK)
    peer.credit(1, seen=1)
    assert ids(peer) == ["m0"]


def test_a_fault_loses_the_answer_to_a_settlement(peer: Peer, host: FakeHost) -> None:
    delivered(peer, host)
    fault(host, FaultKind.LOSE_ANSWER, Point.SETTLE)
    peer.settle(0, Accepted())
    assert peer.connection.is_dropped
    assert active(host) == 0


def test_a_fault_strikes_where_another_connection_works(peer: Peer, host: FakeHost) -> None:
    other = Peer(host).begin()
    other.attach_receiver()
    fault(host, FaultKind.DROP, Point.RECEIVE)
    other.credit(1)
    assert other.connection.is_dropped
    put(host, 1)
    peer.credit(1)
    assert ids(peer) == ["m0"]
