"""Starts the workflows of jobs that were committed.

A job and its START row are one commit; the row ends when the workflow runs. Between the two a
process may die as often as it likes: the row is claimed again, and a workflow that was started
before is not started twice.
"""

import asyncio
from collections.abc import Sequence

from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.domain.aggregate import JsonObject
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.domain.workflow import what_next
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.ports.ledger import Claim, LedgerError
from lucius_orchestrator.ports.workflows import Workflows, WorkflowsUnavailable
from lucius_orchestrator.temporal.courier import Courier, CourierSettings


class WorkflowStarts(Courier):
    """Runs by `run()` until `stop()`."""

    def __init__(
        self, engine: LedgerEngine, workflows: Workflows, settings: CourierSettings | None = None
    ) -> None:
        super().__init__(engine, OutboxKind.START, self._start_all, settings)
        self._workflows = workflows

    async def _start_all(self, claims: Sequence[Claim]) -> None:
        await self.settle(claims, await asyncio.gather(*map(self._started, claims)))

    async def _started(self, claim: Claim) -> bool:
        """Whether nothing is left to do."""
        try:
            body = await self._wanted(claim)
            if body is not None:
                await self._workflows.start(body)
        except (WorkflowsUnavailable, LedgerError) as error:
            self._engine.telemetry.workflows_away("start", error)
            return False
        if body is not None:
            self._engine.telemetry.workflow_started(restarts=bool(body["restarts"]))
        return True

    async def _wanted(self, claim: Claim) -> JsonObject | None:
        """What to start it with; None: the job has ended, or is gone."""
        is_new = not claim.row.body["restarts"]  # what it was created with cannot have gone far
        recent = self._engine.recall(claim.job_id) if is_new else None
        stored = recent or await self._engine.ledger.load(claim.job_id)
        if stored is None or stored.aggregate.job.state in TERMINAL_JOB_STATES:
            return None
        return {**claim.row.body, "next": what_next(stored.aggregate)}
