"""Runs sweepers, each in its own rhythm, until it is told to stop."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from lucius_bus.waiting import until_set
from lucius_contract import timeouts
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.engine.telemetry import Telemetry
from lucius_orchestrator.sweepers.ack_timeout import AckTimeout
from lucius_orchestrator.sweepers.cancelling import Cancelling
from lucius_orchestrator.sweepers.due_retries import DueRetries
from lucius_orchestrator.sweepers.expired_lease import ExpiredLease
from lucius_orchestrator.sweepers.index_repair import IndexRepair
from lucius_orchestrator.sweepers.job_sla import JobSla
from lucius_orchestrator.sweepers.retention import Retention
from lucius_orchestrator.sweepers.stale_dispatch import StaleDispatch
from lucius_orchestrator.sweepers.sweeper import SweepSettings


class Runnable(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def interval(self) -> timedelta: ...

    @property
    def waits_for_recovery(self) -> bool: ...

    async def run_once(self) -> int: ...


SWEEPERS = (
    StaleDispatch,
    AckTimeout,
    ExpiredLease,
    DueRetries,
    JobSla,
    Cancelling,
    IndexRepair,
    Retention,
)


def all_sweepers(
    engine: LedgerEngine, settings: SweepSettings | None = None
) -> tuple[Runnable, ...]:
    return tuple(kind(engine, settings) for kind in SWEEPERS)


class SweeperRunner:
    """Runs by `run()` until `stop()`. A round that did something is followed by another at once,
    one that failed is told and tried again after a pause. `intervals` are pauses by the sweeper's
    name, where they are to differ from its own."""

    def __init__(
        self,
        sweepers: Sequence[Runnable],
        telemetry: Telemetry,
        recovery_grace: timedelta = timeouts.RECOVERY_GRACE,
        intervals: Mapping[str, timedelta] | None = None,
    ) -> None:
        self._sweepers = sweepers
        self._telemetry = telemetry
        self._grace = recovery_grace
        self._intervals = intervals or {}
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def stop(self) -> None:
        self._stopping.set()
        await self._stopped.wait()

    async def run(self) -> None:
        self._stopped.clear()
        try:
            async with asyncio.TaskGroup() as tasks:
                for sweeper in self._sweepers:
                    tasks.create_task(self._sweep(sweeper))
        finally:
            self._stopped.set()

    async def _sweep(self, sweeper: Runnable) -> None:
        interval = self._intervals.get(sweeper.name, sweeper.interval)
        if sweeper.waits_for_recovery:
            await until_set(self._stopping, self._grace)
        while not self._stopping.is_set():
            if not await self._round(sweeper):
                await until_set(self._stopping, interval)

    async def _round(self, sweeper: Runnable) -> int:
        try:
            return await sweeper.run_once()
        except Exception as error:
            self._telemetry.sweeper_failed(sweeper.name, None, error)
            return 0
