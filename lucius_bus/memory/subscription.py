"""What a topic does with a message: a copy for each subscription, its dead letters beside it."""

import itertools
import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, Protocol

from lucius_bus.memory.errors import Misused
from lucius_bus.memory.queue import NEVER, Address, Copy, Lock, Queue
from lucius_bus.port import BusMessage, Delivery
from lucius_bus.topology import SubscriptionSettings, dead_letters_of


class Counts(NamedTuple):
    """Messages that can be received, those under a lock, and dead letters, locked or not."""

    active: int
    locked: int
    dead: int


class Source(Protocol):
    """Where dead letters come from."""

    def expire(self, now: datetime) -> None: ...

    def pause(self, now: datetime) -> float: ...


class DeadLetters(Queue):
    """They neither expire nor run out of deliveries: only a receiver removes them. A message may
    become one by time alone, so that who receives here has the source look at the time first."""

    def __init__(self, topic: str, settings: SubscriptionSettings, source: Source) -> None:
        address = Address(topic, dead_letters_of(settings.name))
        endless = replace(settings, max_delivery_count=sys.maxsize, dead_letter_on_expiry=False)
        super().__init__(address, endless, self.add)
        self._source = source
        self._numbers = itertools.count()

    def add(self, copy: Copy, reason: str, description: str) -> None:
        why = {"DeadLetterReason": reason, "DeadLetterErrorDescription": description}
        message = copy.message._replace(properties={**copy.message.properties, **why})
        self.put(Copy(next(self._numbers), message, NEVER, copy.failures))

    def take(self, limit: int, now: datetime, until: datetime | None = None) -> list[Delivery]:
        self._source.expire(now)
        return super().take(limit, now, until)

    def dead_letter(self, lock: Lock, now: datetime, reason: str, description: str) -> None:
        self.check(lock, now)
        raise Misused(f"it is a dead letter already, and cannot be one for {reason}: {description}")

    def pause(self, now: datetime) -> float:
        return min(super().pause(now), self._source.pause(now))


class Subscription:
    """One whose messages any receiver may get."""

    def __init__(self, topic: str, settings: SubscriptionSettings) -> None:
        self.settings = settings
        self.matches = settings.filter.matches
        self.dead = DeadLetters(topic, settings, self)
        self._address = Address(topic, settings.name)
        self._numbers = itertools.count()
        self.queue = Queue(self._address, settings, self.dead.add)

    def put(self, message: BusMessage, now: datetime) -> None:
        self.queue.put(self._copy(message, now))

    def queues(self) -> Iterable[Queue]:
        return (self.queue,)

    def expire(self, now: datetime) -> None:
        """Do what time has brought: locks run out, and messages that are not locked."""
        for queue in self.queues():
            queue.expire_locks(now)
            queue.expire_messages(now)

    def pause(self, now: datetime) -> float:
        return self.queue.pause(now)

    def release_all(self) -> None:
        for queue in (*self.queues(), self.dead):
            queue.release_all()

    def wake_all(self) -> None:
        for queue in (*self.queues(), self.dead):
            queue.waiters.wake_all()

    def counts(self, now: datetime) -> Counts:
        self.expire(now)
        self.dead.expire_locks(now)
        active = sum(queue.active for queue in self.queues())
        locked = sum(queue.locked for queue in self.queues())
        return Counts(active, locked, self.dead.active + self.dead.locked)

    def _copy(self, message: BusMessage, now: datetime) -> Copy:
        expires_at = message.expires_at or NEVER
        if self.settings.default_ttl is not None:
            expires_at = min(expires_at, now + self.settings.default_ttl)
        return Copy(next(self._numbers), message, expires_at)
