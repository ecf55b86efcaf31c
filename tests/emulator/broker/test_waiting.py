"""Those who wait are called in their order, when there is something to take, and no more often."""

from collections.abc import Callable

import pytest

from servicebus_emulator.broker import (
    Abandon,
    Complete,
    DeadLetter,
    QueueSettings,
    SessionLock,
    Source,
    SubscriptionSettings,
)
from tests.emulator.broker.world import LOCK, Note, World, ids, notes, take_one


class Receiver:
    """Takes when it is called, so many at a time, and waits again if it should."""

    def __init__(self, source: Source, limit: int = 1, *, again: bool = False) -> None:
        self.source = source
        self.limit = limit
        self.again = again
        self.session: SessionLock | None = None
        self.calls = 0
        self.received: list[str | None] = []

    def wait(self, session: SessionLock | None = None) -> "Receiver":
        self.session = session
        self.source.await_message(self.wake, session)
        return self

    def wake(self) -> None:
        self.calls += 1
        self.received += ids(self.source.take(self.limit, session=self.session))
        if self.again:
            self.wait(self.session)


def test_a_message_calls_the_first_who_waits(world: World) -> None:
    queue = world.queue()
    first, second = Receiver(queue).wait(), Receiver(queue).wait()
    world.send(Note("m1"))
    assert (first.received, second.received) == (["m1"], [])
    world.send(Note("m2"))
    assert (first.received, second.received) == (["m1"], ["m2"])
    assert (first.calls, second.calls) == (1, 1)


def test_a_batch_calls_as_many_as_it_has_messages_for(world: World) -> None:
    queue = world.queue()
    receivers = [Receiver(queue, limit).wait() for limit in (2, 1, 5, 5)]
    world.send(*notes(4))
    assert [one.received for one in receivers] == [["m1", "m2"], ["m3"], ["m4"], []]
    assert [one.calls for one in receivers] == [1, 1, 1, 0]


