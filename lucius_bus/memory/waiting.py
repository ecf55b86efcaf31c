"""Receivers that wait: woken by a message, by time, or by the one who moves a fake clock."""

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

T = TypeVar("T")
_SHORTEST = 0.001  # seconds; timers may fire early, and a clock that stands still never gets there


class Waiters:
    """Each message wakes one of them. A message is taken by a receiver that runs, never given to
    one that waits, so that a cancelled receiver has nothing to lose."""

    __slots__ = ("_futures",)

    def __init__(self) -> None:
        self._futures: deque[asyncio.Future[None]] = deque()

    def wake(self) -> None:
        while self._futures:
            future = self._futures.popleft()
            if not future.done():
                future.set_result(None)
                return

    def wake_all(self) -> None:
        while self._futures:
            self.wake()

    async def wait(self, seconds: float) -> None:
        """Until woken, or until the time is over."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._futures.append(future)
        timer = loop.call_later(max(seconds, _SHORTEST), self._end, future)
        try:
            await future
        except asyncio.CancelledError:
            if future.cancelled():
                self._forget(future)
            else:
                self.wake()  # it was woken for a message that it will not take
            raise
        finally:
            timer.cancel()

    def _end(self, future: "asyncio.Future[None]") -> None:
        if not future.done():
            future.set_result(None)
            self._forget(future)

    def _forget(self, future: "asyncio.Future[None]") -> None:
        if future in self._futures:
            self._futures.remove(future)


async def found_within(
    wait: timedelta,
    look: Callable[[datetime], T],
    waiters: Waiters,
    pause: Callable[[datetime], float],
    now: Callable[[], datetime],
) -> T:
    """What `look` finds when woken; what it found last, which is nothing, when `wait` is over.

    `pause` says after how many seconds it is worth looking although nobody woke us. The wait is
    over by the clock or by the event loop's time, whichever is first: the clock may be a fake one
    that stands still.
    """
    loop = asyncio.get_running_loop()
    moment = now()
    ends, loop_ends = moment + wait, loop.time() + wait.total_seconds()
    while True:
        left = min((ends - moment).total_seconds(), loop_ends - loop.time())
        await waiters.wait(min(left, pause(moment)))
        moment = now()
        found = look(moment)
        if found or moment >= ends or loop.time() >= loop_ends:
            return found
