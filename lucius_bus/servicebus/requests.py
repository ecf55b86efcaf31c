"""Those who wait for messages of one subscription, and who gets which."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from lucius_bus.port import BusError, Delivery


@dataclass(slots=True, eq=False)
class Request:
    """The wait is over by the clock or by the event loop's time, whichever is first: the clock may
    be a fake one that stands still. Whoever waits has at least one look."""

    limit: int
    ends: datetime
    loop_ends: float
    future: asyncio.Future[list[Delivery]]
    has_looked: bool = False

    def is_over(self, now: datetime, loop_now: float) -> bool:
        return self.has_looked and (now >= self.ends or loop_now >= self.loop_ends)


class Requests:
    """In the order in which they came. What arrives for one that has gone is spare: it goes to the
    next, unless its lock has run out by then."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._waiting: list[Request] = []
        self.spare: deque[Delivery] = deque()

    def add(self, limit: int, wait: timedelta) -> asyncio.Future[list[Delivery]]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Delivery]] = loop.create_future()
        loop_ends = loop.time() + wait.total_seconds()
        self._waiting.append(Request(limit, self._clock() + wait, loop_ends, future))
        return future

    def wanted(self) -> int:
        """How many messages could be handed out now."""
        self._waiting = [one for one in self._waiting if not one.future.done()]
        return sum(request.limit for request in self._waiting)

    def left(self) -> timedelta:
        """How long the most impatient one waits."""
        now, loop_now = self._clock(), asyncio.get_running_loop().time()
        return min(
            (
                min(one.ends - now, timedelta(seconds=one.loop_ends - loop_now))
                for one in self.look()
            ),
            default=timedelta(0),
        )

    def look(self) -> list[Request]:
        """Those for whom it is looked now."""
        self.wanted()
        return list(self._waiting)

    def hand_out(self) -> list[Delivery]:
        """To each as much as there is, up to its limit, the first first. The answer is what was
        handed out."""
        handed: list[Delivery] = []
        for request in self.look():
            deliveries = self._take(request.limit)
            if not deliveries:
                break
            request.future.set_result(deliveries)
            handed += deliveries
        return handed

    def end(self, looked: list[Request]) -> None:
        """They had their look: those who do not wait any longer get nothing."""
        now, loop_now = self._clock(), asyncio.get_running_loop().time()
        for request in looked:
            request.has_looked = True
            if not request.future.done() and request.is_over(now, loop_now):
                request.future.set_result([])

    def fail(self, error: BusError) -> None:
        """Each with an error of its own: raising one changes it."""
        for request in self.look():
            request.future.set_exception(type(error)(*error.args))

    def _take(self, limit: int) -> list[Delivery]:
        taken: list[Delivery] = []
        now = self._clock()
        while self.spare and len(taken) < limit:
            delivery = self.spare.popleft()
            if delivery.locked_until > now:
                taken.append(delivery)
        return taken
