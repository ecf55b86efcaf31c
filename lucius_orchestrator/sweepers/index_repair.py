"""Index rows that no commit will mend: left by a process that died between two writes."""

from datetime import timedelta

from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.sweepers.sweeper import SweepSettings


class IndexRepair:
    name = "index_repair"
    interval = timedelta(minutes=1)
    waits_for_recovery = False

    def __init__(self, engine: LedgerEngine, settings: SweepSettings | None = None) -> None:
        self._engine = engine
        self._settings = settings or SweepSettings()

    async def run_once(self) -> int:
        repairs = await self._engine.ledger.repair(self._settings.batch_size)
        self._engine.telemetry.repaired(repairs)
        self._engine.telemetry.swept(self.name, len(repairs))
        return len(repairs)
