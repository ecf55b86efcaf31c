"""Entities: created, shown, changed, deleted."""

from dataclasses import replace

import pytest

from servicebus_emulator.broker import (
    Complete,
    EntityExists,
    EntityNotFound,
    InvalidArgument,
    NotAllowed,
    QueueSettings,
    SubscriptionSettings,
    TopicSettings,
)
from servicebus_emulator.rules import DEFAULT_RULE
from tests.emulator.broker.world import LOCK, START, Note, World, ids, notes, of_service, take_one


def test_entities_are_shown_as_they_were_written_and_found_by_any_letter_case(
    world: World,
) -> None:
    settings = QueueSettings(lock_duration=5000, user_metadata="mine")
    world.broker.create_queue("Jobs/High", settings)
    described = world.broker.queue("jobs/HIGH")
    assert (described.name, described.settings) == ("Jobs/High", settings)
    assert described.created_at == described.updated_at == described.accessed_at == START


def test_entities_are_listed_by_name(world: World) -> None:
    for name in ("b", "A", "c"):
        world.queue(name)
        world.topic(f"t{name}")
    for name in ("y", "X"):
        world.subscription(name, topic="tA")
    assert [one.name for one in world.broker.queues()] == ["A", "b", "c"]
    assert [one.name for one in world.broker.topics()] == ["tA", "tb", "tc"]
    assert [one.name for one in world.broker.subscriptions("ta")] == ["X", "y"]
    assert world.broker.topic("ta").subscription_count == 2


def test_a_subscription_shows_its_rules(world: World) -> None:
    world.topic()
    world.subscription("s", of_service("ocr"))
    world.subscription("all")
    assert world.broker.subscription("T", "S").rules == (of_service("ocr"),)
    assert world.broker.rules("t", "all") == [DEFAULT_RULE]


def test_counts_are_shown(world: World) -> None:
    queue = world.queue(dead_letter_on_expiry=True)
    world.send(*notes(2), Note("e", ttl=10), Note("s", scheduled_at=world.clock.now + 1000))
    world.clock.advance(10)
    take_one(queue)
    assert world.broker.queue("q").counts == (2, 1, 1, 0, 0, 400)
    assert world.broker.counts("q/$DeadLetterQueue")[:2] == (1, 0)


def test_sending_and_receiving_are_seen_as_access(world: World) -> None:
    queue = world.queue()
    world.clock.advance(10)
    world.send(Note("m1"))
    assert world.broker.queue("q").accessed_at == START + 10
    world.clock.advance(10)
    queue.take(1)
    assert world.broker.queue("q").accessed_at == START + 20


def test_a_name_is_taken_once_by_a_queue_or_a_topic(world: World) -> None:
    world.queue()
    world.topic()
    world.subscription("s")
    with pytest.raises(EntityExists):
        world.topic("Q")
    with pytest.raises(EntityExists):
        world.queue("T")
    with pytest.raises(EntityExists):
        world.subscription("S")
    with pytest.raises(EntityExists):
        world.queue("t/subscriptions/s")
    with pytest.raises(EntityExists):
        world.broker.create_rule("t", "s", replace(DEFAULT_RULE, name="$DEFAULT"))
    with pytest.raises(EntityExists):
        world.subscription("twice", of_service("a"), of_service("b"))
    with pytest.raises(EntityNotFound):
        world.broker.subscription("t", "twice")


@pytest.mark.parametrize("name", ["", "/q", "q/", "a b", "q$", "x" * 261, "ä"])
def test_a_name_that_cannot_be_is_refused(world: World, name: str) -> None:
    with pytest.raises(InvalidArgument):
        world.queue(name)