def test_what_is_there_already_calls_nobody(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    assert Receiver(queue).wait().calls == 0


def test_one_who_is_forgotten_is_not_called(world: World) -> None:
    queue = world.queue()
    first, second = Receiver(queue).wait(), Receiver(queue).wait()
    queue.forget(first.wake)
    queue.forget(first.wake)
    world.send(Note("m1"))
    assert (first.calls, second.calls) == (0, 1)


def test_one_who_waits_again_after_each_message_gets_them_all(world: World) -> None:
    queue = world.queue()
    receiver = Receiver(queue, again=True).wait()
    world.send(*notes(5000))
    assert len(receiver.received) == receiver.calls == 5000


def test_one_who_takes_nothing_and_waits_again_is_not_called_for_ever(world: World) -> None:
    queue = world.queue()
    lazy = Receiver(queue, limit=0, again=True).wait()
    other = Receiver(queue, limit=1, again=True).wait()
    world.send(*notes(3))
    assert other.received == ["m1", "m2", "m3"]
    assert lazy.calls <= 4
    world.send(Note("m4"))
    assert other.received[-1] == "m4"


def test_one_who_takes_nothing_is_called_once_for_each_change(world: World) -> None:
    queue = world.queue()
    lazy = Receiver(queue, limit=0, again=True).wait()
    world.send(*notes(3))
    assert lazy.calls == 1
    world.send(Note("m4"))
    assert lazy.calls == 2


def test_what_expired_after_it_was_given_back_calls_nobody_and_hides_nothing(
    world: World,
) -> None:
    queue = world.queue()
    world.send(Note("m1", ttl=1000))
    queue.settle(take_one(queue).token, Abandon())
    world.pass_time(1000)
    receiver = Receiver(queue).wait()
    assert queue.take(1) == []
    world.send(Note("m2"))
    assert receiver.received == ["m2"]


def test_one_who_sends_while_it_is_called_is_served_in_turn(world: World) -> None:
    queue, other = world.queue(), world.queue("other")
    receiver = Receiver(other, again=True).wait()
    depth: list[int] = []

    def relay() -> None:
        depth.append(len(depth))
        (delivery,) = queue.take(1)
        queue.settle(delivery.token, Complete())
        queue.await_message(relay)
        if len(depth) < 3000:
            world.send(Note("again"))
            world.send(Note("m"), to="other")

    queue.await_message(relay)
    world.send(Note("m1"))
    assert len(depth) == 3000
    assert len(receiver.received) == 2999


def test_one_who_fails_breaks_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    queue = world.queue()

    def fail() -> None:
        raise RuntimeError("broken receiver")

    queue.await_message(fail)
    second = Receiver(queue).wait()
    world.send(*notes(2))
    assert second.received == ["m1"]
    assert ids(queue.take(10)) == ["m2"]
    assert "broken receiver" in caplog.text


RETURNS: dict[str, Callable[[World, Source, bytes], None]] = {
    "abandoned": lambda _, queue, token: queue.settle(token, Abandon()),
    "released": lambda _, queue, token: queue.release(token),
    "ran out": lambda world, *_: world.pass_time(LOCK),
}


@pytest.mark.parametrize("how", RETURNS)
def test_a_message_that_comes_back_calls(world: World, how: str) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    token = take_one(queue).token
    receiver = Receiver(queue).wait()
    RETURNS[how](world, queue, token)
    assert receiver.received == ["m1"]


def test_any_verb_after_the_end_of_a_lock_calls(world: World) -> None:
    queue = world.queue()
    world.queue("other")
    world.send(Note("m1"))
    take_one(queue)
    receiver = Receiver(queue).wait()
    world.clock.advance(LOCK)
    world.send(Note("x"), to="other")
    assert receiver.received == ["m1"]


def test_a_scheduled_message_calls_when_it_comes(world: World) -> None:
    queue = world.queue()
    world.send(Note("m1", scheduled_at=world.clock.now + 10))
    receiver = Receiver(queue).wait()
    world.pass_time(10)
    assert receiver.received == ["m1"]


@pytest.mark.parametrize("how", ["settled", "expired", "delivered too often"])
def test_a_dead_letter_calls_who_waits_for_them(world: World, how: str) -> None:
    queue = world.queue(dead_letter_on_expiry=True, max_delivery_count=1)
    world.send(Note("m1", ttl=10 if how == "expired" else None))
    receiver = Receiver(world.dead(queue)).wait()
    if how == "expired":
        world.pass_time(10)
    else:
        outcome = DeadLetter() if how == "settled" else Abandon()
        queue.settle(take_one(queue).token, outcome)
    assert receiver.received == ["m1"]


def test_nobody_is_called_while_receiving_is_disabled(world: World) -> None:
    queue = world.queue()
    receiver = Receiver(queue).wait()
    world.broker.update_queue("q", QueueSettings(status="ReceiveDisabled"))
    world.send(Note("m1"))
    assert receiver.calls == 0
    world.broker.update_queue("q", QueueSettings())
    assert receiver.received == ["m1"]


def test_nobody_is_called_while_a_subscription_is_disabled(world: World) -> None:
    world.topic()
    source = world.subscription("s", status="ReceiveDisabled", requires_session=True)
    accepted: list[SessionLock | None] = []
    source.await_session(lambda: accepted.append(source.accept_session(None)))
    world.send(Note("m1", session_id="a"), to="t")
    assert accepted == []
    world.broker.update_subscription("t", "s", SubscriptionSettings(requires_session=True))
    assert len(accepted) == 1


def test_who_waits_in_a_session_is_called_for_its_messages_only(world: World) -> None:
    queue = world.queue(requires_session=True)
    lock = queue.accept_session("a")
    receiver = Receiver(queue, again=True).wait(lock)
    world.send(Note("b0", session_id="b"), Note("a0", session_id="a"))
    assert receiver.received == ["a0"]
    queue.forget(receiver.wake)
    world.send(Note("a1", session_id="a"))
    assert receiver.received == ["a0"]


def test_who_waits_in_a_session_that_is_lost_is_not_called(world: World) -> None:
    queue = world.queue(requires_session=True)
    world.send(Note("a0", session_id="a"))
    lock = queue.accept_session("a")
    queue.take(1, session=lock)
    receiver = Receiver(queue).wait(lock)
    world.pass_time(LOCK)
    assert receiver.calls == 0


def test_who_waits_for_a_session_is_called_when_one_is_free(world: World) -> None:
    queue = world.queue(requires_session=True)
    accepted: list[SessionLock] = []

    def accept() -> None:
        lock = queue.accept_session(None)
        assert lock is not None
        accepted.append(lock)

    queue.await_session(accept)
    world.send(Note("a0", session_id="a"))
    assert [lock.session_id for lock in accepted] == ["a"]
    queue.await_session(accept)
    world.send(Note("a1", session_id="a"))
    assert len(accepted) == 1
    accepted[0].release()
    assert len(accepted) == 2
    queue.await_session(accept)
    world.pass_time(LOCK)
    assert [lock.is_held for lock in accepted] == [False, False, True]
    queue.await_session(accept)
    queue.forget(accept)
    world.send(Note("b0", session_id="b"))
    assert len(accepted) == 3


def test_each_free_session_goes_to_one_who_waits(world: World) -> None:
    queue = world.queue(requires_session=True)
    accepted: list[SessionLock | None] = []
    waiters = [lambda: accepted.append(queue.accept_session(None)) for _ in range(4)]
    for waiter in waiters:
        queue.await_session(waiter)
    world.send(*(Note(f"m{n}", session_id=s) for n, s in enumerate("aabca")))
    assert [lock.session_id for lock in accepted if lock is not None] == ["a", "b", "c"]


def test_the_loss_of_a_session_may_be_answered_by_accepting_it_again(world: World) -> None:
    queue = world.queue(requires_session=True)
    world.send(Note("a0", session_id="a"))
    lock = queue.accept_session("a")
    assert lock is not None
    again: list[SessionLock | None] = []
    lock.on_lost = lambda: again.append(queue.accept_session("a"))
    world.pass_time(LOCK)
    assert [one.session_id for one in again if one is not None] == ["a"]
