"""Jobs of which something should have happened long ago: is their workflow still there?

A workflow may be terminated by hand, time out, or be lost with its server. While one is there, the
job is in good hands, however late it is. Where none is, another one is started, which goes on from
what is stored; a job whose SLA has passed is ended at once.
"""

from collections.abc import Collection
from datetime import timedelta

from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_contract.timeouts import RECOVERY_GRACE
from lucius_orchestrator.domain.aggregate import Aggregate, Engine, Job, Turn
from lucius_orchestrator.domain.events import SlaExceeded, WorkflowLost
from lucius_orchestrator.domain.timers import Due, TimerKind, next_due
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.ports.ledger import Stored
from lucius_orchestrator.ports.workflows import Workflows
from lucius_orchestrator.sweepers.sweeper import Sweeper, SweepSettings

_LONGEST_PAUSE = timedelta(hours=1)


class WorkflowWatch(Sweeper):
    name = "workflow_watch"
    interval = timedelta(seconds=5)

    def __init__(
        self, engine: LedgerEngine, workflows: Workflows, settings: SweepSettings | None = None
    ) -> None:
        super().__init__(engine, settings)
        self._workflows = workflows

    async def candidates(self) -> Collection[str]:
        now = self.engine.world.clock()
        found = await self.engine.ledger.due({TimerKind.WORKFLOW}, now, self.settings.batch_size)
        return [job_id for job_id, _ in found]

    async def repair(self, job_id: str) -> bool:
        stored = await self.engine.read(job_id)
        if not self._is_late(stored):
            await self.engine.reschedule(stored, None)
            return False
        status = await self._workflows.status(job_id)
        if status.is_running:
            later = self.engine.world.clock() + self._pause(stored.aggregate)
            await self.engine.reschedule(stored, Due(later, TimerKind.WORKFLOW))
            return False
        event = self._event(stored.aggregate.job, status.name)
        decision, _ = await self.engine.apply(job_id, event)
        return decision.writes

    def _pause(self, aggregate: Aggregate) -> timedelta:
        """A job may wait long for its turn, and with it thousands of others."""
        step = aggregate.active
        if step.turn is not Turn.WAITING:
            return RECOVERY_GRACE
        waited = self.engine.world.clock() - step.updated_at
        return min(max(2 * waited, RECOVERY_GRACE), _LONGEST_PAUSE)

    def _is_late(self, stored: Stored) -> bool:
        job, due = stored.aggregate.job, next_due(stored.aggregate)
        if job.engine is not Engine.TEMPORAL or job.state in TERMINAL_JOB_STATES or due is None:
            return False
        return due.at <= self.engine.world.clock()

    def _event(self, job: Job, status: str) -> SlaExceeded | WorkflowLost:
        if self.engine.world.clock() >= job.sla_deadline + self.settings.skew:
            return SlaExceeded(job.sla_deadline, by=self.name)
        return WorkflowLost(status, by=self.name)
