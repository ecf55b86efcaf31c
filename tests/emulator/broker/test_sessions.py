"""Sessions: in order, one receiver at a time."""

import pytest

from servicebus_emulator.broker import (
    Abandon,
    Complete,
    DeadLetter,
    Defer,
    LockLost,
    MessageNotFound,
    MessageTooLarge,
    NotAllowed,
    SessionLock,
    SessionLockLost,
    SessionUnavailable,
    Source,
)
from tests.emulator.broker.world import LOCK, Note, World, ids, notes, take_one

ALL = 253_402_300_800_000


@pytest.fixture
def queue(world: World) -> Source:
    """With two messages in each of two sessions."""
    queue = world.queue(requires_session=True)
    world.send(*(Note(f"{s}{n}", session_id=s) for n in range(2) for s in "ab"))
    return queue


def accept(queue: Source, session_id: str | None = "a") -> SessionLock:
    lock = queue.accept_session(session_id)
    assert lock is not None
    return lock


def test_a_session_gives_its_own_messages_in_order(world: World, queue: Source) -> None:
    lock = accept(queue)
    assert (lock.session_id, lock.locked_until) == ("a", world.clock.now + LOCK)
    assert ids(queue.take(1, session=lock)) == ["a0"]
    world.send(Note("a2", session_id="a"))
    assert ids(queue.take(10, session=lock)) == ["a1", "a2"]
    assert ids(queue.take(10, session=accept(queue, "b"))) == ["b0", "b1"]


def test_one_receiver_holds_a_session(queue: Source) -> None:
    accept(queue)
    with pytest.raises(SessionUnavailable):
        queue.accept_session("a")
    assert accept(queue, None).session_id == "b"
    assert queue.accept_session(None) is None


def test_letter_case_makes_no_other_session(world: World, queue: Source) -> None:
    lock = accept(queue, "A")
    assert lock.session_id == "A"
    with pytest.raises(SessionUnavailable):
        queue.accept_session("a")
    assert ids(queue.take(10, session=lock)) == ["a0", "a1"]


def test_a_session_that_is_named_need_not_have_messages(world: World, queue: Source) -> None:
    lock = accept(queue, "new")
    assert queue.take(1, session=lock) == []
    world.send(Note("n0", session_id="new"))
    assert ids(queue.take(1, session=lock)) == ["n0"]


def test_the_next_session_is_one_with_messages_that_can_be_taken(
    world: World, queue: Source
) -> None:
    for session_id in ("a", "b"):
        lock = accept(queue, session_id)
        for delivery in queue.take(10, session=lock):
            queue.settle(delivery.token, Defer() if session_id == "a" else Complete())
        lock.release()
    assert queue.accept_session(None) is None
    world.send(Note("c0", session_id="c"))
    assert accept(queue, None).session_id == "c"


def test_sessions_take_turns(queue: Source) -> None:
    seen = []
    for _ in range(4):
        lock = accept(queue, None)
        seen.append(lock.session_id)
        lock.release()
    assert seen == ["a", "b", "a", "b"]


def test_a_session_whose_messages_expired_is_not_the_next(world: World) -> None:
    queue = world.queue(requires_session=True)
    world.send(Note("a0", session_id="a", ttl=1000), Note("b0", session_id="b"))
    world.clock.advance(1000)
    assert accept(queue, None).session_id == "b"


def test_abandoned_messages_of_a_session_come_first(queue: Source) -> None:
    lock = accept(queue)
    (delivery,) = queue.take(1, session=lock)
    queue.settle(delivery.token, Abandon())
    again = queue.take(10, session=lock)
    assert ids(again) == ["a0", "a1"]
    assert [one.delivery_count for one in again] == [1, 0]


def test_releasing_gives_back_what_is_held_and_counts_nothing(world: World, queue: Source) -> None:
    lock = accept(queue)
    deliveries = queue.take(2, session=lock)
    lock.release()
    assert not lock.is_held
    for delivery in deliveries:
        with pytest.raises(LockLost):
            queue.settle(delivery.token, Complete())
    again = queue.take(10, session=accept(queue))
    assert ids(again) == ["a0", "a1"]
    assert [one.delivery_count for one in again] == [0, 0]


def test_a_session_lock_ends_at_its_time_and_the_deliveries_count(
    world: World, queue: Source
) -> None:
    lock = accept(queue)
    lost: list[str] = []
    lock.on_lost = lambda: lost.append(lock.session_id)
    queue.take(1, session=lock)
    world.clock.advance(LOCK - 1)
    assert lock.is_held
    world.clock.advance(1)
    assert not lock.is_held
    assert lost == ["a"]
    again = queue.take(10, session=accept(queue))
    assert [one.delivery_count for one in again] == [1, 0]


def test_too_many_deliveries_of_a_lost_session_kill(world: World) -> None:
    queue = world.queue(requires_session=True, max_delivery_count=1)
    world.send(Note("a0", session_id="a"), Note("a1", session_id="a"))
    queue.take(1, session=accept(queue))
    world.pass_time(LOCK)
    assert ids(world.dead(queue).take(10)) == ["a0"]
    assert ids(queue.take(10, session=accept(queue))) == ["a1"]


