"""When a failed message is tried again, and when it is given up. Policies are values."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from lucius_outbox.errors import InvalidSettings

_DOUBLINGS = 60  # beyond these any delay is the maximum, and floats stay exact enough


@dataclass(frozen=True, slots=True)
class EqualJitter:
    """Half of `min(base · 2^(attempts-1), maximum)` for sure, up to all of it by chance."""

    base: timedelta = timedelta(seconds=1)
    maximum: timedelta = timedelta(minutes=5)

    def __post_init__(self) -> None:
        if not timedelta(0) < self.base <= self.maximum:
            raise InvalidSettings(f"EqualJitter needs 0 < base <= maximum, not {self}")

    def delay(self, attempts: int, chance: float) -> timedelta:
        doubled = self.base.total_seconds() * 2.0 ** min(attempts - 1, _DOUBLINGS)
        seconds = min(doubled, self.maximum.total_seconds())
        return timedelta(seconds=seconds / 2 * (1 + chance))


@dataclass(frozen=True, slots=True, init=False)
class Delays:
    """The wait after each failed attempt; the last one repeats."""

    delays: tuple[timedelta, ...]

    def __init__(self, delays: Sequence[timedelta]) -> None:
        if not delays or min(delays) < timedelta(0):
            raise InvalidSettings("Delays needs at least one delay, and none below zero")
        object.__setattr__(self, "delays", tuple(delays))

    def delay(self, attempts: int, chance: float) -> timedelta:  # noqa: ARG002 - as EqualJitter
        return self.delays[min(attempts, len(self.delays)) - 1]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`max_attempts` counts every try to publish, the first included.

    A claim that takes over an expired lease is not a try: whoever held the row may have died
    before it published. It has its own counter and limit, so that a message which kills its
    publisher ends dead all the same.
    """

    max_attempts: int = 10
    backoff: EqualJitter | Delays = field(default_factory=EqualJitter)
    max_reclaims: int = 20

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or self.max_reclaims < 0:
            raise InvalidSettings("RetryPolicy needs max_attempts >= 1 and max_reclaims >= 0")

    def delay_after(self, attempts: int, chance: float) -> timedelta | None:
        """The wait after failure number `attempts`, `chance` in [0, 1]; None: the row is dead."""
        if attempts >= self.max_attempts:
            return None
        return self.backoff.delay(attempts, chance)
