"""Messages in the order in which they came, and the locks on those that were delivered.

Nothing here waits or reads a clock: the time is a parameter.
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from lucius_bus.memory.waiting import Waiters
from lucius_bus.port import BusMessage, Delivery, LockLost
from lucius_bus.topology import SubscriptionSettings

NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True, eq=False)
class Copy:
    """The copy of a message that one subscription has. `failures`: its deliveries that were
    abandoned or whose lock ran out."""

    sequence: int
    message: BusMessage
    expires_at: datetime
    failures: int = 0


@dataclass(slots=True, eq=False)
class Lock:
    """The token of a delivery: a new one each time, so that an earlier holder settles nothing."""

    copy: Copy
    queue: "Queue"
    until: datetime


class Address(NamedTuple):
    topic: str
    subscription: str


Bury = Callable[[Copy, str, str], None]


class Queue:
    """What has been taken comes back before all that never was: its sequence number is lower."""

    def __init__(self, address: Address, settings: SubscriptionSettings, bury: Bury) -> None:
        self.waiters = Waiters()
        self._bury = bury
        self._address = address
        self._settings = settings
        self._new: deque[Copy] = deque()
        self._returned: list[tuple[int, Copy]] = []
        self._locks: dict[int, Lock] = {}
        self._look_at = NEVER  # no lock runs out before

    @property
    def active(self) -> int:
        return len(self._new) + len(self._returned)

    @property
    def locked(self) -> int:
        return len(self._locks)

    def put(self, copy: Copy) -> None:
        self._new.append(copy)
        self.waiters.wake()

    def take(self, limit: int, now: datetime, until: datetime | None = None) -> list[Delivery]:
        """Deliver up to `limit` messages, locked until then, or for the lock duration."""
        if limit < 1:
            raise ValueError(f"limit must be at least 1: {limit}")
        if now >= self._look_at:
            self.expire_locks(now)
        until = until or now + self._settings.lock_duration
        deliveries: list[Delivery] = []
        while len(deliveries) < limit and (self._returned or self._new):
            copy = self._pop()
            if copy.expires_at <= now:
                self._expire(copy)
            else:
                deliveries.append(self._deliver(copy, until))
        return deliveries

    def check(self, lock: Lock, now: datetime) -> None:
        """`LockLost` unless the lock is held."""
        if lock.until <= now:
            self.expire_locks(now)
        if self._locks.get(lock.copy.sequence) is not lock:
            raise LockLost(
                f"message {lock.copy.message.message_id} is not held any more: its lock ran out, or"
                " it was settled"
            )

    def settle(self, lock: Lock, now: datetime) -> Copy:
        """End the lock, if it is still held: what becomes of the message is the caller's to say."""
        self.check(lock, now)
        del self._locks[lock.copy.sequence]
        return lock.copy

    def abandon(self, lock: Lock, now: datetime) -> None:
        self._fail(self.settle(lock, now), now)

    def dead_letter(self, lock: Lock, now: datetime, reason: str, description: str) -> None:
        self._bury(self.settle(lock, now), reason, description)

    def renew(self, lock: Lock, now: datetime) -> datetime:
        self.check(lock, now)
        lock.until = now + self._settings.lock_duration
        return lock.until

    def extend_all(self, until: datetime) -> None:
        for lock in self._locks.values():
            lock.until = until

    def release_all(self) -> None:
        """As if what is locked had not been delivered."""
        copies = [lock.copy for lock in self._locks.values()]
        self._locks.clear()
        for copy in copies:
            self._give_back(copy)

    def expire_locks(self, now: datetime) -> None:
        expired = [lock for lock in self._locks.values() if lock.until <= now]
        for lock in expired:
            del self._locks[lock.copy.sequence]
            self._fail(lock.copy, now)
        self._look_at = min((lock.until for lock in self._locks.values()), default=NEVER)

    def expire_messages(self, now: datetime) -> None:
        """Those that are not locked. A receiver need not call it: it passes over what expired."""
        expired = [copy for _, copy in sorted(self._returned) if copy.expires_at <= now]
        expired += [copy for copy in self._new if copy.expires_at <= now]
        if not expired:
            return
        self._returned = [pair for pair in self._returned if pair[1].expires_at > now]
        heapq.heapify(self._returned)
        self._new = deque(copy for copy in self._new if copy.expires_at > now)
        for copy in expired:
            self._expire(copy)

    def pause(self, now: datetime) -> float:
        """Seconds until a lock may run out, those included that are taken meanwhile."""
        wait: timedelta = min(self._look_at - now, self._settings.lock_duration)
        return wait.total_seconds()

    def _pop(self) -> Copy:
        return heapq.heappop(self._returned)[1] if self._returned else self._new.popleft()

    def _deliver(self, copy: Copy, until: datetime) -> Delivery:
        lock = Lock(copy, self, until)
        self._locks[copy.sequence] = lock
        if until < self._look_at:
            self._look_at = until
        topic, subscription = self._address
        return Delivery(copy.message, topic, subscription, copy.failures + 1, until, lock)

    def _fail(self, copy: Copy, now: datetime) -> None:
        copy.failures += 1
        if copy.failures >= self._settings.max_delivery_count:
            description = f"delivered {copy.failures} times and never settled"
            self._bury(copy, "MaxDeliveryCountExceeded", description)
        elif copy.expires_at <= now:
            self._expire(copy)
        else:
            self._give_back(copy)

    def _expire(self, copy: Copy) -> None:
        if self._settings.dead_letter_on_expiry:
            self._bury(copy, "TTLExpiredException", f"expired at {copy.expires_at.isoformat()}")

    def _give_back(self, copy: Copy) -> None:
        heapq.heappush(self._returned, (copy.sequence, copy))
        self.waiters.wake()
