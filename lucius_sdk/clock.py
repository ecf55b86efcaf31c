"""Time, as the SDK uses it: what a wall says, what a stopwatch says, and being called later."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Protocol


class Timer(Protocol):
    def cancel(self) -> None:
        """It will not ring. Cancelling twice, or too late, is nothing."""


class Clock(Protocol):
    """Belongs to one event loop."""

    def now(self) -> datetime:
        """The time in UTC, which may be set."""

    def monotonic(self) -> float:
        """Seconds since some moment; they only grow."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call it in the event loop when the time has passed."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def ends_within(clock: Clock, seconds: float, work: Coroutine[Any, Any, object]) -> bool:
    """Whether the work ended in time; else it is given up. What it raises is raised."""
    task = asyncio.ensure_future(work)
    timer = clock.call_later(seconds, task.cancel)
    try:
        await asyncio.wait({task})
    finally:
        timer.cancel()
        task.cancel()
    if task.cancelled():
        return False
    task.result()
    return True
