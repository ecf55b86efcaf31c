"""What callers may ask of a job. To ask for what already holds is not an error."""

from lucius_contract.errors import ErrorCode
from lucius_contract.states import JobState, StepState
from lucius_contract.transitions import JobTrigger, StepTrigger
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.domain.decision import NOTHING, Decision
from lucius_orchestrator.domain.draft import Draft
from lucius_orchestrator.domain.events import (
    CancelRequested,
    PauseRequested,
    ResumeRequested,
    Submitted,
)
from lucius_orchestrator.domain.moves import end_job, start
from lucius_orchestrator.domain.workflow import start_row

_PAUSED_ALREADY = frozenset({JobState.PAUSING, JobState.PAUSED})
_RUNNING_ALREADY = frozenset({JobState.QUEUED, JobState.DISPATCHING, JobState.IN_PROGRESS})


def on_submitted(draft: Draft, _event: Submitted) -> Decision:
    if draft.job.engine is Engine.TEMPORAL:
        return _workflow_wanted(draft)
    draft.move_job(JobTrigger.FIRST_DIRECTIVE, JobState.DISPATCHING)
    start(draft, draft.aggregate.active, StepTrigger.ENQUEUED)
    return draft.decided()


def _workflow_wanted(draft: Draft) -> Decision:
    """The job stays QUEUED until its workflow opens the first attempt."""
    if draft.job_state is not JobState.QUEUED:
        return draft.refused(
            ErrorCode.STATE_CONFLICT, "the job has begun before", Submitted.__name__
        )
    draft.outbox = (start_row(draft.aggregate, draft.now, restarts=False),)
    return draft.decided()


def on_cancel(draft: Draft, _event: CancelRequested) -> Decision:
    """Let the active step finish; end at once where nothing is in flight."""
    in_flight = draft.aggregate.active.in_flight
    if draft.job_state is JobState.CANCELLED or (
        draft.job_state is JobState.CANCELLING and in_flight
    ):
        return NOTHING
    if draft.job_state is JobState.PAUSED:
        end_job(draft, JobTrigger.CANCEL, JobState.CANCELLED)
        return draft.decided()
    if draft.job_state is not JobState.CANCELLING:
        draft.move_job(JobTrigger.CANCEL, JobState.CANCELLING, implied=not in_flight)
    if not in_flight:
        end_job(draft, JobTrigger.NOTHING_IN_FLIGHT, JobState.CANCELLED)
    return draft.decided()


def on_pause(draft: Draft, _event: PauseRequested) -> Decision:
    if draft.job_state in _PAUSED_ALREADY:
        return NOTHING
    in_flight = draft.aggregate.active.in_flight
    draft.move_job(JobTrigger.PAUSE, JobState.PAUSING, implied=not in_flight)
    if not in_flight:
        draft.move_job(JobTrigger.NOTHING_IN_FLIGHT, JobState.PAUSED)
    return draft.decided()


def on_resume(draft: Draft, _event: ResumeRequested) -> Decision:
    """Go on as if the job had never been paused."""
    if draft.job_state in _RUNNING_ALREADY:
        return NOTHING
    first, active = draft.aggregate.steps[0], draft.aggregate.active
    acknowledged = any(attempt.acknowledged_at for attempt in first.attempts)
    draft.move_job(
        JobTrigger.RESUME, JobState.IN_PROGRESS if acknowledged else JobState.DISPATCHING
    )
    if active.state is StepState.PENDING:
        start(draft, active, StepTrigger.ENQUEUED)
    return draft.decided()
