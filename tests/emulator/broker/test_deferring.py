"""Messages that a receiver set aside."""

import pytest

from servicebus_emulator.broker import (
    Abandon,
    Complete,
    DeadLetter,
    Defer,
    MessageNotFound,
    Source,
)
from tests.emulator.broker.world import LOCK, Note, World, ids, notes, reason, take_one


@pytest.fixture
def queue(world: World) -> Source:
    """With one deferred message, number 1, and one that waits."""
    queue = world.queue()
    world.send(*notes(2))
    queue.settle(take_one(queue).token, Defer({"why": "too early"}))
    return queue


def test_what_is_deferred_comes_only_when_it_is_asked_for(world: World, queue: Source) -> None:
    assert ids(queue.take(10)) == ["m2"]
    world.pass_time(10 * LOCK)
    assert ids(queue.take(10)) == ["m2"]
    (delivery,) = queue.take_deferred([1])
    assert delivery.message == Note("m1", {"why": "too early"})
    assert (delivery.state, delivery.sequence_number) == (1, 1)
    assert delivery.locked_until == world.clock.now + LOCK


def test_deferring_counts_as_a_delivery(queue: Source) -> None:
    assert queue.take_deferred([1])[0].delivery_count == 1


def test_counts_tell_deferred_messages_from_active_ones(world: World, queue: Source) -> None:
    assert world.broker.counts("q")[:4] == (1, 0, 0, 1)
    (delivery,) = queue.take_deferred([1])
    assert world.broker.counts("q")[:4] == (1, 0, 0, 1)
    queue.settle(delivery.token, Complete())
    assert world.broker.counts("q")[:4] == (1, 0, 0, 0)


@pytest.mark.parametrize("how", ["abandoned", "released", "ran out", "deferred"])
def test_a_deferred_message_that_is_given_back_is_deferred_again(
    world: World, queue: Source, how: str
) -> None:
    (delivery,) = queue.take_deferred([1])
    with pytest.raises(MessageNotFound):
        queue.take_deferred([1])
    if how == "abandoned":
        queue.settle(delivery.token, Abandon())
    elif how == "released":
        queue.release(delivery.token)
    elif how == "deferred":
        queue.settle(delivery.token, Defer())
    else:
        world.pass_time(LOCK)
    assert ids(queue.take(10)) == ["m2"]
    (again,) = queue.take_deferred([1])
    assert again.delivery_count == (1 if how == "released" else 2)
    assert world.broker.counts("q").deferred == 1


def test_a_deferred_message_may_die(world: World, queue: Source) -> None:
    (delivery,) = queue.take_deferred([1])
    queue.settle(delivery.token, DeadLetter("Late", "too late"))
    dead = take_one(world.dead(queue))
    assert (reason(dead), dead.state, dead.delivery_count) == ("Late", 0, 1)


def test_a_deferred_message_that_is_not_kept_is_gone(queue: Source) -> None:
    assert ids(queue.take_deferred([1], keep=False)) == ["m1"]
    with pytest.raises(MessageNotFound):
        queue.take_deferred([1])


@pytest.mark.parametrize("number", [2, 3, 99, -1])
def test_all_that_are_asked_for_are_there_or_none_is_taken(queue: Source, number: int) -> None:
    with pytest.raises(MessageNotFound):
        queue.take_deferred([1, number])
    assert ids(queue.take_deferred([1, 1])) == ["m1"]


def test_a_dead_letter_may_be_deferred(world: World, queue: Source) -> None:
    queue.settle(take_one(queue).token, DeadLetter())
    dead = world.dead(queue)
    dead.settle(take_one(dead).token, Defer())
    assert dead.take(1) == []
    assert ids(dead.take_deferred([1])) == ["m2"]
