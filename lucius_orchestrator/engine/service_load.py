"""What is known of one service: its signs of life, its instances, its pace, its window."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from lucius_contract import timeouts
from lucius_contract.routing import LANES
from lucius_orchestrator.domain.window import Probes, Window

INSTANCE_LIFE = timedelta(minutes=10)
"""An instance that nothing was heard from for so long is not counted any more. Longer than the
pause between two heartbeats by default."""

_RATE_SPAN = 10.0
_SMOOTHING = 0.2


class Presence(StrEnum):
    UNKNOWN = "UNKNOWN"
    """Nothing was heard from it yet, and nothing was asked of it in vain."""
    PRESENT = "PRESENT"
    ABSENT = "ABSENT"
    """A directive was not acknowledged in time and nothing was heard since it was sent."""


class Instance(NamedTuple):
    """What an instance of a service states, and when it did last."""

    slots: int
    heard_at: datetime


class Seen(NamedTuple):
    """What one process has seen of a service."""

    heard_at: datetime | None = None
    unacknowledged: int = 0
    working: int = 0
    rate: float = 0.0
    window: float | None = None
    """None: the process does not dispatch to it."""
    absent: bool = False
    has_backlog: bool = False
    instances: Mapping[str, Instance] = {}


class ServiceTraffic(NamedTuple):
    """A service as all processes together see it."""

    service: str
    presence: Presence
    heard_at: datetime | None
    unacknowledged: int
    working: int
    window: float
    capacity: int | None
    instances: int
    rate: float
    has_backlog: bool


@dataclass(slots=True)
class ServiceLoad:
    """What this process keeps account of for one service."""

    name: str
    window: Window
    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    lanes: list[int] = field(default_factory=lambda: [0] * LANES)
    known_room: int | None = None
    """As it was computed last; None: something has happened since."""
    ack_timeout: timedelta = timeouts.ACK_TIMEOUT
    heard_at: datetime | None = None
    picked_up_at: datetime | None = None
    waits_since: datetime | None = None
    idle_since: datetime | None = None
    is_absent: bool = False
    has_backlog: bool = False
    is_awaited: bool = False
    instances: dict[str, Instance] = field(default_factory=dict)
    shown_capacity: int | None = None
    probes: Probes = field(default_factory=Probes)
    remote: Seen = field(default_factory=Seen)
    finished: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    """Where the current span began, how many were finished in it, and in the one before."""
    seconds: float = 0.0
    """How long the work on a directive took lately."""

    @property
    def unacknowledged(self) -> int:
        claimed, unacknowledged, lapsed, _ = self.counts
        return claimed + unacknowledged + lapsed

    def capacity(self) -> int | None:
        """Return what the instances state in all, else what the service showed."""
        stated = {**self.instances, **self.remote.instances}
        if stated:
            return sum(instance.slots for instance in stated.values())
        return self.shown_capacity

    def rate(self, now: float) -> float:
        """Return how many directives are finished in a second: no more than were, and no more than
        slots allow, since several long ones may end at once."""
        capacity = self.capacity()
        if capacity is None or not self.seconds:
            return self._finished_lately(now)
        return min(self._finished_lately(now), capacity / self.seconds)

    def slot_seconds(self) -> float | None:
        """Return after how long one of the slots becomes free; None: nothing was finished yet."""
        capacity = self.capacity()
        return self.seconds / capacity if capacity and self.seconds else None

    def _finished_lately(self, now: float) -> float:
        began, count, before = self.finished
        if now - began >= 2 * _RATE_SPAN:
            return 0.0
        if now - began >= _RATE_SPAN:
            began, count, before = began + _RATE_SPAN, 0.0, count
        left = 1.0 - (now - began) / _RATE_SPAN
        return (count + before * left) / _RATE_SPAN

    def count_finished(self, now: float, seconds: float) -> None:
        self.seconds += (seconds - self.seconds) * (_SMOOTHING if self.seconds else 1.0)
        began, count, _ = self.finished
        if now - began < _RATE_SPAN:
            self.finished[1] = count + 1.0
        elif now - began < 2 * _RATE_SPAN:
            self.finished = [began + _RATE_SPAN, 1.0, count]
        else:
            self.finished = [now, 1.0, 0.0]

    def was_heard_since(self) -> bool:
        """Return whether another process has heard it since the window was closed."""
        heard, closed = self.remote.heard_at, self.window.shrunk_at
        return heard is not None and closed is not None and heard > closed


def latest(*moments: datetime | None) -> datetime | None:
    return max((moment for moment in moments if moment is not None), default=None)


def merged_seen(one: Seen, other: Seen) -> Seen:
    sizes = [size for size in (one.window, other.window) if size is not None]
    return Seen(
        latest(one.heard_at, other.heard_at),
        one.unacknowledged + other.unacknowledged,
        one.working + other.working,
        one.rate + other.rate,
        sum(sizes) if sizes else None,
        one.absent or other.absent,
        one.has_backlog or other.has_backlog,
        {**one.instances, **other.instances},
    )
