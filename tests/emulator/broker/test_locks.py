"""A message is held by one receiver, settled once, and delivered so often and no more."""

import pytest

from servicebus_emulator.broker import Abandon, Complete, DeadLetter, LockLost, NotAllowed
from tests.emulator.broker.world import LOCK, OUTCOMES, Note, World, ids, notes, reason, take_one


def test_messages_come_in_the_order_in_which_they_were_sent(world: World) -> None:
    queue = world.queue()
    world.send(*notes(3))
    world.send(*notes(2, first=4))
    assert ids(queue.take(2)) == ["m1", "m2"]
    assert ids(queue.take(10)) == ["m3", "m4", "m5"]
    assert queue.take(10) == []


def test_a_limit_below_one_takes_nothing(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    assert queue.take(0) == []
    assert queue.take(-1, keep=False) == []
    assert ids(queue.take(1)) == ["m1"]


def test_a_delivery_says_what_it_is(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    delivery = take_one(queue)
    assert delivery.message == Note("m1")
    assert (delivery.sequence_number, delivery.enqueued_at) == (1, world.clock.now)
    assert (delivery.delivery_count, delivery.state) == (0, 0)
    assert delivery.locked_until == world.clock.now + LOCK
    assert delivery.dead_letter_source is None


def test_what_is_taken_without_being_kept_is_gone(world: World) -> None:
    queue = world.queue()
    world.send(*notes(2))
    (delivery,) = queue.take(1, keep=False)
    assert delivery.locked_until is None
    world.pass_time(LOCK)
    assert ids(queue.take(10, keep=False)) == ["m2"]
    with pytest.raises(LockLost):
        queue.settle(delivery.token, Complete())


def test_what_was_completed_never_comes_again(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    queue.settle(take_one(queue).token, Complete())
    world.pass_time(10 * LOCK)
    assert queue.take(1) == []
    assert world.broker.counts("q") == (0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("second", OUTCOMES)
@pytest.mark.parametrize("first", OUTCOMES)
def test_a_message_is_settled_once(world: World, first: str, second: str) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    token = take_one(queue).token
    queue.settle(token, OUTCOMES[first])
    with pytest.raises(LockLost):
        queue.settle(token, OUTCOMES[second])
    with pytest.raises(LockLost):
        queue.renew(token)
    queue.release(token)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_lock_ends_at_its_time(world: World, outcome: str) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    late = take_one(queue)
    world.clock.advance(LOCK - 1)
    assert queue.take(1) == []
    world.clock.advance(1)
    with pytest.raises(LockLost):
        queue.settle(late.token, OUTCOMES[outcome])
    again = take_one(queue)
    assert (again.sequence_number, again.delivery_count) == (1, 1)
    with pytest.raises(LockLost):
        queue.settle(late.token, OUTCOMES[outcome])
    queue.settle(again.token, Complete())


def test_a_lock_holds_up_to_its_end(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    delivery = take_one(queue)
    world.pass_time(LOCK - 1)
    queue.settle(delivery.token, Complete())


def test_a_renewed_lock_lasts_for_another_duration(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    token = take_one(queue).token
    world.pass_time(LOCK - 1)
    assert queue.renew(token) == world.clock.now + LOCK
    world.pass_time(LOCK - 1)
    assert queue.take(1) == []
    queue.settle(token, Complete())


def test_what_is_held_can_be_held_for_longer_than_its_lock(world: World) -> None:
    queue = world.queue()
    world.send(*notes(2))
    token = take_one(queue).token
    assert queue.hold(5 * LOCK) == [token]
    assert ids(queue.take(1)) == ["m2"]
    world.pass_time(5 * LOCK - 1)
    assert ids(queue.take(2)) == ["m2"]
    world.pass_time(1)
    assert ids(queue.take(2)) == ["m1"]
    with pytest.raises(LockLost):
        queue.settle(token, Complete())


def test_a_lock_that_ran_out_is_not_renewed(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    token = take_one(queue).token
    world.clock.advance(LOCK)
    with pytest.raises(LockLost):
        queue.renew(token)


def test_what_was_abandoned_comes_again_in_its_old_place(world: World) -> None:
    queue = world.queue()
    world.send(*notes(4))
    first, second, third = queue.take(3)
    queue.settle(third.token, Abandon())
    queue.settle(first.token, Abandon({"tried": "once"}))
    again = queue.take(10)
    assert ids(again) == ["m1", "m3", "m4"]
    assert [one.delivery_count for one in again] == [1, 1, 0]
    assert again[0].message == Note("m1", {"tried": "once"})
    queue.settle(second.token, Complete())


def test_what_was_released_comes_again_as_if_it_had_not_been_delivered(world: World) -> None:
    queue = world.queue()
    world.send(*notes(2))
    token = take_one(queue).token
    queue.release(token)
    queue.release(token)
    again = take_one(queue)
    assert (ids([again]), again.delivery_count) == (["m1"], 0)
    assert again.token != token


def test_a_message_is_dead_when_it_was_delivered_as_often_as_allowed(world: World) -> None:
    queue = world.queue(max_delivery_count=3)
    world.send(Note("m1"))
    for count in range(3):
        delivery = take_one(queue)
        assert delivery.delivery_count == count
        if count == 1:
            world.pass_time(LOCK)
        else:
            queue.settle(delivery.token, Abandon())
    assert queue.take(1) == []
    dead = take_one(world.dead(queue))
    assert (reason(dead), dead.delivery_count) == ("MaxDeliveryCountExceeded", 3)


def test_releases_do_not_kill(world: World) -> None:
    queue = world.queue(max_delivery_count=1)
    world.send(Note("m1"))
    for _ in range(5):
        queue.release(take_one(queue).token)
    assert take_one(queue).delivery_count == 0


def test_a_dead_letter_says_why_and_where_from_and_is_else_as_it_was(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1", {"lane": 3}, ttl=1000))
    world.clock.advance(5)
    settled = DeadLetter("Unreadable", "no JSON", {"seen": True})
    queue.settle(take_one(queue).token, settled)
    dead = take_one(world.dead(queue))
    assert dead.message.facts.properties == {
        "lane": 3,
        "seen": True,
        "DeadLetterReason": "Unreadable",
        "DeadLetterErrorDescription": "no JSON",
    }
    assert dead.dead_letter_source == "q"
    assert (dead.sequence_number, dead.delivery_count) == (1, 0)
    assert dead.enqueued_at == world.clock.now - 5


def test_a_dead_letter_needs_no_reason(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    queue.settle(take_one(queue).token, DeadLetter())
    assert take_one(world.dead(queue)).message == Note("m1")


def test_a_dead_letter_neither_expires_nor_runs_out_of_deliveries(world: World) -> None:
    queue = world.queue(max_delivery_count=2, default_ttl=1000, dead_letter_on_expiry=True)
    world.send(Note("m1"))
    world.pass_time(1000)
    dead = world.dead(queue)
    for count in range(5):
        delivery = take_one(dead)
        assert delivery.delivery_count == count
        dead.settle(delivery.token, Abandon())
    world.pass_time(10 * LOCK)
    assert reason(take_one(dead)) == "TTLExpiredException"


def test_a_dead_letter_cannot_die_again_and_stays_locked(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    queue.settle(take_one(queue).token, DeadLetter("Unreadable", "no JSON"))
    dead = world.dead(queue)
    token = take_one(dead).token
    with pytest.raises(NotAllowed):
        dead.settle(token, DeadLetter("Again", "no JSON"))
    assert dead.take(1) == []
    dead.settle(token, Complete())
    assert world.broker.counts("q").dead == 0


def test_a_dead_letter_is_locked_as_any_message(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    queue.settle(take_one(queue).token, DeadLetter())
    dead = world.dead(queue)
    late = take_one(dead)
    world.clock.advance(LOCK)
    with pytest.raises(LockLost):
        dead.settle(late.token, Complete())
    assert take_one(dead).delivery_count == 1


def test_the_transfer_dead_letters_are_there_and_empty(world: World) -> None:
    world.queue()
    assert world.broker.source("Q/$transfer/$deadletterqueue").take(1) == []
