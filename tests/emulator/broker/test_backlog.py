"""A long backlog makes no verb slower: work is counted, not timed."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from servicebus_emulator.broker import Abandon, Complete, Source
from servicebus_emulator.broker.deadlines import NEVER, Deadlines
from tests.emulator.broker.world import LOCK, Note, World, ids, notes, take_one

SHORT, LONG = 200, 20_000


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of Python the call runs."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def filled(world: World, name: str, size: int) -> Source:
    queue = world.queue(name, dead_letter_on_expiry=True)
    world.broker.send(name, [Note(f"m{n}", ttl=1_000_000 + n) for n in range(size)])
    return queue


def send(world: World, queue: Source) -> None:
    world.send(*notes(5), to=queue.path)


def take_and_settle(world: World, queue: Source) -> None:
    for delivery in queue.take(5):
        queue.settle(delivery.token, Complete())


def abandon(world: World, queue: Source) -> None:
    queue.settle(take_one(queue).token, Abandon())


def renew(world: World, queue: Source) -> None:
    queue.renew(take_one(queue).token)


def peek_at_the_end(world: World, queue: Source) -> None:
    queue.peek(queue.last_number - 5, 5)


def lock_and_expire(world: World, queue: Source) -> None:
    queue.take(5)
    world.pass_time(LOCK)


def count_and_ask(world: World, queue: Source) -> None:
    world.broker.counts(queue.path)
    world.broker.next_due()


VERBS = [send, take_and_settle, abandon, renew, peek_at_the_end, lock_and_expire, count_and_ask]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_does_as_much_with_a_long_backlog(
    world: World, verb: Callable[[World, Source], None]
) -> None:
    short, long = filled(world, "short", SHORT), filled(world, "long", LONG)
    for queue in (short, long):
        queue.take(100)
    few = lines_run(lambda: verb(world, short))
    assert lines_run(lambda: verb(world, long)) <= 2 * few + 20


def test_peeking_into_few_messages_far_apart_is_not_slow(world: World) -> None:
    queue = filled(world, "q", LONG)
    for delivery in queue.take(LONG)[1:-1]:
        queue.settle(delivery.token, Complete())
    assert lines_run(lambda: queue.peek(2, 10)) < 100


def test_what_expired_and_what_was_settled_leave_nothing_behind(world: World) -> None:
    queue = world.queue()
    for _ in range(50):
        world.send(*(Note(f"m{n}", ttl=1000) for n in range(100)))
        for delivery in queue.take(50):
            queue.settle(delivery.token, Complete())
        world.pass_time(1000)
    assert queue.entries == {}
    assert len(queue.line.new) <= 256
    world.send(Note("last"))
    assert ids(queue.take(10)) == ["last"]


def test_locks_that_were_settled_do_not_pile_up(world: World) -> None:
    wanted: set[int] = set()
    deadlines: Deadlines[int] = Deadlines(lambda item, _: item in wanted)
    for number in range(10_000):
        wanted.add(number)
        deadlines.add(1000 + number, number, number)
        wanted.discard(number - 3)
    assert len(deadlines._heap) <= 256
    assert [deadlines.pop(20_000) for _ in range(4)] == [9997, 9998, 9999, None]


def test_deadlines_come_in_the_order_of_time_and_number() -> None:
    deadlines: Deadlines[str] = Deadlines(lambda item, _: item != "unwanted")
    deadlines.add(20, 2, "c")
    deadlines.add(10, 9, "b")
    deadlines.add(10, 3, "a")
    deadlines.add(5, 1, "unwanted")
    assert deadlines.first() == 10
    assert [deadlines.pop(10), deadlines.pop(10), deadlines.pop(10)] == ["a", "b", None]
    assert (deadlines.first(), deadlines.pop(19), deadlines.pop(20)) == (20, None, "c")
    assert deadlines.first() == NEVER
