"""Time: which store has something to do when."""

import heapq
from collections.abc import Callable
from typing import Protocol

from servicebus_emulator.broker.deadlines import NEVER
from servicebus_emulator.broker.waiting import Bell


class Timed(Protocol):
    """What time changes. `announced` is when the agenda will call `advance`."""

    announced: int
    serial: int

    def advance(self, moment: int) -> None:
        """Do what is due at the moment."""

    def next_due(self) -> int:
        """When something is due next, or `NEVER`."""


class Agenda:
    """Every verb asks it for the time, and finds the broker as that time has left it.

    What has come due since the last verb happens in the order of its time, and as if at that time:
    how often somebody looks makes no difference.
    """

    __slots__ = ("_bell", "_clock", "_heap", "first")

    def __init__(self, clock: Callable[[], int], bell: Bell) -> None:
        self._clock = clock
        self._bell = bell
        self._heap: list[tuple[int, int, Timed]] = []
        self.first = NEVER

    def now(self) -> int:
        now = self._clock()
        if now >= self.first:
            self._run(now)
        return now

    def announce(self, timed: Timed, when: int) -> None:
        """Something of it is due then, earlier than all that was announced before."""
        timed.announced = when
        heapq.heappush(self._heap, (when, timed.serial, timed))
        if when < self.first:
            self.first = when

    def _run(self, now: int) -> None:
        heap = self._heap
        try:
            while heap and heap[0][0] <= now:
                when, _, timed = heapq.heappop(heap)
                if timed.announced == when:  # else it was announced for an earlier time since
                    self._advance(timed, when)
        finally:
            self.first = heap[0][0] if heap else NEVER
        self._bell.ring()

    def _advance(self, timed: Timed, when: int) -> None:
        timed.announced = NEVER
        try:
            timed.advance(when)
        finally:
            upcoming = timed.next_due()
            if upcoming < timed.announced:
                self.announce(timed, upcoming)
