"""Deadlines: which ones a job has, and what happens when one has passed.

A timer event names the attempt, the lease and the deadline it was set for. If any of them moved
since, or the time has not come by the clock of the one who decides, it means nothing.
"""

from collections.abc import Iterator
from datetime import datetime

from lucius_contract.audit import DeadLetterKind
from lucius_contract.errors import ErrorCode
from lucius_contract.states import (
    ADVANCING_JOB_STATES,
    TERMINAL_JOB_STATES,
    JobState,
    StepState,
)
from lucius_contract.transitions import JobTrigger, StepTrigger
from lucius_orchestrator.domain.aggregate import Aggregate, Step
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
)
from lucius_orchestrator.domain.moves import (
    AttemptEnd,
    Failure,
    cancel_step,
    dispatch,
    end_job,
    fail_attempt,
    fail_for_good,
)

_NO_ACK = Failure(ErrorCode.ACK_TIMEOUT, "no ACK came in time")
_NO_RESULT = Failure(ErrorCode.LEASE_EXPIRED, "the lease ran out without a RESULT")
_TOO_LONG = Failure(ErrorCode.ATTEMPT_TIMEOUT, "the attempt reached its ceiling")
_SLA = Failure(ErrorCode.SLA_EXCEEDED, "the job did not end within its SLA")


def on_ack_timeout(draft: Draft, event: AckTimedOut) -> Decision:
    step = draft.aggregate.active
    if step.state is not StepState.AWAITING_ACK or not _due(draft, event, step.ack_deadline):
        return NOTHING
    fail_attempt(draft, step, AttemptEnd(StepTrigger.ACK_TIMEOUT, _NO_ACK))
    return draft.decided()


def on_lease_expired(draft: Draft, event: LeaseExpired) -> Decision:
    step = draft.aggregate.active
    if step.state is not StepState.IN_PROGRESS or not _due(draft, event, step.lease_expires_at):
        return NOTHING
    fail_attempt(draft, step, AttemptEnd(StepTrigger.LEASE_EXPIRED, _NO_RESULT))
    return draft.decided()


def on_ceiling(draft: Draft, event: CeilingReached) -> Decision:
    step = draft.aggregate.active
    if step.state is not StepState.IN_PROGRESS or not _due(draft, event, step.ceiling_at):
        return NOTHING
    fail_attempt(draft, step, AttemptEnd(StepTrigger.ATTEMPT_TIMEOUT, _TOO_LONG))
    return draft.decided()


def on_retry_due(draft: Draft, event: RetryDue) -> Decision:
    step = draft.aggregate.active
    if step.state is not StepState.FAILED_RETRY or draft.job_state not in ADVANCING_JOB_STATES:
        return NOTHING
    if not _due(draft, event, step.next_attempt_at):
        return NOTHING
    dispatch(draft, step, StepTrigger.RETRY_DUE)
    return draft.decided()


def on_sla_exceeded(draft: Draft, event: SlaExceeded) -> Decision:
    job, step = draft.job, draft.aggregate.active
    if job.state in TERMINAL_JOB_STATES or event.deadline != job.sla_deadline:
        return NOTHING
    if draft.now < job.sla_deadline:
        return NOTHING
    end = AttemptEnd(StepTrigger.SLA_EXCEEDED, _SLA)
    if job.state is JobState.CANCELLING:
        cancel_step(draft, step, end)
    elif step.state is StepState.PENDING:
        draft.dead_letter(DeadLetterKind.JOB, None, None, *_SLA)
        end_job(draft, JobTrigger.SLA_EXCEEDED, JobState.FAILED_FINAL, _SLA)
    else:
        fail_for_good(draft, step, end)
    return draft.decided()


def armed(aggregate: Aggregate) -> Iterator[Timer]:
    """Every deadline that the job has now, as the event to fire once it has passed."""
    job, step = aggregate.job, aggregate.active
    if job.state in TERMINAL_JOB_STATES:
        return
    yield SlaExceeded(job.sla_deadline)
    for kind, deadline in _attempt_deadlines(job.state, step):
        if deadline is not None and step.lease_id is not None:
            yield kind(step.step_id, step.attempt_no, step.lease_id, deadline)


def next_deadline(aggregate: Aggregate) -> datetime | None:
    """The earliest moment at which the job may need attention, if it is not terminal."""
    return min((timer.deadline for timer in armed(aggregate)), default=None)


_AttemptTimerKind = (
    type[AckTimedOut] | type[LeaseExpired] | type[CeilingReached] | type[RetryDue]
) | type[DispatchStale]


def _attempt_deadlines(
    job_state: JobState, step: Step
) -> Iterator[tuple[_AttemptTimerKind, datetime | None]]:
    if step.state is StepState.DISPATCHING:
        yield DispatchStale, step.attempts[-1].dispatched_at + step.policy.stale_dispatch
    elif step.state is StepState.AWAITING_ACK:
        yield AckTimedOut, step.ack_deadline
    elif step.state is StepState.IN_PROGRESS:
        yield LeaseExpired, step.lease_expires_at
        yield CeilingReached, step.ceiling_at
    elif step.state is StepState.FAILED_RETRY and job_state in ADVANCING_JOB_STATES:
        yield RetryDue, step.next_attempt_at


def _due(draft: Draft, event: AttemptTimer, deadline: datetime | None) -> bool:
    step = draft.aggregate.active
    current = (step.step_id, step.attempt_no, step.lease_id, deadline)
    named = (event.step_id, event.attempt_no, event.lease_id, event.deadline)
    return current == named and draft.now >= event.deadline
