"""Directives that should have gone out by now.

A row that is free is a wake-up that got lost: the dispatcher is woken. A row that was sent while
its step did not learn of it: the step moves on. A row under a live claim, or that waits for the bus
to come back, is in good hands. In any case the job is looked at again after the same while.

A row whose service has a backlog waits for its turn. It is looked at again after twice the time
that it has waited, so that a long backlog costs little.
"""

from dataclasses import replace
from datetime import timedelta

from lucius_contract.states import OutboxState
from lucius_orchestrator.domain.events import DispatchStale
from lucius_orchestrator.domain.timers import Due, TimerKind, deadlines
from lucius_orchestrator.ports.ledger import Stored
from lucius_orchestrator.sweepers.sweeper import TimerSweeper

_LONGEST_PAUSE = timedelta(hours=1)


class StaleDispatch(TimerSweeper):
    name = "stale_dispatch"
    interval = timedelta(seconds=5)
    kinds = frozenset({TimerKind.DISPATCH})

    async def repair(self, job_id: str) -> bool:
        stored = await self.engine.read(job_id)
        timer = self._passed(stored)
        if not isinstance(timer, DispatchStale):
            await self.engine.reschedule(stored, None)
            return False
        row = await self._row_to_act_on(job_id, timer)
        waits_its_turn = row is OutboxState.PENDING and self._has_backlog(stored)
        if row is None or waits_its_turn:
            later = self._next_look(stored, doubles=waits_its_turn)
            await self.engine.reschedule(stored, later)
            return False
        decision, _ = await self.engine.apply(job_id, replace(timer, row=row))
        return decision.writes

    async def _row_to_act_on(self, job_id: str, timer: DispatchStale) -> OutboxState | None:
        status = await self.engine.ledger.directive(job_id, timer.step_id, timer.attempt_no)
        if status is not None and (status.claimable or status.state is OutboxState.SENT):
            return status.state
        return None

    def _has_backlog(self, stored: Stored) -> bool:
        return self.engine.traffic.has_backlog(stored.aggregate.active.service)

    def _next_look(self, stored: Stored, *, doubles: bool) -> Due | None:
        """Not before another stale-dispatch time, unless something else of the job is due."""
        step, now = stored.aggregate.active, self.engine.world.clock()
        pause = step.policy.stale_dispatch
        if doubles:
            pause = min(max(pause, now - step.updated_at), _LONGEST_PAUSE)
        later = now + pause
        dues = [
            Due(later, due.kind) if due.kind is TimerKind.DISPATCH else due
            for due in deadlines(stored.aggregate)
        ]
        return min(dues, default=None)
