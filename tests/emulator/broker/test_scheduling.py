"""Messages that are sent for later."""

import pytest

from servicebus_emulator.broker import Complete, MessageNotFound, NotAllowed
from tests.emulator.broker.world import Note, World, ids, take_one


def later(world: World, message_id: str, milliseconds: int, **fields: object) -> Note:
    when = world.clock.now + milliseconds
    return Note(message_id, scheduled_at=when, **fields)  # type: ignore[arg-type]


def test_a_scheduled_message_comes_at_its_time(world: World) -> None:
    queue = world.queue()
    assert world.broker.schedule("q", [later(world, "m1", 1000)]) == [1]
    world.send(Note("m2"))
    world.clock.advance(999)
    assert ids(queue.take(10)) == ["m2"]
    world.clock.advance(1)
    delivery = take_one(queue)
    assert ids([delivery]) == ["m1"]
    assert (delivery.sequence_number, delivery.enqueued_at) == (3, world.clock.now)
    assert delivery.state == 0


def test_what_is_sent_with_a_time_is_scheduled_too(world: World) -> None:
    queue = world.queue()
    world.send(later(world, "m1", 1000))
    assert world.broker.counts("q")[:4] == (0, 0, 1, 0)
    world.pass_time(1000)
    assert world.broker.counts("q")[:4] == (1, 0, 0, 0)
    assert ids(queue.take(10)) == ["m1"]


def test_a_time_that_is_over_is_now(world: World) -> None:
    queue = world.queue()
    world.send(later(world, "m1", 0))
    assert take_one(queue).sequence_number == 1
    (number,) = world.broker.schedule("q", [later(world, "m2", 0)])
    with pytest.raises(MessageNotFound):
        world.broker.cancel_scheduled("q", [number])
    assert ids(queue.take(10)) == ["m2"]


def test_scheduled_messages_come_in_the_order_of_their_times(world: World) -> None:
    queue = world.queue()
    batch = [later(world, f"m{ms}", ms) for ms in (3000, 1000, 2000)]
    world.broker.schedule("q", [*batch, later(world, "n1000", 1000)])
    world.pass_time(5000)
    assert ids(queue.take(10)) == ["m1000", "n1000", "m2000", "m3000"]


def test_its_time_to_live_begins_when_it_comes(world: World) -> None:
    queue = world.queue()
    world.send(later(world, "m1", 1000, ttl=500))
    world.pass_time(1499)
    assert ids(queue.peek(0, 10)) == ["m1"]
    world.pass_time(1)
    assert queue.peek(0, 10) == []


def test_a_cancelled_message_never_comes(world: World) -> None:
    queue = world.queue()
    first, second = world.broker.schedule("q", [later(world, "m1", 10), later(world, "m2", 10)])
    world.broker.cancel_scheduled("Q", [first])
    world.pass_time(10)
    assert ids(queue.take(10)) == ["m2"]
    with pytest.raises(MessageNotFound):
        world.broker.cancel_scheduled("q", [second])


@pytest.mark.parametrize("other", [2, 99])
def test_all_are_cancelled_or_none(world: World, other: int) -> None:
    queue = world.queue()
    world.broker.schedule("q", [later(world, "m1", 10)])
    world.send(Note("m2"))
    with pytest.raises(MessageNotFound, match=str(other)):
        world.broker.cancel_scheduled("q", [1, other])
    world.pass_time(10)
    assert ids(queue.take(10)) == ["m2", "m1"]


def test_a_topic_keeps_what_is_scheduled_until_it_is_copied(world: World) -> None:
    world.topic()
    early = world.subscription("early")
    numbers = world.broker.schedule("t", [later(world, f"m{n}", 10) for n in range(3)])
    assert numbers == [1, 2, 3]
    assert world.broker.counts("t").scheduled == 3
    assert early.peek(0, 10) == []
    late = world.subscription("late")
    world.broker.cancel_scheduled("t", numbers[1:2])
    world.pass_time(10)
    assert ids(early.take(10)) == ids(late.take(10)) == ["m0", "m2"]
    assert world.broker.counts("t").scheduled == 0


def test_a_scheduled_message_is_not_received_by_its_number(world: World) -> None:
    queue = world.queue()
    world.broker.schedule("q", [later(world, "m1", 10)])
    with pytest.raises(MessageNotFound):
        queue.take_deferred([1])


def test_a_scheduled_message_of_a_session_comes_to_it(world: World) -> None:
    queue = world.queue(requires_session=True)
    world.send(later(world, "m1", 10, session_id="s"))
    assert queue.accept_session(None) is None
    assert ids(queue.peek(0, 10, "s")) == ["m1"]
    world.pass_time(10)
    lock = queue.accept_session(None)
    assert lock is not None
    (delivery,) = queue.take(1, session=lock)
    queue.settle(delivery.token, Complete())


def test_dead_letters_are_not_scheduled(world: World) -> None:
    world.queue()
    with pytest.raises(NotAllowed):
        world.broker.schedule("q/$DeadLetterQueue", [later(world, "m1", 10)])


@pytest.mark.parametrize("first", ["scheduled", "sent"])
def test_a_scheduled_message_may_be_a_duplicate_or_have_one(world: World, first: str) -> None:
    queue = world.queue(requires_duplicate_detection=True)
    pair = [later(world, "m1", 10), Note("m1")]
    world.send(*(pair if first == "scheduled" else reversed(pair)))
    world.pass_time(10)
    (delivery,) = queue.take(10)
    assert (delivery.message.scheduled_at is not None) == (first == "scheduled")


def test_a_duplicate_that_is_scheduled_gets_a_number_of_its_own(world: World) -> None:
    queue = world.queue(requires_duplicate_detection=True)
    assert world.broker.schedule("q", [later(world, "m1", 10)] * 2) == [1, 2]
    with pytest.raises(MessageNotFound):
        world.broker.cancel_scheduled("q", [2])
    world.broker.cancel_scheduled("q", [1])
    world.broker.schedule("q", [later(world, "m1", 10)])
    world.pass_time(10)
    assert queue.take(10) == []
