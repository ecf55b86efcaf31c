"""Entities that send on what comes to them."""

import pytest

from servicebus_emulator.broker import DeadLetter, QueueSettings, SubscriptionSettings
from tests.emulator.broker.world import Note, World, ids, notes, reason, take_one


def test_what_comes_is_sent_on(world: World) -> None:
    target = world.queue("target")
    world.topic()
    source = world.subscription("s", forward_to="Target")
    world.send(*notes(2), to="t")
    assert source.peek(0, 10) == []
    assert ids(target.take(10)) == ["m1", "m2"]


def test_a_topic_may_be_the_target(world: World) -> None:
    world.topic()
    source = world.subscription("s")
    world.queue(forward_to="t")
    world.send(Note("m1"))
    assert ids(source.take(1)) == ["m1"]


def test_a_scheduled_message_is_sent_on_when_it_comes(world: World) -> None:
    target = world.queue("target")
    world.queue(forward_to="target")
    world.send(Note("m1", scheduled_at=world.clock.now + 10))
    assert target.peek(0, 10) == []
    world.pass_time(10)
    assert ids(target.take(1)) == ["m1"]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (None, "MessagingEntityNotFound"),
        ({"status": "Disabled"}, "EntityDisabled"),
        ({"requires_session": True}, "NotAllowed"),
        ({"max_message_bytes": 10}, "MessageTooLarge"),
        ({"max_size_bytes": 10}, "QuotaExceeded"),
    ],
)
def test_what_the_target_refuses_is_a_dead_letter(
    world: World, target: dict[str, object] | None, why: str
) -> None:
    if target is not None:
        world.queue("target", **target)
    queue = world.queue(forward_to="target")
    world.send(Note("m1"))
    assert reason(take_one(world.dead(queue))) == why


def test_a_message_is_forwarded_so_often_and_no_more(world: World) -> None:
    world.queue("a", forward_to="b")
    world.queue("b", forward_to="a")
    world.send(Note("m1"), to="a")
    dead = world.broker.source("a/$DeadLetterQueue")
    assert [reason(one) for one in dead.take(10)] == ["MaxTransferHopCountExceeded"]
    assert world.broker.counts("b").dead == 0


def test_a_chain_as_long_as_allowed_carries(world: World) -> None:
    for number in range(4):
        world.queue(f"q{number}", forward_to=f"q{number + 1}")
    last = world.queue("q4")
    world.send(Note("m1"), to="q0")
    assert ids(last.take(1)) == ["m1"]


def test_the_target_drops_duplicates(world: World) -> None:
    target = world.queue("target", requires_duplicate_detection=True)
    world.queue(forward_to="target")
    world.send(Note("m1"), Note("m1"))
    assert ids(target.take(10)) == ["m1"]


def test_dead_letters_are_sent_on_with_where_they_died(world: World) -> None:
    target = world.queue("target")
    queue = world.queue(forward_dead_letters_to="target")
    world.send(Note("m1"))
    queue.settle(take_one(queue).token, DeadLetter("Unreadable", "no JSON"))
    assert world.broker.counts("q").dead == 0
    letter = take_one(target)
    assert (reason(letter), letter.dead_letter_source) == ("Unreadable", "q")
    assert (letter.delivery_count, letter.sequence_number) == (0, 1)


def test_dead_letters_stay_where_the_target_refuses(world: World) -> None:
    queue = world.queue(forward_dead_letters_to="nowhere")
    world.send(Note("m1"))
    queue.settle(take_one(queue).token, DeadLetter("Unreadable", "no JSON"))
    assert reason(take_one(world.dead(queue))) == "Unreadable"


def test_dead_letters_that_go_in_a_circle_come_to_rest(world: World) -> None:
    settings = {"default_ttl": 1, "dead_letter_on_expiry": True}
    world.queue("a", forward_dead_letters_to="b", **settings)
    world.queue("b", forward_dead_letters_to="a", **settings)
    world.send(Note("m1"), to="a")
    world.pass_time(1000)
    assert world.broker.counts("a").dead + world.broker.counts("b").dead == 1


def test_what_lies_there_is_sent_on_when_forwarding_begins(world: World) -> None:
    target = world.queue("target")
    queue = world.queue()
    world.send(*notes(3))
    held = take_one(queue)
    world.broker.update_queue("q", QueueSettings(forward_to="target"))
    assert ids(target.take(10)) == ["m2", "m3"]
    queue.release(held.token)
    assert ids(queue.take(10)) == ["m1"]


def test_what_lies_in_a_subscription_is_sent_on_or_dies_when_forwarding_begins(
    world: World,
) -> None:
    target = world.queue("target", max_size_bytes=100)
    world.topic()
    source = world.subscription("s")
    world.send(*notes(2), to="t")
    world.broker.update_subscription("t", "s", SubscriptionSettings(forward_to="target"))
    assert ids(target.take(10)) == ["m1"]
    assert ids(world.dead(source).take(10)) == ["m2"]
