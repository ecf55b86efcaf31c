"""A broker comes back from its snapshot, and from all its records, as it was."""

from collections.abc import Callable

import pytest

from servicebus_emulator.broker import (
    Abandon,
    Broker,
    Complete,
    DeadLetter,
    Defer,
    NotAllowed,
    QueueSettings,
    SubscriptionSettings,
    TopicSettings,
)
from servicebus_emulator.rules import FalseFilter, Rule
from tests.emulator.broker.world import LOCK, Note, World, ids, notes, of_service, reason, take_one

Restored = Callable[[], Broker]


@pytest.fixture(params=["snapshot", "records"])
def restored(request: pytest.FixtureRequest, world: World) -> Restored:
    def restore() -> Broker:
        broker = world.another()
        is_snapshot = request.param == "snapshot"
        broker.restore(world.broker.snapshot() if is_snapshot else world.records)
        return broker

    return restore


def test_entities_come_back(world: World, restored: Restored) -> None:
    world.queue("Jobs", lock_duration=1000)
    world.queue("gone")
    world.topic("Lane")
    world.subscription("Ocr", of_service("ocr"), topic="Lane")
    world.subscription("gone", topic="lane")
    world.subscription("later", topic="lane")
    world.clock.advance(10)
    world.broker.update_queue("jobs", QueueSettings(lock_duration=2000))
    world.broker.update_topic("lane", TopicSettings(default_ttl=1000))
    world.broker.update_subscription("lane", "ocr", SubscriptionSettings(max_delivery_count=3))
    world.broker.create_rule("LANE", "OCR", Rule("Never", FalseFilter()))
    world.broker.update_rule("lane", "ocr", Rule("never", FalseFilter()))
    world.broker.delete_rule("lane", "later", "$default")
    world.broker.delete_queue("gone")
    world.broker.delete_subscription("lane", "gone")
    broker = restored()
    assert broker.queues() == world.broker.queues()
    assert broker.topics() == world.broker.topics()
    assert broker.subscriptions("lane") == world.broker.subscriptions("lane")
    broker.send("lane", [Note("m1", {"service": "ocr"})])
    assert ids(broker.source("lane/subscriptions/ocr").take(10)) == ["m1"]


def test_a_deleted_topic_stays_deleted(world: World, restored: Restored) -> None:
    world.topic()
    world.subscription("s")
    world.send(Note("m1"), to="t")
    world.broker.delete_topic("t")
    assert restored().topics() == []


def test_messages_come_back_in_their_order_and_state(world: World, restored: Restored) -> None:
    queue = world.queue(max_delivery_count=5)
    world.send(*notes(6), Note("m7", scheduled_at=world.clock.now + 1000), Note("m8", ttl=500))
    taken = queue.take(6)
    queue.settle(taken[0].token, Abandon({"tried": "once"}))
    queue.settle(taken[1].token, Defer())
    queue.settle(taken[2].token, DeadLetter("Unreadable", "no JSON"))
    queue.settle(taken[3].token, Complete())
    broker = restored()
    source = broker.source("q")
    assert broker.counts("q") == world.broker.counts("q")
    again = source.take(10)
    assert ids(again) == ["m1", "m5", "m6", "m8"]
    assert again[0].message.facts.properties == {"tried": "once"}
    assert [one.delivery_count for one in again] == [1, 0, 0, 0]
    assert ids(source.take_deferred([2])) == ["m2"]
    (dead,) = broker.source("q/$DeadLetterQueue").take(10)
    assert (reason(dead), dead.dead_letter_source) == ("Unreadable", "q")
    world.clock.advance(1000)
    assert ids(source.take(10)) == ["m7"]


def test_what_was_locked_is_available_and_its_old_lock_is_worth_nothing(
    world: World, restored: Restored
) -> None:
    queue = world.queue()
    world.send(Note("m1"))
    take_one(queue)
    (delivery,) = restored().source("q").take(10)
    assert (ids([delivery]), delivery.delivery_count) == (["m1"], 0)


def test_time_goes_on_while_nobody_runs(world: World, restored: Restored) -> None:
    world.queue(dead_letter_on_expiry=True)
    world.send(Note("m1", ttl=1000), Note("m2", scheduled_at=world.clock.now + 500, ttl=900))
    broker = restored()
    assert broker.next_due() == world.clock.now + 500
    world.clock.advance(1400)
    assert broker.source("q").take(10) == []
    assert ids(broker.source("q/$DeadLetterQueue").take(10)) == ["m1", "m2"]


def test_numbers_are_never_used_again(world: World, restored: Restored) -> None:
    queue = world.queue(requires_duplicate_detection=True)
    world.topic()
    later = Note("m1", scheduled_at=world.clock.now + 1000)
    assert world.broker.schedule("q", [later, later]) == [1, 2]
    world.broker.cancel_scheduled("q", [1])
    world.broker.schedule("t", [later])
    queue.take(10, keep=False)
    broker = restored()
    broker.send("q", [Note("m2")])
    assert [one.sequence_number for one in broker.source("q").take(10)] == [3]
    assert broker.schedule("t", [later]) == [2]


def test_ids_that_were_seen_are_known(world: World, restored: Restored) -> None:
    world.queue(requires_duplicate_detection=True, duplicate_window=1000)
    world.send(Note("m1"))
    world.clock.advance(999)
    broker = restored()
    broker.send("q", [Note("m1")])
    assert broker.counts("q").active == 1
    world.clock.advance(1)
    broker.send("q", [Note("m1")])
    assert broker.counts("q").active == 2


def test_sessions_come_back_free_and_with_their_state(world: World, restored: Restored) -> None:
    queue = world.queue(requires_session=True)
    world.send(*(Note(f"{s}{n}", session_id=s) for n in range(2) for s in "ab"))
    for name, state in (("a", b"half"), ("empty", b"kept"), ("cleared", None)):
        lock = queue.accept_session(name)
        assert lock is not None
        lock.set_state(b"first")
        lock.set_state(state)
        queue.take(1, session=lock)
    source = restored().source("q")
    assert source.sessions(0, 0, 100) == ["a", "empty"]
    lock = source.accept_session("a")
    assert lock is not None
    assert lock.get_state() == b"half"
    assert ids(source.take(10, session=lock)) == ["a0", "a1"]
    assert source.accept_session(None) is not None
    assert source.accept_session(None) is None


def test_forwarded_messages_come_back_where_they_are(world: World, restored: Restored) -> None:
    world.queue("target")
    world.queue()
    world.send(Note("m1"))
    world.broker.update_queue("q", QueueSettings(forward_to="target"))
    world.send(Note("m2"))
    broker = restored()
    assert broker.counts("q").active == 0
    assert ids(broker.source("target").take(10)) == ["m1", "m2"]


def test_restoring_is_not_recorded_and_what_follows_is(world: World) -> None:
    world.queue()
    world.send(Note("m1"))
    records: list[object] = []
    broker = world.another(records.append)
    broker.restore(world.records)
    assert records == []
    broker.send("q", [Note("m2")])
    assert len(records) == 1


def test_only_an_empty_broker_is_restored(world: World) -> None:
    world.queue()
    with pytest.raises(NotAllowed):
        world.broker.restore([])


def test_locks_are_not_recorded(world: World) -> None:
    queue = world.queue()
    world.send(*notes(2))
    before = len(world.records)
    first, second = queue.take(2)
    queue.renew(first.token)
    queue.release(second.token)
    assert len(world.records) == before
    world.pass_time(LOCK)
    assert len(world.records) == before + 1
