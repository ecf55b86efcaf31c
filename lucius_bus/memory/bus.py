"""The bus of the port: topics, the verbs, and switches that let it fail."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from lucius_bus.memory.errors import Misused
from lucius_bus.memory.limits import refusal
from lucius_bus.memory.queue import Lock, Queue
from lucius_bus.memory.sessions import (
    MemorySession,
    SessionSubscription,
    accepted,
)
from lucius_bus.memory.subscription import Counts, Subscription
from lucius_bus.memory.waiting import found_within
from lucius_bus.port import (
    BusMessage,
    BusUnavailable,
    Delivery,
    LockLost,
    PublishRefused,
    Unpublished,
)
from lucius_bus.topology import (
    SubscriptionSettings,
    Topology,
    dead_letters_of,
)

_AT_ONCE = timedelta(0)


class MemoryBus:
    """All verbs run in one event loop, and every message is kept until it is settled or expires.

    Time is what `clock` says. With a real clock receivers wake by themselves when a lock runs out;
    who moves a fake one calls `tick` afterwards. A message that expires while it waits is dropped
    or dead-lettered when somebody looks: a receiver that comes upon it, a receiver of the dead
    letters, `tick` or `counts`.
    """

    def __init__(
        self, clock: Callable[[], datetime], *, max_message_bytes: int = 256 * 1024
    ) -> None:
        self._clock = clock
        self._max_bytes = max_message_bytes
        self._topics: dict[str, dict[str, Subscription]] = {}
        self._queues: dict[tuple[str, str], Queue] = {}
        self._refused: set[str] = set()
        self._is_away = False
        self._is_closed = False

    def apply(self, topology: Topology) -> None:
        """Create what is missing; what the topology does not name stays."""
        for topic, subscriptions in topology.topics.items():
            self.create_topic(topic)
            for settings in subscriptions:
                self.create_subscription(topic, settings)

    def create_topic(self, topic: str) -> None:
        self._topics.setdefault(topic, {})

    def create_subscription(self, topic: str, settings: SubscriptionSettings) -> None:
        """It gets what is published from now on. One that exists with other settings is `Misused`:
        it would have to be removed first, with its messages."""
        subscriptions = self._topics.get(topic)
        if subscriptions is None:
            raise Misused(f"there is no topic {topic}")
        existing = subscriptions.get(settings.name)
        if existing is not None:
            if existing.settings != settings:
                raise Misused(f"subscription {settings.name} of {topic} exists with other settings")
            return
        kind = SessionSubscription if settings.requires_session else Subscription
        created = subscriptions[settings.name] = kind(topic, settings)
        self._queues[topic, dead_letters_of(settings.name)] = created.dead
        if not settings.requires_session:
            self._queues[topic, settings.name] = created.queue

    async def publish(self, topic: str, messages: Sequence[BusMessage]) -> list[Unpublished]:
        try:
            now, subscriptions = self._now(), self._open_topic(topic)
        except (BusUnavailable, PublishRefused) as error:
            return [Unpublished(message, error) for message in messages]
        unpublished = []
        for message in messages:
            reason = refusal(message, self._max_bytes)
            if reason is not None:
                unpublished.append(Unpublished(message, PublishRefused(reason)))
                continue
            for subscription in subscriptions:
                if subscription.matches(message):
                    subscription.put(message, now)
        return unpublished

    async def receive(
        self, topic: str, subscription: str, limit: int, wait: timedelta
    ) -> list[Delivery]:
        """Also of the dead letters, under the name that `dead_letters_of` gives. `Misused` where
        there is no such subscription, or where it takes sessions."""
        await asyncio.sleep(0)  # a loop that receives and never waits must not starve the others
        now = self._now()
        queue = self._queues.get((topic, subscription)) or self._missing(topic, subscription)
        deliveries = queue.take(limit, now)
        if deliveries or wait <= _AT_ONCE:
            return deliveries
        look = partial(queue.take, limit)
        return await found_within(wait, look, queue.waiters, queue.pause, self._now)

    async def complete(self, delivery: Delivery) -> None:
        lock = _lock_of(delivery)
        lock.queue.settle(lock, self._now())

    async def abandon(self, delivery: Delivery) -> None:
        lock = _lock_of(delivery)
        lock.queue.abandon(lock, self._now())

    async def dead_letter(self, delivery: Delivery, reason: str, description: str) -> None:
        """`Misused` for what is a dead letter already."""
        lock = _lock_of(delivery)
        lock.queue.dead_letter(lock, self._now(), reason, description)

    async def renew(self, delivery: Delivery) -> Delivery:
        """`Misused` for a message of a session: the session is renewed."""
        lock = _lock_of(delivery)
        return delivery._replace(locked_until=lock.queue.renew(lock, self._now()))

    async def accept_session(
        self,
        topic: str,
        subscription: str,
        session_id: str | None = None,
        wait: timedelta = _AT_ONCE,
    ) -> MemorySession:
        """Hold the session, or the next one that has messages, for which it is waited.
        `SessionUnavailable` if it is taken, or if none came; `Misused` where sessions are not
        taken. A session that is named need not have messages."""
        self._now()
        found = self._topics.get(topic, {}).get(subscription)
        if not isinstance(found, SessionSubscription):
            raise Misused(f"subscription {subscription} of {topic} takes no sessions")
        session = await accepted(found, session_id, wait, self._now)
        return MemorySession(self, found, session, self._now)

    async def check(self) -> None:
        self._now()

    async def close(self) -> None:
        """What is held can be received again, but by nobody: all verbs are `BusUnavailable`."""
        self._is_closed = True
        for subscription in self._subscriptions():
            subscription.release_all()
            subscription.wake_all()

    def tick(self) -> None:
        """The clock was moved: do what time has brought, and let those who wait look at it."""
        now = self._clock()
        for subscription in self._subscriptions():
            subscription.expire(now)
            subscription.dead.expire_locks(now)
            subscription.wake_all()

    def go_away(self) -> None:
        """Nobody reaches the bus, those who wait included; its clock runs on."""
        self._is_away = True
        for subscription in self._subscriptions():
            subscription.wake_all()

    def come_back(self) -> None:
        self._is_away = False

    def refuse(self, topic: str) -> None:
        """As if nobody had the right to publish there."""
        self._refused.add(topic)

    def allow(self, topic: str) -> None:
        self._refused.discard(topic)

    def counts(self, topic: str, subscription: str) -> Counts:
        found = self._topics.get(topic, {}).get(subscription)
        if found is None:
            raise Misused(f"there is no subscription {subscription} of topic {topic}")
        return found.counts(self._clock())

    def _now(self) -> datetime:
        """The time, for those whom the bus answers."""
        if self._is_away or self._is_closed:
            raise BusUnavailable("the bus is closed" if self._is_closed else "the bus is away")
        return self._clock()

    def _open_topic(self, topic: str) -> Iterable[Subscription]:
        if topic in self._refused:
            raise PublishRefused(f"nobody may publish to topic {topic}")
        if topic not in self._topics:
            raise PublishRefused(f"there is no topic {topic}")
        return self._topics[topic].values()

    def _missing(self, topic: str, subscription: str) -> Queue:
        if subscription in self._topics.get(topic, {}):
            raise Misused(f"subscription {subscription} of {topic} takes sessions: accept one")
        raise Misused(f"there is no subscription {subscription} of topic {topic}")

    def _subscriptions(self) -> list[Subscription]:
        return [one for topic in self._topics.values() for one in topic.values()]


def _lock_of(delivery: Delivery) -> Lock:
    if not isinstance(delivery.token, Lock):
        raise LockLost(f"message {delivery.message.message_id} was not delivered by this bus")
    return delivery.token
