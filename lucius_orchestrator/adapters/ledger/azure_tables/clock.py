"""What time it is at the service: leases that processes of many machines respect are measured by
one clock.

Every answer carries the time, to the second. Sent between `before` and `after` of our clock, it
bounds how far our clock is off, and many answers together bound it to less than a second. Within
the bounds, our own clock is taken to be right.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

_RESOLUTION = timedelta(seconds=1)


class ServiceClock:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._least = timedelta.min
        self._most = timedelta.max

    def __call__(self) -> datetime:
        return self._clock() + self.offset

    @property
    def offset(self) -> timedelta:
        return min(max(timedelta(), self._least), self._most)

    def now_here(self) -> datetime:
        return self._clock()

    def seen(self, before: datetime, date: str | None) -> None:
        """An answer with this date came to a request that was sent at `before`, by our clock."""
        try:
            there = parsedate_to_datetime(date or "")
        except ValueError:
            return
        least, most = there - self._clock(), there + _RESOLUTION - before
        if least > self._most or most < self._least:
            self._least, self._most = least, most  # one of the clocks was set
            return
        self._least, self._most = max(least, self._least), min(most, self._most)
