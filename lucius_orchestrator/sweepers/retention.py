"""Terminal jobs that were kept long enough."""

from collections.abc import Collection
from datetime import timedelta

from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.ports.ledger import Conflict
from lucius_orchestrator.sweepers.sweeper import Sweeper


class Retention(Sweeper):
    name = "retention"
    interval = timedelta(minutes=1)

    async def run_once(self) -> int:
        """Also deletes what the outbox keeps of directives that went out."""
        ended = self.engine.world.clock() - self.settings.outbox_retention
        await self.engine.ledger.prune(ended, self.settings.batch_size)
        return await super().run_once()

    async def candidates(self) -> Collection[str]:
        before = self.engine.world.clock() - self.settings.retention
        return await self.engine.ledger.ended(before, self.settings.batch_size)

    async def repair(self, job_id: str) -> bool:
        stored = await self.engine.read(job_id)
        job = stored.aggregate.job
        before = self.engine.world.clock() - self.settings.retention
        if job.state not in TERMINAL_JOB_STATES:
            return False
        if job.completed_at is None or job.completed_at >= before:
            return False
        try:
            await self.engine.ledger.remove(stored)
        except Conflict:
            return False  # a late reply was recorded; the next round takes it
        return True
