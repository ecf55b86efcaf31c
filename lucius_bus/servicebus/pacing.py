"""When to try again."""

from collections.abc import Callable
from datetime import datetime, timedelta

from lucius_bus.port import BusUnavailable


class Backoff:
    """Pauses between attempts to connect: each twice the one before, half of it by chance."""

    def __init__(self, first: timedelta, longest: timedelta, chance: Callable[[], float]) -> None:
        self._first = first.total_seconds()
        self._longest = longest.total_seconds()
        self._chance = chance
        self._failures = 0
        self._until = 0.0

    def fail(self, now: float) -> None:
        pause = min(self._first * 2.0 ** min(self._failures, 30), self._longest)
        self._failures += 1
        self._until = now + pause / 2 * (1 + self._chance())

    def succeed(self) -> None:
        self._failures, self._until = 0, 0.0

    def left(self, now: float) -> timedelta:
        return timedelta(seconds=max(self._until - now, 0.0))


class Quiet:
    """A topic that asked to slow down is left alone, and who calls meanwhile is told at once."""

    def __init__(self, topic: str, duration: timedelta, clock: Callable[[], datetime]) -> None:
        self._topic = topic
        self._duration = duration
        self._clock = clock
        self._until: datetime | None = None

    def begin(self) -> None:
        self._until = self._clock() + self._duration

    def check(self) -> None:
        """`BusUnavailable` while it lasts."""
        if self._until is None:
            return
        left = self._until - self._clock()
        if timedelta(0) < left <= self._duration:  # more is left only if the clock was set back
            raise BusUnavailable(f"topic {self._topic} asked to be left alone: {left} to go")
        self._until = None
