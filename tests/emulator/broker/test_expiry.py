"""Messages that are not received in time."""

import pytest

from servicebus_emulator.broker import Abandon, Complete, Defer, MessageNotFound
from tests.emulator.broker.world import LOCK, Note, World, ids, notes, reason, take_one


def test_a_message_expires_at_its_time(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1", ttl=1000), Note("m2"))
    world.clock.advance(999)
    assert ids(queue.peek(0, 10)) == ["m1", "m2"]
    world.clock.advance(1)
    assert ids(queue.peek(0, 10)) == ["m2"]
    assert ids(queue.take(10)) == ["m2"]
    assert world.dead(queue).take(1) == []


def test_what_expired_is_kept_among_the_dead_letters_if_so_set(world: World) -> None:
    queue = world.queue(dead_letter_on_expiry=True)
    world.send(Note("m1", ttl=2000), Note("m2", ttl=1000), Note("m3"))
    world.clock.advance(3000)
    dead = world.dead(queue).take(10)
    assert ids(dead) == ["m2", "m1"]
    assert [reason(one) for one in dead] == ["TTLExpiredException"] * 2
    assert ids(queue.take(10)) == ["m3"]


def test_the_default_is_also_the_longest_time(world: World) -> None:
    queue = world.queue(default_ttl=1000)
    world.send(Note("m1"), Note("m2", ttl=5000), Note("m3", ttl=500))
    world.clock.advance(500)
    assert ids(queue.peek(0, 10)) == ["m1", "m2"]
    world.clock.advance(500)
    assert queue.peek(0, 10) == []


@pytest.mark.parametrize(("topic", "subscription"), [(1000, None), (None, 1000), (1000, 5000)])
def test_a_subscription_has_the_shorter_of_its_time_and_its_topics(
    world: World, topic: int | None, subscription: int | None
) -> None:
    world.topic(default_ttl=topic)
    source = world.subscription("s", default_ttl=subscription)
    world.send(Note("m1"), to="t")
    world.clock.advance(999)
    assert ids(source.peek(0, 10)) == ["m1"]
    world.clock.advance(1)
    assert source.peek(0, 10) == []


def test_no_message_expires_while_it_is_held(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1", ttl=1000))
    token = take_one(queue).token
    world.pass_time(LOCK - 1)
    queue.settle(token, Complete())


@pytest.mark.parametrize("elapsed", [1000, 2000])
@pytest.mark.parametrize("how", ["abandoned", "released", "ran out"])
def test_expiry_strikes_when_the_message_is_not_held_any_more(
    world: World, how: str, elapsed: int
) -> None:
    queue = world.queue(dead_letter_on_expiry=True)
    world.send(Note("m1", ttl=1000))
    delivery = take_one(queue)
    world.pass_time(elapsed)
    if how == "abandoned":
        queue.settle(delivery.token, Abandon())
    elif how == "released":
        queue.release(delivery.token)
    else:
        world.pass_time(LOCK)
    assert queue.take(1) == []
    dead = take_one(world.dead(queue))
    assert reason(dead) == "TTLExpiredException"
    assert dead.delivery_count == (0 if how == "released" else 1)


def test_a_message_given_back_before_its_time_still_expires(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1", ttl=1000), Note("m2", ttl=100))
    held = take_one(queue)
    world.pass_time(100)
    queue.settle(held.token, Abandon())
    world.clock.advance(899)
    assert ids(queue.peek(0, 10)) == ["m1"]
    world.clock.advance(1)
    assert queue.take(1) == []


def test_too_many_deliveries_go_before_expiry(world: World) -> None:
    queue = world.queue(dead_letter_on_expiry=True, max_delivery_count=1)
    world.send(Note("m1", ttl=1000))
    take_one(queue)
    world.pass_time(LOCK)
    assert reason(take_one(world.dead(queue))) == "MaxDeliveryCountExceeded"


def test_a_deferred_message_expires_when_it_is_asked_for(world: World) -> None:
    queue = world.queue(dead_letter_on_expiry=True)
    world.send(Note("m1", ttl=1000))
    queue.settle(take_one(queue).token, Defer())
    world.pass_time(1000)
    assert ids(queue.peek(0, 10)) == ["m1"]
    with pytest.raises(MessageNotFound):
        queue.take_deferred([1])
    assert queue.peek(0, 10) == []
    assert reason(take_one(world.dead(queue))) == "TTLExpiredException"


def test_when_things_happen_does_not_depend_on_who_looks(world: World) -> None:
    def run(step: int) -> list[object]:
        one = World()
        queue = one.queue(dead_letter_on_expiry=True, max_delivery_count=2)
        one.send(*notes(3), *(Note(f"e{ms}", ttl=ms) for ms in (90_000, 50_000, 70_000)))
        one.send(Note("s", ttl=10, scheduled_at=one.clock.now + 65_000))
        queue.take(2)
        for _ in range(0, 120_000, step):
            one.pass_time(step)
        return [queue.peek(0, 10), one.dead(queue).peek(0, 10)]

    assert run(120_000) == run(1000) == run(30_000)
