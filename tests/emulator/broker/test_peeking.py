"""What lies there, seen without being taken."""

from servicebus_emulator.broker import Abandon, Complete, Defer
from tests.emulator.broker.world import LOCK, Note, World, ids, notes, take_one


def test_what_is_locked_deferred_or_scheduled_is_seen_too(world: World) -> None:
    queue = world.queue()
    world.send(*notes(4), Note("m5", scheduled_at=world.clock.now + 1000))
    first, second, third = queue.take(3)
    queue.settle(second.token, Defer())
    queue.settle(third.token, Abandon())
    seen = queue.peek(0, 10)
    assert ids(seen) == ["m1", "m2", "m3", "m4", "m5"]
    assert [one.state for one in seen] == [0, 1, 0, 0, 2]
    assert [one.delivery_count for one in seen] == [0, 1, 1, 0, 0]
    assert [one.locked_until for one in seen] == [first.locked_until, None, None, None, None]
    assert [one.sequence_number for one in seen] == [1, 2, 3, 4, 5]


def test_peeking_begins_at_a_number_and_ends_at_a_limit(world: World) -> None:
    queue = world.queue()
    world.send(*notes(5))
    assert ids(queue.peek(3, 2)) == ["m3", "m4"]
    assert ids(queue.peek(5, 10)) == ["m5"]
    assert queue.peek(6, 10) == []
    assert queue.peek(1, 0) == queue.peek(1, -1) == []
    assert ids(queue.peek(-9, 1)) == ["m1"]


def test_gaps_are_passed_over(world: World) -> None:
    queue = world.queue()
    world.send(*notes(1000))
    for delivery in queue.take(1000)[1:-1]:
        queue.settle(delivery.token, Complete())
    assert ids(queue.peek(2, 10)) == ["m1000"]
    assert ids(queue.peek(1, 10)) == ["m1", "m1000"]
    assert ids(queue.peek(999, 10)) == ["m1000"]


def test_peeking_changes_nothing(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    queue.peek(0, 10)
    assert take_one(queue).delivery_count == 0


def test_a_lock_that_ran_out_is_not_seen(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    take_one(queue)
    world.clock.advance(LOCK)
    (seen,) = queue.peek(0, 10)
    assert (seen.locked_until, seen.delivery_count) == (None, 1)


def test_a_session_is_peeked_alone_or_with_all(world: World) -> None:
    queue = world.queue(requires_session=True)
    world.send(*(Note(f"{s}{n}", session_id=s) for n in range(2) for s in "ab"))
    lock = queue.accept_session("a")
    assert lock is not None
    queue.take(1, session=lock)
    lock.renew()
    assert ids(queue.peek(0, 10, "A")) == ["a0", "a1"]
    assert ids(queue.peek(2, 10, "a")) == ["a1"]
    assert queue.peek(0, 10, "none") == []
    seen = queue.peek(0, 10)
    assert ids(seen) == ["a0", "b0", "a1", "b1"]
    assert [one.locked_until for one in seen] == [lock.locked_until, None, None, None]
