"""Jobs that are CANCELLING although nothing of them is in flight."""

from collections.abc import Collection
from datetime import timedelta

from lucius_contract.states import JobState
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.domain.events import CancelRequested
from lucius_orchestrator.sweepers.sweeper import Sweeper


class Cancelling(Sweeper):
    name = "cancelling"
    interval = timedelta(seconds=30)

    async def candidates(self) -> Collection[str]:
        return await self.engine.ledger.in_states({JobState.CANCELLING}, self.settings.batch_size)

    async def repair(self, job_id: str) -> bool:
        aggregate = (await self.engine.read(job_id)).aggregate
        job = aggregate.job
        if job.state is not JobState.CANCELLING or job.engine is not Engine.LEDGER:
            return False
        if aggregate.active.in_flight:
            return False
        decision, _ = await self.engine.apply(job_id, CancelRequested(by=self.name))
        return decision.writes
