"""Going round all steps under way, now and then, to do for each what is due.

A step has a lock to renew, heartbeats to send, a deadline, and more; most are over long before any
of it is due. One look at all of them ten times a second costs far less than a timer for each.
"""

from typing import Protocol

from lucius_sdk.clock import Clock, Timer

PAUSE = 0.1


class Visited(Protocol):
    def visit(self, now: float) -> None:
        """Do what is due, without waiting. `now` is the stopwatch's."""


class Rounds:
    """Rests while there is nobody to visit."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._visited: dict[Visited, None] = {}
        self._timer: Timer | None = None

    def add(self, visited: Visited) -> None:
        self._visited[visited] = None
        if self._timer is None:
            self._timer = self._clock.call_later(PAUSE, self._go)

    def remove(self, visited: Visited) -> None:
        self._visited.pop(visited, None)

    def _go(self) -> None:
        now = self._clock.monotonic()
        for visited in list(self._visited):
            visited.visit(now)
        self._timer = self._clock.call_later(PAUSE, self._go) if self._visited else None
