"""A clock that stands still until it is moved."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_START = datetime(2026, 1, 1, tzinfo=UTC)


class _FakeTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self._callback = None

    def ring(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


class FakeClock:
    """`advance` runs what is due in order of time, each at its own moment."""

    def __init__(self, start: datetime = _START) -> None:
        self._start = start
        self._passed = 0.0
        self._timers: list[tuple[float, int, _FakeTimer]] = []
        self._numbers = itertools.count()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    def call_later(self, seconds: float, callback: Callable[[], object]) -> _FakeTimer:
        timer = _FakeTimer(callback)
        entry = (self._passed + max(seconds, 0.0), next(self._numbers), timer)
        heapq.heappush(self._timers, entry)
        return timer

    async def sleep(self, seconds: float) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end() -> None:
            if not done.done():
                done.set_result(None)

        timer = self.call_later(seconds, end)
        try:
            await done
        finally:
            timer.cancel()

    def advance(self, seconds: float) -> None:
        end = self._passed + seconds
        while self._timers and self._timers[0][0] <= end:
            at, _, timer = heapq.heappop(self._timers)
            self._passed = max(self._passed, at)
            timer.ring()
        self._passed = end
