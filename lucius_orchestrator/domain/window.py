"""How many directives of a service may be on their way at once.

The ACK clock measures pickup, not queueing: a directive that waits behind others on the bus runs
out of time although its service is healthy. So only as many are published as the service is about
to pick up; the others wait in the outbox, where no clock runs.

Two rules, the narrower one holds:

*   A *window* on directives that are published and not acknowledged. It opens while ACKs come well
    within the ACK timeout and the window was in use, and is halved when they do not (additive
    increase, multiplicative decrease; below `threshold` it doubles once per round).
*   The *capacity* of the service, as its instances state it, or as it showed when it picked up
    nothing more: at most as many as have a free slot, and as many beyond as are sure to be picked
    up in time at the rate at which the service finishes its work.

A service that nothing is heard from gets `least` directives as probes. A service that is full gets
one now and then, since an instance that was just started states nothing before its first ACK.
"""

from datetime import datetime, timedelta
from math import ceil
from typing import NamedTuple

GOOD = 0.25
"""The part of the ACK timeout within which a pickup is quick."""

BAD = 0.5
"""The part of the ACK timeout from which a pickup is slow."""

AHEAD = timedelta(seconds=2.5)
"""For how long a service has work on the bus: longer than processes need to tell each other that a
slot is free."""

LONGEST_PROBE_PAUSE = timedelta(hours=2)
_MOST_DOUBLINGS = 16


class Limits(NamedTuple):
    """Between which the window of a service moves."""

    least: int = 1
    most: int = 1000


class Window(NamedTuple):
    """`shrunk_at`: a directive that was sent earlier than this says nothing new when it is late."""

    size: float
    threshold: float
    shrunk_at: datetime | None = None


class Signals(NamedTuple):
    """What is known of a service now. `unacknowledged` counts directives that were published or are
    about to be, also those that missed their ACK timeout and may still be picked up; `working`
    those that were acknowledged; `rate` is how many are finished in a second, `slot_seconds` after
    how long one of the slots becomes free, on average."""

    unacknowledged: int
    working: int
    capacity: int | None
    rate: float
    ack_timeout: timedelta
    slot_seconds: float | None = None


class Probes(NamedTuple):
    """Directives that were published although no slot was known to be free, and how many of them
    in a row were not picked up quickly."""

    last_at: datetime | None = None
    failures: int = 0


def new_window(limits: Limits) -> Window:
    return Window(limits.least, limits.most)


def picked_up(
    window: Window,
    limits: Limits,
    *,
    waited: timedelta,
    ack_timeout: timedelta,
    unacknowledged: int,
    now: datetime,
) -> Window:
    """Return the window after the ACK of a directive that waited so long; `unacknowledged` is how
    many there were before it."""
    size, threshold, shrunk_at = window
    part = waited / ack_timeout
    if part >= BAD:
        return missed(window, limits, sent_at=now - waited, now=now)
    if part > GOOD or 2 * unacknowledged < size or size >= limits.most:
        return window
    step = 1.0 if size < threshold else 1.0 / size
    return Window(min(size + step, limits.most), threshold, shrunk_at)


def widened(window: Window, limits: Limits, slots: int) -> Window:
    """Return the window after an instance has stated that it has so many slots more: they need not
    be found out one by one, since the capacity bounds what is published."""
    return window._replace(size=min(window.size + slots, limits.most))


def missed(window: Window, limits: Limits, *, sent_at: datetime, now: datetime) -> Window:
    """Return the window after a directive was not picked up in time. What was sent before the
    window was last halved does not halve it again."""
    if window.shrunk_at is not None and sent_at <= window.shrunk_at:
        return window
    size = max(window.size / 2, float(limits.least))
    return Window(size, size, now)


def absent(limits: Limits, now: datetime) -> Window:
    """Return the window of a service that nothing is heard from: probes."""
    return Window(limits.least, limits.most, now)


def rested(window: Window, limits: Limits, capacity: int | None) -> Window:
    """Return the window of a service that had nothing to do for a while: what it could do then says
    little about now."""
    least = float(max(limits.least, min(capacity or 0, limits.most)))
    return Window(min(window.size, least), limits.most) if window.size > least else window


def room(window: Window, signals: Signals) -> int:
    """Return how many more directives may be published now."""
    free = int(window.size) - signals.unacknowledged
    if signals.capacity is not None:
        slots = max(signals.capacity - signals.working, 0)
        free = min(free, slots + _soon_free(signals) - signals.unacknowledged)
    return max(free, 0)


def _soon_free(signals: Signals) -> int:
    """Return how many slots become free within `AHEAD`, at least one if one does in good time: a
    service that has to wait for its next directive idles meanwhile. More would make a tenant wait
    behind what is on the bus already."""
    in_time = (signals.ack_timeout * GOOD).total_seconds()
    if signals.slot_seconds is None or signals.slot_seconds > in_time:
        return 0
    return max(ceil(signals.rate * min(AHEAD.total_seconds(), in_time)), 1)


def may_probe(probes: Probes, signals: Signals, now: datetime) -> bool:
    """Return whether one directive may be published to a service that has no room. The pause
    doubles with each probe that was not picked up quickly."""
    if signals.unacknowledged:
        return False
    if probes.last_at is None:
        return True
    doublings = min(probes.failures + 1, _MOST_DOUBLINGS)
    pause = min(signals.ack_timeout * (1 << doublings), LONGEST_PROBE_PAUSE)
    return now - probes.last_at >= pause


def share(room: int, dispatchers: int, rank: int) -> int:
    """Return the part of a room that belongs to one of several dispatchers that see the same."""
    return (room + dispatchers - 1 - rank) // dispatchers
