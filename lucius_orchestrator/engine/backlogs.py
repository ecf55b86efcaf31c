"""Directives that wait for their turn, by service and lane.

The ledger counts them in O(backlog). So a count serves all who ask for a while, and the longer it
takes, the more rarely it is made.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.ports.ledger import Backlog, Ledger

_LIFE = 2.0
_PAUSE_FACTOR = 9
"""At most a tenth of the time goes into counting."""
_TRUSTED = 60.0

_LONGEST_WAIT = timedelta(hours=1)
_SHORTEST_WAIT = timedelta(seconds=1)
_FREE_AGAIN = 0.9
"""The part of the limit below which a client that was refused is welcome again."""


class _Count(NamedTuple):
    at: float
    seconds: float
    rows: Sequence[Backlog]
    by_lane: Mapping[tuple[str, int], Backlog]


class Backlogs:
    """`clock` counts seconds. `close` ends a count that is under way."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._clock = clock
        self._last: _Count | None = None
        self._counting: asyncio.Task[_Count] | None = None

    async def read(self) -> Sequence[Backlog]:
        """Return what waits, or waited a moment ago. Raise what the ledger raises.

        Whoever comes while they are counted waits for the same count, which goes on when one of
        them gives up."""
        last = self._last
        if last is not None and self._age(last) <= max(_LIFE, _PAUSE_FACTOR * last.seconds):
            return last.rows
        if self._counting is None:
            self._counting = asyncio.create_task(self._count())
            self._counting.add_done_callback(self._counted)
        return (await asyncio.shield(self._counting)).rows

    def last(self, service: str, lane: int) -> Backlog | None:
        """Return what waited there when they were last read; None: nothing, or that is too long
        ago to count. Costs no I/O."""
        last = self._last
        if last is None or self._age(last) > _TRUSTED + 2 * _PAUSE_FACTOR * last.seconds:
            return None
        return last.by_lane.get((service, lane))

    async def close(self) -> None:
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.wait([self._counting])

    async def _count(self) -> _Count:
        began = self._clock()
        rows = await self._ledger.backlogs()
        now = self._clock()
        by_lane = {(row.service, row.lane): row for row in rows}
        return _Count(now, now - began, rows, by_lane)

    def _counted(self, task: asyncio.Task[_Count]) -> None:
        self._counting = None
        if not task.cancelled() and task.exception() is None:
            self._last = task.result()

    def _age(self, count: _Count) -> float:
        return self._clock() - count.at


class LaneSaturated(ContractError):
    """Too many directives wait already. `retry_after` is how long those beyond the limit will take;
    None: nobody knows."""

    def __init__(self, message: str, retry_after: timedelta | None) -> None:
        super().__init__(ErrorCode.LANE_SATURATED, message)
        self.retry_after = retry_after


class PendingLimit:
    """How many directives of a service may wait in one lane, `most`. Follows the last count, so
    that it may be exceeded for a moment. `rate` is how many the service finishes in a second."""

    def __init__(self, backlogs: Backlogs, rate: Callable[[str], float], most: int) -> None:
        self._backlogs = backlogs
        self._rate = rate
        self._most = most

    def refusal(self, service: str, lane: int) -> LaneSaturated | None:
        """Return why no further directive may be added there; None: one may. Costs no I/O."""
        found = self._backlogs.last(service, lane)
        if found is None or found.waiting < self._most:
            return None
        message = (
            f"{found.waiting} directives of the service {service} wait in lane {lane},"
            f" which takes {self._most}"
        )
        return LaneSaturated(message, self._time_to_free(found))

    def _time_to_free(self, found: Backlog) -> timedelta | None:
        rate = self._rate(found.service)
        if rate <= 0:
            return None
        seconds = math.ceil((found.waiting - self._most * _FREE_AGAIN) / rate)
        return min(max(timedelta(seconds=min(seconds, 10**6)), _SHORTEST_WAIT), _LONGEST_WAIT)
