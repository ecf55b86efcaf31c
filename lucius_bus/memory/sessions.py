"""Sessions: messages that share an id, received in order by one receiver at a time."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

from lucius_bus.memory.errors import Misused, SessionUnavailable
from lucius_bus.memory.queue import NEVER, Lock, Queue
from lucius_bus.memory.subscription import Subscription
from lucius_bus.memory.waiting import Waiters, found_within
from lucius_bus.port import Bus, BusMessage, BusUnavailable, Delivery, LockLost
from lucius_bus.topology import SubscriptionSettings


class SessionQueue(Queue):
    def renew(self, lock: Lock, now: datetime) -> datetime:
        self.check(lock, now)
        raise Misused("a message of a session is held as long as the session: renew that")


class Session:
    """The messages that share a session id. `hold` is who receives them, and nobody else, until
    then: a new object each time, None when nobody does."""

    def __init__(self, session_id: str, queue: Queue) -> None:
        self.session_id = session_id
        self.queue = queue
        self.hold: object = None
        self.until = NEVER
        self.state: bytes | None = None

    @property
    def is_empty(self) -> bool:
        return self.state is None and not (self.queue.active or self.queue.locked)


class SessionSubscription(Subscription):
    """One whose messages are received by session. A message without a session id has no place here
    and goes to the dead letters: the topic has accepted it by then and may have other
    subscriptions, so that the publisher is not told."""

    def __init__(self, topic: str, settings: SubscriptionSettings) -> None:
        super().__init__(topic, settings)
        self.acceptors = Waiters()
        self._sessions: dict[str, Session] = {}

    def put(self, message: BusMessage, now: datetime) -> None:
        copy = self._copy(message, now)
        if message.session_id is None:
            self.dead.add(copy, "Session ID is null", "the subscription takes sessions only")
            return
        session = self._session(message.session_id)
        session.queue.put(copy)
        if session.hold is None:
            self.acceptors.wake()

    def queues(self) -> Iterable[Queue]:
        return [session.queue for session in self._sessions.values()]

    def accept(self, session_id: str | None, now: datetime) -> Session | None:
        """The session, or the first that has messages; None if it is held, or there is none."""
        self.expire(now)
        session = self._first_free() if session_id is None else self._session(session_id)
        if session is None or session.hold is not None:
            return None
        session.hold = object()
        self.extend(session, now)
        return session

    def extend(self, session: Session, now: datetime) -> datetime:
        session.until = now + self.settings.lock_duration
        session.queue.extend_all(session.until)
        return session.until

    def free(self, session: Session) -> None:
        session.hold, session.until = None, NEVER
        session.queue.waiters.wake_all()
        if session.is_empty:
            del self._sessions[session.session_id]
        elif session.queue.active:
            self.acceptors.wake()

    def expire(self, now: datetime) -> None:
        super().expire(now)
        for session in list(self._sessions.values()):
            if session.until <= now:
                self.free(session)
            elif session.hold is None and session.is_empty:
                del self._sessions[session.session_id]

    def pause(self, now: datetime) -> float:
        ends = min((session.until for session in self._sessions.values()), default=NEVER)
        wait: timedelta = min(ends - now, self.settings.lock_duration)
        return wait.total_seconds()

    def wake_all(self) -> None:
        super().wake_all()
        self.acceptors.wake_all()

    def _session(self, session_id: str) -> Session:
        if session_id not in self._sessions:
            queue = SessionQueue(self._address, self.settings, self.dead.add)
            self._sessions[session_id] = Session(session_id, queue)
        return self._sessions[session_id]

    def _first_free(self) -> Session | None:
        free = (s for s in self._sessions.values() if s.hold is None and s.queue.active)
        return next(free, None)


async def accepted(
    subscription: SessionSubscription,
    session_id: str | None,
    wait: timedelta,
    now: Callable[[], datetime],
) -> Session:
    """A session that is named is free or taken, at once; for any session it is worth waiting."""
    session = subscription.accept(session_id, now())
    if session is None and session_id is None and wait > timedelta(0):
        look = partial(subscription.accept, None)
        session = await found_within(wait, look, subscription.acceptors, subscription.pause, now)
    if session is None:
        what = "no session is free" if session_id is None else f"session {session_id} is taken"
        raise SessionUnavailable(f"{what} in subscription {subscription.settings.name}")
    return session


class MemorySession:
    """A session that this receiver holds.

    The lock on the session is also the lock on each of its messages: `renew` extends them all, and
    when it runs out they come again, with one delivery more. `close` gives back what is held as if
    it had not been delivered. After either, every verb but `close` is `LockLost`.
    """

    def __init__(
        self,
        bus: Bus,
        subscription: SessionSubscription,
        session: Session,
        now: Callable[[], datetime],
    ) -> None:
        self._bus = bus
        self._subscription = subscription
        self._session = session
        self._hold = session.hold
        self._now = now

    @property
    def session_id(self) -> str:
        return self._session.session_id

    @property
    def locked_until(self) -> datetime:
        return self._session.until

    async def receive(self, limit: int, wait: timedelta) -> list[Delivery]:
        """As `Bus.receive`, in order, what was abandoned first."""
        await asyncio.sleep(0)
        deliveries = self._take(limit, self._now())
        if deliveries or wait <= timedelta(0):
            return deliveries
        waiters, look = self._session.queue.waiters, partial(self._take, limit)
        return await found_within(wait, look, waiters, self._pause, self._now)

    async def complete(self, delivery: Delivery) -> None:
        await self._bus.complete(delivery)

    async def abandon(self, delivery: Delivery) -> None:
        await self._bus.abandon(delivery)

    async def dead_letter(self, delivery: Delivery, reason: str, description: str) -> None:
        await self._bus.dead_letter(delivery, reason, description)

    async def renew(self) -> datetime:
        """Hold the session and its messages for another lock duration."""
        now = self._now()
        self._check(now)
        return self._subscription.extend(self._session, now)

    async def get_state(self) -> bytes | None:
        """What was kept with the session, by this receiver or an earlier one."""
        self._check(self._now())
        return self._session.state

    async def set_state(self, state: bytes | None) -> None:
        """Keep it with the session for as long as it is not None, messages or not."""
        self._check(self._now())
        self._session.state = state

    async def close(self) -> None:
        """Closing twice, or after the lock ran out, is nothing; while the bus is away the lock is
        left to run out."""
        try:
            self._subscription.expire(self._now())
        except BusUnavailable:
            return
        if self._session.hold is self._hold:
            self._session.queue.release_all()
            self._subscription.free(self._session)

    def _take(self, limit: int, now: datetime) -> list[Delivery]:
        self._check(now)
        return self._session.queue.take(limit, now, self._session.until)

    def _pause(self, now: datetime) -> float:
        return (self._session.until - now).total_seconds()

    def _check(self, now: datetime) -> None:
        if self._session.until <= now:
            self._subscription.expire(now)
        if self._session.hold is not self._hold:
            raise LockLost(f"session {self.session_id} is not held any more")
