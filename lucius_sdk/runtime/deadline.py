"""Until when a step may be worked on. It only moves later."""

from datetime import datetime, timedelta

from lucius_sdk.clock import Clock


class Deadline:
    """Kept by the stopwatch, so that a clock that is set changes nothing for work under way. What
    the other side said by its clock counts for as much longer as clocks may differ."""

    def __init__(self, clock: Clock, at: datetime, skew: float) -> None:
        self._clock = clock
        self._skew = skew
        self.at = at
        self.monotonic = clock.monotonic() + self._left(at)

    @property
    def left(self) -> float:
        """Seconds; none if it has passed."""
        return max(self.monotonic - self._clock.monotonic(), 0.0)

    @property
    def has_passed(self) -> bool:
        return self._clock.monotonic() > self.monotonic

    def extend_to(self, at: datetime) -> None:
        self._extend(at, self._clock.monotonic() + self._left(at))

    def extend_from(self, monotonic: float, seconds: float) -> None:
        """`seconds` after a moment of the stopwatch."""
        passed = self._clock.monotonic() - monotonic
        self._extend(self._clock.now() + timedelta(seconds=seconds - passed), monotonic + seconds)

    def _extend(self, at: datetime, monotonic: float) -> None:
        if monotonic > self.monotonic:
            self.at, self.monotonic = at, monotonic

    def _left(self, at: datetime) -> float:
        return (at - self._clock.now()).total_seconds() + self._skew
