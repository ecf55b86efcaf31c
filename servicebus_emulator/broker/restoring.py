"""A broker as records, and back."""

from collections.abc import Iterable, Iterator

from servicebus_emulator.broker.namespace import Namespace
from servicebus_emulator.broker.records import (
    EntityRecord,
    IdSeen,
    MessageRecord,
    QueuePut,
    Record,
    RulePut,
    SubscriptionPut,
    TopicPut,
)
from servicebus_emulator.broker.topic import Topic


def snapshot_of(namespace: Namespace, now: int) -> Iterator[Record]:
    yield from _entities(namespace)
    for shelf in namespace.shelves():
        yield from shelf.records()
    for entrance in namespace.entrances.values():
        yield from entrance.records(now)


def restored(namespace: Namespace, records: Iterable[Record]) -> None:
    record, namespace.wiring.record = namespace.wiring.record, None
    try:
        for one in records:
            if isinstance(one, MessageRecord):
                _apply(namespace, one)
            else:
                namespace.apply(one)
        for shelf in namespace.shelves():
            shelf.settle_in()
    finally:
        namespace.wiring.record = record


def _apply(namespace: Namespace, record: MessageRecord) -> None:
    if isinstance(record, IdSeen):
        history = namespace.entrances[record.path.lower()].history
        history.add(record.message_id, record.until, namespace.wiring.agenda.now())
    else:
        namespace.shelf(record.path).apply(record)


def _entities(namespace: Namespace) -> Iterator[EntityRecord]:
    for queue in namespace.queues.values():
        yield QueuePut(queue.source.path, queue.settings, queue.created_at, queue.updated_at)
    for topic in namespace.topics.values():
        yield TopicPut(topic.path, topic.settings, topic.created_at, topic.updated_at)
        yield from _subscriptions(topic)


def _subscriptions(topic: Topic) -> Iterator[EntityRecord]:
    for one in topic.subscriptions.values():
        yield SubscriptionPut(topic.path, one.name, one.settings, one.created_at, one.updated_at)
        for rule in one.rules.values():
            yield RulePut(topic.path, one.name, rule)
