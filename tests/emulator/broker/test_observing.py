"""What a watcher is told about messages between being sent and being gone."""

import pytest

from servicebus_emulator.broker import (
    Abandon,
    Broker,
    Complete,
    DeadLetter,
    Defer,
    Happening,
    Observation,
    Outcome,
    QueueSettings,
    Source,
)
from tests.emulator.broker.world import LOCK, Clock, Note, World


class Watched:
    def __init__(self) -> None:
        self.clock = Clock()
        self.seen: list[Observation] = []
        self.broker = Broker(self.clock, World().token, observe=self.seen.append)
        self.broker.create_queue("q", QueueSettings(lock_duration=LOCK, max_delivery_count=2))

    @property
    def queue(self) -> Source:
        return self.broker.source("q")

    def told(self) -> list[tuple[Happening, str | None]]:
        return [(each.what, each.message.message_id) for each in self.seen]


@pytest.fixture
def watched() -> Watched:
    watched = Watched()
    watched.broker.send("q", [Note("m1")])
    return watched


@pytest.mark.parametrize(
    ("outcome", "what", "reason"),
    [
        (Complete(), Happening.COMPLETED, None),
        (Abandon(), Happening.ABANDONED, None),
        (Defer(), Happening.DEFERRED, None),
        (DeadLetter("Unreadable"), Happening.DEAD_LETTERED, "Unreadable"),
    ],
)
def test_deliveries_and_settlements_are_told(
    watched: Watched, outcome: Outcome, what: Happening, reason: str | None
) -> None:
    (delivery,) = watched.queue.take(1)
    watched.queue.settle(delivery.token, outcome)
    assert watched.told() == [(Happening.DELIVERED, "m1"), (what, "m1")]
    last = watched.seen[-1]
    assert (last.path, last.sequence_number, last.reason) == ("q", 1, reason)


def test_a_renewal_is_told_and_so_is_a_lock_that_ran_out(watched: Watched) -> None:
    (delivery,) = watched.queue.take(1)
    watched.queue.renew(delivery.token)
    watched.clock.advance(LOCK)
    watched.broker.tick()
    happened = [Happening.DELIVERED, Happening.RENEWED, Happening.LOCK_LOST]
    assert [what for what, _ in watched.told()] == happened
    assert watched.seen[-1].delivery_count == 1


def test_a_message_that_the_broker_gives_up_is_told_as_a_dead_letter(watched: Watched) -> None:
    for _ in range(2):
        (delivery,) = watched.queue.take(1)
        watched.queue.settle(delivery.token, Abandon())
    reasons = [each.reason for each in watched.seen if each.what is Happening.DEAD_LETTERED]
    assert reasons == ["MaxDeliveryCountExceeded"]


def test_a_message_that_expires_is_told(watched: Watched) -> None:
    watched.broker.send("q", [Note("m2", ttl=10)])
    watched.clock.advance(10)
    watched.broker.tick()
    assert watched.told() == [(Happening.EXPIRED, "m2")]


def test_what_is_taken_for_good_or_by_number_is_told_as_delivered(watched: Watched) -> None:
    (delivery,) = watched.queue.take(1)
    watched.queue.settle(delivery.token, Defer())
    watched.queue.take_deferred([1])
    watched.broker.send("q", [Note("m2")])
    watched.queue.take(1, keep=False)
    delivered = [name for what, name in watched.told() if what is Happening.DELIVERED]
    assert delivered == ["m1", "m1", "m2"]