@pytest.mark.parametrize("name", ["", "a/b", "x" * 51])
def test_a_subscription_has_no_such_name(world: World, name: str) -> None:
    world.topic()
    with pytest.raises(InvalidArgument):
        world.subscription(name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lock_duration": 0},
        {"lock_duration": 300_001},
        {"max_delivery_count": 0},
        {"max_delivery_count": 2001},
        {"default_ttl": 0},
        {"duplicate_window": 0},
        {"max_size_bytes": 0},
        {"max_message_bytes": 0},
        {"status": "Sleepy"},
        {"forward_to": "Q"},
        {"forward_dead_letters_to": "q"},
        {"forward_to": "other", "requires_session": True},
    ],
)
def test_settings_out_of_range_are_refused(world: World, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        world.queue("q", **wrong)
    world.queue()
    with pytest.raises((InvalidArgument, NotAllowed)):
        world.broker.update_queue("q", QueueSettings(**wrong))  # type: ignore[arg-type]
    assert world.broker.queue("q").settings == QueueSettings()


def test_settings_hold_from_when_they_are_changed(world: World) -> None:
    queue = world.queue()
    world.send(*notes(2))
    first = take_one(queue)
    world.clock.advance(10)
    world.broker.update_queue("q", QueueSettings(lock_duration=1000))
    second = take_one(queue)
    assert first.locked_until == START + LOCK
    assert second.locked_until == START + 1010
    described = world.broker.queue("q")
    assert (described.created_at, described.updated_at) == (START, START + 10)
    world.pass_time(1000)
    assert ids(queue.take(10)) == ["m2"]


def test_topics_and_subscriptions_are_changed_too(world: World) -> None:
    world.topic()
    source = world.subscription("s", max_delivery_count=3)
    world.clock.advance(10)
    world.broker.update_subscription("t", "s", SubscriptionSettings(max_delivery_count=4))
    world.broker.update_topic("t", TopicSettings(default_ttl=1000))
    world.send(Note("m1"), to="t")
    assert world.broker.topic("t").updated_at == START + 10
    assert world.broker.subscription("t", "s").updated_at == START + 10
    assert source.settings.max_delivery_count == 4
    world.clock.advance(1000)
    assert source.take(1) == []


@pytest.mark.parametrize("fixed", ["requires_session", "requires_duplicate_detection"])
def test_some_settings_are_decided_at_the_start(world: World, fixed: str) -> None:
    world.queue()
    with pytest.raises(NotAllowed, match=fixed):
        world.broker.update_queue("q", QueueSettings(**{fixed: True}))  # type: ignore[arg-type]


def test_a_deleted_queue_is_gone_with_its_messages(world: World) -> None:
    old = world.queue(requires_duplicate_detection=True)
    world.send(*notes(2))
    token = take_one(old).token
    dead = world.dead(old)
    world.broker.delete_queue("Q")
    for verb in (
        lambda: old.take(1),
        lambda: old.settle(token, Complete()),
        lambda: old.renew(token),
        lambda: old.peek(0, 1),
        lambda: old.take_deferred([1]),
        lambda: old.await_message(print),
        lambda: dead.take(1),
        lambda: world.send(Note("m3")),
        lambda: world.broker.queue("q"),
        lambda: world.broker.source("q/$DeadLetterQueue"),
    ):
        with pytest.raises(EntityNotFound):
            verb()
    old.release(token)
    old.forget(print)
    assert old.is_deleted
    assert dead.is_deleted
    world.pass_time(LOCK)
    new = world.queue()
    world.send(Note("m1"))
    assert [one.sequence_number for one in new.take(10)] == [1]


def test_who_asked_is_told_of_the_deletion(world: World) -> None:
    world.topic()
    source = world.subscription("s")
    told: list[str] = []
    source.await_deletion(lambda: told.append("source"))
    world.dead(source).await_deletion(lambda: told.append("dead letters"))
    silent = lambda: told.append("forgotten")  # noqa: E731
    source.await_deletion(silent)
    source.forget(silent)
    source.await_message(lambda: told.append("message"))
    world.broker.delete_subscription("t", "S")
    assert sorted(told) == ["dead letters", "source"]


def test_a_deleted_session_queue_ends_its_locks(world: World) -> None:
    queue = world.queue(requires_session=True)
    lock = queue.accept_session("a")
    assert lock is not None
    world.broker.delete_queue("q")
    assert not lock.is_held
    with pytest.raises(EntityNotFound):
        lock.renew()
    lock.release()
    world.pass_time(LOCK)


def test_a_deleted_topic_takes_its_subscriptions_along(world: World) -> None:
    world.topic()
    source = world.subscription("s")
    world.broker.schedule("t", [Note("m1", scheduled_at=world.clock.now + 10)])
    world.broker.delete_topic("T")
    world.pass_time(10)
    assert source.is_deleted
    with pytest.raises(EntityNotFound):
        world.broker.source("t/subscriptions/s")
    world.topic()
    assert world.broker.subscriptions("t") == []


def test_a_deleted_subscription_gets_nothing_more(world: World) -> None:
    world.topic()
    world.subscription("s")
    world.broker.delete_subscription("t", "s")
    world.send(Note("m1"), to="t")
    assert world.subscription("s").take(1) == []


@pytest.mark.parametrize(
    "verb",
    [
        lambda broker: broker.delete_queue("none"),
        lambda broker: broker.delete_topic("none"),
        lambda broker: broker.delete_subscription("t", "none"),
        lambda broker: broker.delete_rule("t", "s", "none"),
        lambda broker: broker.update_queue("none", QueueSettings()),
        lambda broker: broker.update_topic("none", TopicSettings()),
        lambda broker: broker.update_subscription("t", "none", SubscriptionSettings()),
        lambda broker: broker.update_rule("t", "s", of_service("x")),
        lambda broker: broker.create_subscription("none", "s", SubscriptionSettings()),
        lambda broker: broker.create_rule("t", "none", DEFAULT_RULE),
        lambda broker: broker.counts("none"),
        lambda broker: broker.rules("t", "none"),
        lambda broker: broker.message_limit("none"),
    ],
)
def test_what_does_not_exist_is_not_found(world: World, verb: object) -> None:
    world.topic()
    world.subscription("s")
    assert callable(verb)
    with pytest.raises(EntityNotFound):
        verb(world.broker)


def test_the_broker_says_when_it_has_something_to_do(world: World) -> None:
    queue = world.queue()
    assert world.broker.next_due() is None
    world.send(Note("m1", ttl=90_000), Note("m2", scheduled_at=START + 70_000))
    assert world.broker.next_due() == START + 70_000
    take_one(queue)
    assert world.broker.next_due() == START + LOCK
    world.pass_time(LOCK)
    assert world.broker.next_due() == START + 70_000
    world.pass_time(100_000)
    assert world.broker.next_due() is None
