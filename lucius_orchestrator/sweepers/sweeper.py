"""What a sweeper is, and the part that those of timers share."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from lucius_contract import timeouts
from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.domain.events import Timer
from lucius_orchestrator.domain.timers import TimerKind, armed, kind_of
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.ports.ledger import Stored


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """A round looks at up to `batch_size` jobs; timers fire `skew` after their deadline, so that
    two clocks may differ by as much."""

    batch_size: int = 200
    skew: timedelta = timeouts.MAX_CLOCK_SKEW
    retention: timedelta = timedelta(days=30)
    outbox_retention: timedelta = timedelta(days=1)


class Sweeper(ABC):
    """One kind of drift, and its repair."""

    name: ClassVar[str]
    interval: ClassVar[timedelta] = timedelta(seconds=1)
    waits_for_recovery: ClassVar[bool] = False
    """After a start, replies that came meanwhile are let in before this one acts."""

    def __init__(self, engine: LedgerEngine, settings: SweepSettings | None = None) -> None:
        self.engine = engine
        self.settings = settings or SweepSettings()

    async def run_once(self) -> int:
        """Look once; returns how many jobs were changed. One job that cannot be handled is told
        and passed over."""
        candidates = await self.candidates()
        acted = sum(await asyncio.gather(*map(self._guarded_repair, candidates)))
        self.engine.telemetry.swept(self.name, acted)
        return acted

    async def _guarded_repair(self, job_id: str) -> bool:
        try:
            return await self.repair(job_id)
        except Exception as error:
            if not _is_gone(error):
                self.engine.telemetry.sweeper_failed(self.name, job_id, error)
            return False

    @abstractmethod
    async def candidates(self) -> Collection[str]:
        """Ids of jobs that may need this sweeper."""

    @abstractmethod
    async def repair(self, job_id: str) -> bool:
        """Read the job and do what its state asks for; whether anything was."""


class TimerSweeper(Sweeper):
    """Fires the deadlines of some kinds that have passed."""

    kinds: ClassVar[frozenset[TimerKind]]

    async def candidates(self) -> Collection[str]:
        found = await self.engine.ledger.due(self.kinds, self._before(), self.settings.batch_size)
        return [job_id for job_id, _ in found]

    async def repair(self, job_id: str) -> bool:
        stored = await self.engine.read(job_id)
        timer = self._passed(stored)
        if timer is None:
            await self.engine.reschedule(stored, None)
            return False
        decision, _ = await self.engine.apply(job_id, timer)
        return decision.writes

    def _passed(self, stored: Stored) -> Timer | None:
        """The earliest deadline of this sweeper's kinds, if it has passed."""
        before = self._before()
        passed = [
            timer
            for timer in armed(stored.aggregate)
            if kind_of(timer) in self.kinds and timer.deadline <= before
        ]
        earliest = min(passed, key=lambda timer: timer.deadline, default=None)
        return None if earliest is None else replace(earliest, by=self.name)

    def _before(self) -> datetime:
        return self.engine.world.clock() - self.settings.skew


def _is_gone(error: Exception) -> bool:
    """Retention has removed the job since an index named it."""
    return isinstance(error, ContractError) and error.code is ErrorCode.JOB_NOT_FOUND
