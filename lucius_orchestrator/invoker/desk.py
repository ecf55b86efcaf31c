"""`InvokerDesk`: what workflows ask for, decided and committed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from lucius_contract import timeouts
from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.states import StepState
from lucius_orchestrator.domain.aggregate import Aggregate, Engine, JsonObject, Turn
from lucius_orchestrator.domain.events import (
    AckTimedOut,
    AttemptOpened,
    CancelRequested,
    CeilingReached,
    Command,
    Event,
    LeaseExpired,
    PauseRequested,
    ResumeRequested,
    RetryDue,
    SlaExceeded,
    TimerOfAttempt,
)
from lucius_orchestrator.domain.workflow import (
    Next,
    TimerName,
    result_of,
    wants_attempt,
    what_next,
)
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.outbox.publishing import DirectivePublisher
from lucius_orchestrator.ports.invoker import AttemptName, InvokerRefused, Reported
from lucius_orchestrator.ports.ledger import Claim

_OF_ATTEMPT: Mapping[TimerName, type[TimerOfAttempt]] = {
    TimerName.LEASE_EXPIRED: LeaseExpired,
    TimerName.ATTEMPT_TIMEOUT: CeilingReached,
    TimerName.RETRY_DUE: RetryDue,
}
_WAIT_FOR_REPLIES = frozenset(
    {TimerName.ACK_TIMEOUT, TimerName.LEASE_EXPIRED, TimerName.ATTEMPT_TIMEOUT}
)
COMMANDS: Mapping[str, type[Command]] = {
    "cancel": CancelRequested,
    "pause": PauseRequested,
    "resume": ResumeRequested,
}


class Opened(NamedTuple):
    """`is_open`: the attempt is the step's, under this lease. `result` is the RESULT that was
    applied for it, if one was."""

    is_open: bool
    result: JsonObject | None
    following: Next


class Published(NamedTuple):
    """`has_sent`: by this call."""

    has_sent: bool
    following: Next


@dataclass(frozen=True, slots=True)
class DeskSettings:
    """A publish is tried `tries` times, after pauses that begin with `pause` and double. Deadlines
    of replies count only `recovery_grace` after the start: replies that came meanwhile are let in
    first."""

    tries: int = 3
    pause: timedelta = timedelta(milliseconds=200)
    claim: timedelta = timedelta(seconds=30)
    recovery_grace: timedelta = timeouts.RECOVERY_GRACE


class InvokerDesk:
    """Refusals are `InvokerRefused`; `LedgerUnavailable` and `ContractError` with UNAVAILABLE mean
    that it may be asked again."""

    def __init__(
        self,
        engine: LedgerEngine,
        publisher: DirectivePublisher,
        settings: DeskSettings | None = None,
    ) -> None:
        self._engine = engine
        self._publisher = publisher
        self._settings = settings or DeskSettings()
        self._lets_time_pass_at = engine.world.clock() + self._settings.recovery_grace

    async def open_attempt(self, attempt: AttemptName, lease_expires_at: datetime) -> Opened:
        """One that the service has no room for is not opened; its workflow is sent a signal when
        it is its turn."""
        admitted = self._admits(await self._known(attempt.job_id), attempt)
        identity, tenant_id = _identity(attempt), attempt.tenant_id
        event = AttemptOpened(*identity, lease_expires_at, tenant_id, admitted)
        is_open = False
        try:
            aggregate = await self._decided(attempt.job_id, event)
            step = aggregate.step(attempt.step_id)
            assert step is not None, "else it was refused"
            is_open = (step.step_id, step.attempt_no, step.lease_id) == identity
        finally:
            if admitted and not is_open:
                self._engine.traffic.unpublished(attempt.job_id, attempt.step_id)
        result = result_of(step, attempt.attempt_no) if is_open else None
        return Opened(is_open, result, what_next(aggregate))

    async def publish(self, attempt: AttemptName) -> Published:
        """`ContractError` with UNAVAILABLE if the bus takes it at no try, or another is at it."""
        pause = self._settings.pause
        for number in range(self._settings.tries):
            if number:
                await asyncio.sleep(pause.total_seconds())
                pause *= 2
            has_sent = await self._publish(attempt)
            aggregate = await self._driven(attempt.job_id, is_fresh=has_sent)
            if not _awaits_publish(aggregate, attempt):
                return Published(has_sent, what_next(aggregate))
        raise ContractError(
            ErrorCode.UNAVAILABLE, "the directive could not be published; try again"
        )

    async def report(self, attempt: AttemptName, name: TimerName, deadline: datetime) -> Reported:
        """What the deadline means now, if it has not moved."""
        now = self._engine.world.clock()
        aggregate = await self._driven(attempt.job_id)
        if name in _WAIT_FOR_REPLIES and now < self._lets_time_pass_at:
            return Reported(what_next(aggregate), self._lets_time_pass_at)
        awaited_publish = _awaits_publish(aggregate, attempt)
        absent = self._engine.traffic.is_unanswered(aggregate.active)
        event = _timer(attempt, name, deadline, absent=absent)
        aggregate = await self._decided(attempt.job_id, event)
        if awaited_publish and not _awaits_publish(aggregate, attempt):
            await self._end_unpublished(attempt)
        return Reported(what_next(aggregate), None)

    async def command(self, job_id: str, verb: str, by: str | None) -> Next:
        await self._driven(job_id)
        return what_next(await self._decided(job_id, COMMANDS[verb](by)))

    async def _known(self, job_id: str) -> Aggregate:
        """The job, perhaps as it was a moment ago. Costs nothing that deciding would not cost."""
        stored = self._engine.recall(job_id)
        if stored is None:
            stored = await self._engine.read(job_id)
            self._engine.remember(stored)
        return stored.aggregate

    def _admits(self, aggregate: Aggregate, attempt: AttemptName) -> bool:
        """Whether the attempt need not wait for its turn. It counts at once: others ask while it is
        committed."""
        job, step, traffic = aggregate.job, aggregate.active, self._engine.traffic
        is_next = (step.step_id, step.attempt_no + 1) == (attempt.step_id, attempt.attempt_no)
        if not is_next or not wants_attempt(job, step) or step.turn is Turn.GRANTED:
            return False  # who has granted the turn has counted it
        if not traffic.admits(job.job_id, step.step_id, step.service):
            traffic.set_backlog(step.service, waits=True)
            return False
        traffic.claimed(job.job_id, step.step_id, step.service, step.route.lane)
        return True

    async def _publish(self, attempt: AttemptName) -> bool:
        claim = await self._take(attempt)
        if claim is None:
            return False
        await self._publisher.deliver([claim])
        return True

    async def _end_unpublished(self, attempt: AttemptName) -> None:
        """Nobody will ask for the directive any more."""
        claim = await self._take(attempt)
        if claim is not None:
            await self._engine.ledger.discard([claim])

    async def _take(self, attempt: AttemptName) -> Claim | None:
        return await self._engine.ledger.take(
            attempt.job_id, attempt.step_id, attempt.attempt_no, self._settings.claim
        )

    async def _driven(self, job_id: str, *, is_fresh: bool = False) -> Aggregate:
        """The job, which must be one that Temporal drives; `is_fresh`: it was committed here."""
        recent = self._engine.recall(job_id) if is_fresh else None
        aggregate = (recent or await self._engine.read(job_id)).aggregate
        if aggregate.job.engine is not Engine.TEMPORAL:
            raise InvokerRefused(ErrorCode.JOB_NOT_FOUND, f"no workflow drives {job_id}")
        return aggregate

    async def _decided(self, job_id: str, event: Event) -> Aggregate:
        decision, stored = await self._engine.apply(job_id, event)
        if decision.refusal is not None:
            code, reason = decision.refusal
            raise InvokerRefused(code, reason, what_next(stored.aggregate))
        return stored.aggregate


def _identity(attempt: AttemptName) -> tuple[str, int, str]:
    return attempt.step_id, attempt.attempt_no, attempt.lease_id


def _timer(attempt: AttemptName, name: TimerName, deadline: datetime, *, absent: bool) -> Event:
    """`absent`: the service was not heard since the directive was sent."""
    if name is TimerName.SLA_EXCEEDED:
        return SlaExceeded(deadline)
    if name is TimerName.ACK_TIMEOUT:
        return AckTimedOut(*_identity(attempt), deadline, absent=absent)
    return _OF_ATTEMPT[name](*_identity(attempt), deadline)


def _awaits_publish(aggregate: Aggregate, attempt: AttemptName) -> bool:
    step = aggregate.active
    current = (step.step_id, step.attempt_no, step.lease_id)
    return step.state is StepState.DISPATCHING and current == _identity(attempt)