def test_a_lost_session_gives_nothing_and_takes_nothing(world: World, queue: Source) -> None:
    lock = accept(queue)
    world.clock.advance(LOCK)
    for verb in (
        lock.renew,
        lock.get_state,
        lambda: lock.set_state(b"x"),
        lambda: queue.take(1, session=lock),
        lambda: queue.take_deferred([1], session=lock),
        lambda: queue.await_message(print, lock),
    ):
        with pytest.raises(SessionLockLost):
            verb()
    lock.release()
    accept(queue)


def test_an_earlier_holder_does_not_touch_the_present_one(world: World, queue: Source) -> None:
    late = accept(queue)
    world.clock.advance(LOCK)
    present = accept(queue)
    late.release()
    with pytest.raises(SessionLockLost):
        late.renew()
    assert present.is_held


def test_renewing_a_session_renews_its_messages(world: World, queue: Source) -> None:
    lock = accept(queue)
    (delivery,) = queue.take(1, session=lock)
    world.pass_time(LOCK - 1)
    assert lock.renew() == lock.locked_until == world.clock.now + LOCK
    world.pass_time(LOCK - 1)
    queue.settle(delivery.token, Complete())
    with pytest.raises(NotAllowed):
        queue.renew(queue.take(1, session=lock)[0].token)


def test_state_stays_with_the_session_until_it_is_cleared(world: World, queue: Source) -> None:
    lock = accept(queue, "new")
    assert lock.get_state() is None
    lock.set_state(b"half way")
    lock.release()
    world.pass_time(10 * LOCK)
    lock = accept(queue, "NEW")
    assert lock.get_state() == b"half way"
    lock.set_state(None)
    lock.release()
    assert accept(queue, "new").get_state() is None


def test_a_state_has_at_most_the_bytes_of_a_message(queue: Source) -> None:
    lock = accept(queue)
    lock.set_state(b"x" * 262_144)
    with pytest.raises(MessageTooLarge):
        lock.set_state(b"x" * 262_145)
    assert lock.get_state() == b"x" * 262_144


def test_deferred_messages_are_taken_with_their_session(world: World, queue: Source) -> None:
    lock, other = accept(queue), accept(queue, "b")
    (delivery,) = queue.take(1, session=lock)
    queue.settle(delivery.token, Defer())
    with pytest.raises(MessageNotFound):
        queue.take_deferred([1], session=other)
    with pytest.raises(NotAllowed):
        queue.take_deferred([1])
    (deferred,) = queue.take_deferred([1], session=lock)
    assert deferred.locked_until == lock.locked_until
    lock.release()
    with pytest.raises(LockLost):
        queue.settle(deferred.token, Complete())
    (again,) = queue.take_deferred([1], session=accept(queue))
    assert again.delivery_count == 1


def test_sessions_and_plain_receivers_do_not_mix(world: World, queue: Source) -> None:
    plain = world.queue("plain")
    lock = accept(queue)
    with pytest.raises(NotAllowed):
        queue.take(1)
    with pytest.raises(NotAllowed):
        plain.take(1, session=lock)
    with pytest.raises(NotAllowed):
        plain.accept_session(None)
    with pytest.raises(NotAllowed):
        plain.sessions(ALL, 0, 100)


def test_a_lock_of_another_queue_opens_nothing(world: World, queue: Source) -> None:
    other = world.queue("other", requires_session=True)
    with pytest.raises(SessionLockLost):
        other.take(1, session=accept(queue))


def test_dead_letters_of_sessions_are_received_without(world: World, queue: Source) -> None:
    (delivery,) = queue.take(1, session=accept(queue))
    queue.settle(delivery.token, DeadLetter())
    dead = world.dead(queue)
    assert not dead.requires_session
    assert ids([take_one(dead)]) == ["a0"]


def test_sessions_are_listed_by_their_messages_or_by_their_state(
    world: World, queue: Source
) -> None:
    accept(queue, "Stated").set_state(b"x")
    assert queue.sessions(ALL, 0, 100) == ["a", "b"]
    assert queue.sessions(ALL, 1, 100) == ["b"]
    assert queue.sessions(ALL, 0, 1) == ["a"]
    assert queue.sessions(world.clock.now - 1, 0, 100) == ["Stated"]
    assert queue.sessions(world.clock.now, 0, 100) == []


def test_a_session_without_messages_state_and_lock_is_forgotten(
    world: World, queue: Source
) -> None:
    for session_id in ("a", "b"):
        lock = accept(queue, session_id)
        queue.take(10, keep=False, session=lock)
        lock.release()
    assert queue.by_session is not None
    assert queue.by_session.all() == []


def test_a_plain_queue_keeps_session_ids_and_does_nothing_with_them(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1", session_id="s"), *notes(1, first=2))
    assert ids(queue.take(10)) == ["m1", "m2"]
