"""All entities by their names. Every change of an entity is a record, applied: that is how they
are changed, and how they are restored."""

from collections.abc import Callable, Iterator
from typing import Any

from servicebus_emulator.broker.content import Content
from servicebus_emulator.broker.dead_letters import DeadLetters
from servicebus_emulator.broker.entrance import Entrance
from servicebus_emulator.broker.errors import EntityNotFound
from servicebus_emulator.broker.observing import Observation
from servicebus_emulator.broker.queue import Queue
from servicebus_emulator.broker.records import (
    EntityRecord,
    QueueDeleted,
    QueuePut,
    Record,
    RuleDeleted,
    RulePut,
    SubscriptionDeleted,
    SubscriptionPut,
    TopicDeleted,
    TopicPut,
)
from servicebus_emulator.broker.settings import ReadableSettings
from servicebus_emulator.broker.shelf import Shelf
from servicebus_emulator.broker.source import Source
from servicebus_emulator.broker.topic import Subscription, Topic
from servicebus_emulator.broker.wiring import Refusal, Wiring

DEAD_LETTERS = "/$DeadLetterQueue"
_TRANSFER_DEAD_LETTERS = "/$Transfer/$DeadLetterQueue"


class Namespace:
    """Names are kept as they were first written; letter case does not count when they are looked
    up. `sources` and `entrances` are by the whole path, in lower case."""

    def __init__(
        self,
        clock: Callable[[], int],
        tokens: Callable[[], bytes],
        record: Callable[[Record], None] | None,
        max_message_bytes: int,
        observe: Callable[[Observation], None] | None = None,
    ) -> None:
        self.wiring = Wiring(clock, tokens, record, self._forward, observe)
        self.max_message_bytes = max_message_bytes
        self.queues: dict[str, Queue] = {}
        self.topics: dict[str, Topic] = {}
        self.sources: dict[str, Source] = {}
        self.entrances: dict[str, Entrance] = {}
        self._appliers: dict[type, Callable[[Any], None]] = {
            QueuePut: self._put_queue,
            QueueDeleted: self._delete_queue,
            TopicPut: self._put_topic,
            TopicDeleted: self._delete_topic,
            SubscriptionPut: self._put_subscription,
            SubscriptionDeleted: self._delete_subscription,
            RulePut: self._put_rule,
            RuleDeleted: self._delete_rule,
        }

    def apply(self, record: EntityRecord) -> None:
        self._appliers[type(record)](record)

    def queue(self, name: str) -> Queue:
        found = self.queues.get(name.lower())
        if found is None:
            raise EntityNotFound(f"there is no queue {name}")
        return found

    def topic(self, name: str) -> Topic:
        found = self.topics.get(name.lower())
        if found is None:
            raise EntityNotFound(f"there is no topic {name}")
        return found

    def subscription(self, topic: str, name: str) -> Subscription:
        return self.topic(topic).subscription(name)

    def shelf(self, path: str) -> Shelf:
        """Where messages of this path lie: a source, or a topic with what is scheduled."""
        key = path.lower()
        found = self.sources.get(key) or self.topics.get(key)
        if found is None:
            raise EntityNotFound(f"there is no entity {path}")
        return found

    def shelves(self) -> Iterator[Shelf]:
        yield from self.topics.values()
        yield from self.sources.values()

    def _forward(
        self, target: str, message: Content, moment: int, hops: int, origin: str | None, /
    ) -> None:
        entrance = self.entrances.get(target.lower())
        if entrance is None:
            raise Refusal("MessagingEntityNotFound", f"there is no entity {target} to forward to")
        entrance.forward(message, moment, hops, origin)

    def _put_queue(self, put: QueuePut) -> None:
        queue = self.queues.get(put.name.lower())
        if queue is None:
            limit = put.settings.max_message_bytes or self.max_message_bytes
            source = self._open(put.name, put.settings, limit, put.created_at)
            queue = Queue(source, put.settings, self.wiring, self.max_message_bytes, put.created_at)
            self.queues[put.name.lower()] = queue
            self.entrances[put.name.lower()] = queue.entrance
        else:
            queue.update(put.settings, put.updated_at)
        queue.updated_at = put.updated_at

    def _delete_queue(self, deleted: QueueDeleted) -> None:
        del self.queues[deleted.name.lower()]
        del self.entrances[deleted.name.lower()]
        self._close(deleted.name)

    def _put_topic(self, put: TopicPut) -> None:
        topic = self.topics.get(put.name.lower())
        if topic is None:
            topic = Topic(
                put.name, put.settings, self.wiring, self.max_message_bytes, put.created_at
            )
            self.topics[put.name.lower()] = topic
            self.entrances[put.name.lower()] = topic.entrance
        else:
            topic.update(put.settings)
        topic.updated_at = put.updated_at

    def _delete_topic(self, deleted: TopicDeleted) -> None:
        topic = self.topics.pop(deleted.name.lower())
        del self.entrances[deleted.name.lower()]
        topic.delete()
        for subscription in topic.subscriptions.values():
            self._close(subscription.source.path)

    def _put_subscription(self, put: SubscriptionPut) -> None:
        topic = self.topic(put.topic)
        found = topic.subscriptions.get(put.name.lower())
        if found is None:
            path = subscription_path(topic.path, put.name)
            limit = topic.entrance.max_message_bytes
            source = self._open(path, put.settings, limit, put.created_at)
            found = Subscription(put.name, put.settings, source, put.created_at)
            topic.subscriptions[put.name.lower()] = found
        found.settings, found.updated_at = put.settings, put.updated_at
        found.source.update(put.settings, topic.settings.default_ttl)
        found.source.forward_all(put.updated_at)
        found.source.wake()
        topic.route()

    def _delete_subscription(self, deleted: SubscriptionDeleted) -> None:
        topic = self.topic(deleted.topic)
        subscription = topic.subscriptions.pop(deleted.name.lower())
        topic.route()
        self._close(subscription.source.path)

    def _put_rule(self, put: RulePut) -> None:
        topic = self.topic(put.topic)
        topic.subscription(put.subscription).rules[put.rule.name.lower()] = put.rule
        topic.route()

    def _delete_rule(self, deleted: RuleDeleted) -> None:
        topic = self.topic(deleted.topic)
        del topic.subscription(deleted.subscription).rules[deleted.name.lower()]
        topic.route()

    def _open(self, path: str, settings: ReadableSettings, limit: int, now: int) -> Source:
        dead = DeadLetters(path + DEAD_LETTERS, settings, self.wiring, limit)
        source = Source(path, settings, self.wiring, limit, dead)
        transfer = DeadLetters(path + _TRANSFER_DEAD_LETTERS, settings, self.wiring, limit)
        for one in (source, dead, transfer):
            one.accessed_at = now
            self.sources[one.path.lower()] = one
        return source

    def _close(self, path: str) -> None:
        key = path.lower()
        for one in (key, key + DEAD_LETTERS.lower(), key + _TRANSFER_DEAD_LETTERS.lower()):
            self.sources.pop(one).delete()


def subscription_path(topic: str, name: str) -> str:
    return f"{topic}/Subscriptions/{name}"
