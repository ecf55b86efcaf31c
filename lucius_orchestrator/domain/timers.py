"""Deadlines: which ones a job has, and what happens when one has passed.

A timer event names the attempt, the lease and the deadline it was set for. If any of them moved
since, or the time has not come by the clock of the one who decides, it means nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

from lucius_contract.audit import DeadLetterKind
from lucius_contract.errors import ErrorCode
from lucius_contract.states import (
    ADVANCING_JOB_STATES,
    TERMINAL_JOB_STATES,
    JobState,
    StepState,
)
from lucius_contract.timeouts import RECOVERY_GRACE
from lucius_contract.transitions import JobTrigger, StepTrigger
from lucius_orchestrator.domain.aggregate import Aggregate, Engine, Job, Step
from lucius_orchestrator.domain.decision import NOTHING, Decision
from lucius_orchestrator.domain.draft import Draft
from lucius_orchestrator.domain.events import (
    AckTimedOut,
    AttemptTimer,
    CeilingReached,
    DispatchStale,
    LeaseExpired,
    RetryDue,
    SlaExceeded,
    Timer,
    TimerOfAttempt,
)
from lucius_orchestrator.domain.moves import (
    AttemptFailure,
    cancel_step,
    end_job,
    fail_attempt,
    fail_for_good,
    start,
)


class TimerKind(StrEnum):
    """What a job may be waiting for; each has its sweeper."""

    DISPATCH = "DISPATCH"
    ACK = "ACK"
    LEASE = "LEASE"
    CEILING = "CEILING"
    RETRY = "RETRY"
    SLA = "SLA"
    WORKFLOW = "WORKFLOW"
    """Of a job that Temporal drives: something of it should have happened long ago."""


_EVENTS: Mapping[TimerKind, type[TimerOfAttempt]] = {
    TimerKind.DISPATCH: DispatchStale,
    TimerKind.ACK: AckTimedOut,
    TimerKind.LEASE: LeaseExpired,
    TimerKind.CEILING: CeilingReached,
    TimerKind.RETRY: RetryDue,
}
_KINDS: Mapping[type[Timer], TimerKind] = {
    SlaExceeded: TimerKind.SLA,
    **{event: kind for kind, event in _EVENTS.items()},
}

_SLA = AttemptFailure(
    StepTrigger.SLA_EXCEEDED, ErrorCode.SLA_EXCEEDED, "the job did not end within its SLA"
)

_UNANSWERED = AttemptFailure(
    StepTrigger.ACK_TIMEOUT,
    ErrorCode.ACK_TIMEOUT,
    "no ACK came in time, and nothing else was heard from the service",
    unanswered=True,
)


class _AttemptOver(NamedTuple):
    """In which state a deadline ends the attempt, which deadline it is, and how it ends."""

    state: StepState
    deadline: Callable[[Step], datetime | None]
    failure: AttemptFailure


_ATTEMPT_OVER: Mapping[type[AttemptTimer], _AttemptOver] = {
    AckTimedOut: _AttemptOver(
        StepState.AWAITING_ACK,
        attrgetter("ack_deadline"),
        AttemptFailure(StepTrigger.ACK_TIMEOUT, ErrorCode.ACK_TIMEOUT, "no ACK came in time"),
    ),
    LeaseExpired: _AttemptOver(
        StepState.IN_PROGRESS,
        attrgetter("lease_expires_at"),
        AttemptFailure(
            StepTrigger.LEASE_EXPIRED,
            ErrorCode.LEASE_EXPIRED,
            "the lease ran out without a RESULT",
        ),
    ),
    CeilingReached: _AttemptOver(
        StepState.IN_PROGRESS,
        attrgetter("ceiling_at"),
        AttemptFailure(
            StepTrigger.ATTEMPT_TIMEOUT,
            ErrorCode.ATTEMPT_TIMEOUT,
            "the attempt reached its ceiling",
        ),
    ),
}


def on_attempt_over(draft: Draft, event: AckTimedOut | LeaseExpired | CeilingReached) -> Decision:
    step, over = draft.aggregate.active, _ATTEMPT_OVER[type(event)]
    if step.state is not over.state or not _due(draft, event, over.deadline(step)):
        return NOTHING
    absent = isinstance(event, AckTimedOut) and event.absent
    fail_attempt(draft, step, _UNANSWERED if absent else over.failure)
    return draft.decided()


def on_retry_due(draft: Draft, event: RetryDue) -> Decision:
    step = draft.aggregate.active
    if step.state is not StepState.FAILED_RETRY or draft.job_state not in ADVANCING_JOB_STATES:
        return NOTHING
    if not _due(draft, event, step.next_attempt_at):
        return NOTHING
    start(draft, step, StepTrigger.RETRY_DUE)
    return draft.decided()


def on_sla_exceeded(draft: Draft, event: SlaExceeded) -> Decision:
    job, step = draft.job, draft.aggregate.active
    if job.state in TERMINAL_JOB_STATES or event.deadline != job.sla_deadline:
        return NOTHING
    if draft.now < job.sla_deadline:
        return NOTHING
    if job.state is JobState.CANCELLING:
        cancel_step(draft, step, _SLA)
    elif step.state is StepState.PENDING:
        draft.dead_letter(DeadLetterKind.JOB, None, None, _SLA.code, _SLA.message)
        end_job(draft, JobTrigger.SLA_EXCEEDED, JobState.FAILED_FINAL, _SLA)
    else:
        fail_for_good(draft, step, _SLA)
    return draft.decided()


class Due(NamedTuple):
    """A moment at which a job may need attention, and the timer that says so."""

    at: datetime
    kind: TimerKind


def kind_of(timer: Timer) -> TimerKind:
    return _KINDS[type(timer)]


def armed(aggregate: Aggregate) -> Iterator[Timer]:
    """Every deadline that the job has now, as the event to fire once it has passed."""
    step = aggregate.active
    for deadline, kind in deadlines(aggregate):
        if kind is TimerKind.SLA:
            yield SlaExceeded(deadline)
        elif kind is not TimerKind.WORKFLOW:
            yield _EVENTS[kind](step.step_id, step.attempt_no, step.lease_id or "", deadline)


def next_due(aggregate: Aggregate) -> Due | None:
    """The earliest deadline of a job that is not terminal."""
    return min(deadlines(aggregate), default=None)


def deadlines(aggregate: Aggregate) -> list[Due]:
    """Every deadline that the job has now."""
    job, step = aggregate.job, aggregate.active
    if job.state in TERMINAL_JOB_STATES:
        return []
    found = ((job.sla_deadline, TimerKind.SLA), *_of_attempt(job.state, step))
    dues = [Due(at, kind) for at, kind in found if at is not None]
    return dues if job.engine is Engine.LEDGER else [_watch(job, step, dues)]


def _watch(job: Job, step: Step, dues: list[Due]) -> Due:
    """A workflow keeps the job's time. If it has not acted a while after it should have, somebody
    must see whether it is still there; and again a while after another one was asked for."""
    is_waited_for = step.state is StepState.PENDING and job.state is not JobState.PAUSED
    acts_at = job.updated_at if is_waited_for else min(due.at for due in dues)
    return Due(max(acts_at, job.updated_at) + RECOVERY_GRACE, TimerKind.WORKFLOW)


def _of_attempt(job_state: JobState, step: Step) -> tuple[tuple[datetime | None, TimerKind], ...]:
    if step.state is StepState.DISPATCHING:
        return ((step.stale_at, TimerKind.DISPATCH),)
    if step.state is StepState.AWAITING_ACK:
        return ((step.ack_deadline, TimerKind.ACK),)
    if step.state is StepState.IN_PROGRESS:
        return (step.lease_expires_at, TimerKind.LEASE), (step.ceiling_at, TimerKind.CEILING)
    if step.state is StepState.FAILED_RETRY and job_state in ADVANCING_JOB_STATES:
        return ((step.next_attempt_at, TimerKind.RETRY),)
    return ()


def _due(draft: Draft, event: AttemptTimer, deadline: datetime | None) -> bool:
    step = draft.aggregate.active
    current = (step.step_id, step.attempt_no, step.lease_id, deadline)
    named = (event.step_id, event.attempt_no, event.lease_id, event.deadline)
    return current == named and draft.now >= event.deadline
