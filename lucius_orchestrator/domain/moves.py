"""The moves that events share: start an attempt, acknowledge it, end it, end the job."""

from datetime import datetime
from typing import NamedTuple

from lucius_contract.audit import DeadLetterKind
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import DIRECTIVE_LIMIT
from lucius_contract.states import TERMINAL_STEP_STATES, JobState, StepState
from lucius_contract.timeouts import delay_after
from lucius_contract.transitions import JobTrigger, StepTrigger
from lucius_orchestrator.domain.aggregate import Attempt, Engine, Step
from lucius_orchestrator.domain.decision import StepChanges
from lucius_orchestrator.domain.directive import directive_row
from lucius_orchestrator.domain.draft import Draft
from lucius_orchestrator.domain.events import ResultReceived


class AttemptFailure(NamedTuple):
    """How an attempt failed: by what, with which error, by which RESULT if by one. `unanswered`:
    the service was absent, so that the attempt does not count."""

    trigger: StepTrigger
    code: str
    message: str
    digest: str | None = None
    unanswered: bool = False


def start(draft: Draft, step: Step, trigger: StepTrigger) -> None:
    """Open the next attempt of a step, unless that is for the job's workflow to do."""
    if draft.job.engine is Engine.LEDGER:
        expires_at = draft.now + step.policy.dispatch_lease()
        dispatch(draft, step, trigger, draft.fresh.lease_id, expires_at)


def dispatch(
    draft: Draft, step: Step, trigger: StepTrigger, lease_id: str, lease_expires_at: datetime
) -> None:
    """Open the next attempt of a step under this lease, and enqueue its directive."""
    now, attempt_no = draft.now, step.attempt_no + 1
    draft.changes_of(step)["attempt_no"] = attempt_no
    changes = draft.move_step(step, trigger, StepState.DISPATCHING)
    changes["lease_id"] = lease_id
    changes["lease_expires_at"] = lease_expires_at
    changes["next_attempt_at"] = None
    changes["progress"] = None
    if step.turn is not None:
        changes["turn"] = None
    changes["attempts"] = (*step.attempts, Attempt(attempt_no, lease_id, step.route, now))
    draft.job_changes["attempts_total"] = draft.job.attempts_total + 1
    draft.outbox = (directive_row(draft, step, attempt_no, lease_id, lease_expires_at),)


def acknowledge(draft: Draft, step: Step, *, implied: bool) -> None:
    """The first sign that a service works on the attempt; it restarts the lease."""
    now, policy = draft.now, step.policy
    if step.state is StepState.DISPATCHING:
        draft.move_step(step, StepTrigger.PUBLISHED, StepState.AWAITING_ACK, implied=True)
    changes = draft.move_step(
        step, StepTrigger.ACKNOWLEDGED, StepState.IN_PROGRESS, implied=implied
    )
    changes["lease_expires_at"] = now + policy.lease
    changes["ceiling_at"] = now + policy.ceiling
    changes["ack_deadline"] = None
    changes["next_attempt_at"] = None
    draft.change_attempt(
        step,
        step.attempt_no,
        acknowledged_at=now,
        completed_at=None,
        outcome=None,
        ended_by=None,
        error_code=None,
        error_message=None,
        unanswered=False,
    )
    if draft.job_state is JobState.DISPATCHING:
        draft.move_job(JobTrigger.ACKNOWLEDGED, JobState.IN_PROGRESS, implied=implied)


def succeed(draft: Draft, step: Step, result: ResultReceived) -> None:
    steps = draft.aggregate.steps
    is_last = step.step_index + 1 == len(steps)
    if not is_last and draft.job_state is not JobState.CANCELLING:
        size = _next_directive_bytes(draft, step, result)
        if size > DIRECTIVE_LIMIT:
            fail_for_good(draft, step, _too_many_artifacts(size, result.digest))
            return
    changes = _end_step(draft, step, StepState.SUCCEEDED, StepTrigger.RESULT_SUCCEEDED)
    draft.change_attempt(
        step,
        step.attempt_no,
        completed_at=draft.now,
        outcome=StepState.SUCCEEDED,
        ended_by=StepTrigger.RESULT_SUCCEEDED,
        result_digest=result.digest,
    )
    changes["artifacts"] = result.artifacts
    changes["artifacts_bytes"] = result.artifacts_bytes
    changes["result_ref"] = result.output_ref
    if draft.job_state is JobState.CANCELLING:
        end_job(draft, JobTrigger.NOTHING_IN_FLIGHT, JobState.CANCELLED)
    elif is_last:
        end_job(draft, JobTrigger.STEP_SUCCEEDED, JobState.SUCCEEDED)
        if result.output_ref is not None:
            draft.job_changes["final_output"] = result.output_ref["uri"]
    else:
        _advance(draft, steps[step.step_index + 1])


def fail_attempt(
    draft: Draft, step: Step, failure: AttemptFailure, *, worth_retrying: bool = True
) -> None:
    """The attempt failed; another follows if the job goes on, attempts are left and it may help.

    An unanswered attempt is always followed by another, until the SLA; the waits between them grow
    as those between failures do, while the directive on the bus still takes its ACK."""
    unanswered = _unanswered(draft, step)
    tries = step.attempt_no - unanswered
    is_last = not worth_retrying or tries >= step.policy.max_attempts
    if draft.job_state is JobState.CANCELLING:
        cancel_step(draft, step, failure)
    elif is_last and not failure.unanswered:
        fail_for_good(draft, step, failure)
    else:
        changes = _fail_step(draft, step, StepState.FAILED_RETRY, failure)
        failures = 1 + unanswered if failure.unanswered else tries
        wait = delay_after(failures, step.policy.backoff, draft.fresh.jitter)
        changes["next_attempt_at"] = draft.now + wait
        if draft.job_state is JobState.PAUSING:
            draft.move_job(JobTrigger.NOTHING_IN_FLIGHT, JobState.PAUSED)


def fail_for_good(draft: Draft, step: Step, failure: AttemptFailure) -> None:
    _fail_step(draft, step, StepState.FAILED_FINAL, failure)
    draft.dead_letter(
        DeadLetterKind.STEP, step.step_id, step.attempt_no, failure.code, failure.message
    )
    if draft.job_state is JobState.CANCELLING:
        end_job(draft, JobTrigger.NOTHING_IN_FLIGHT, JobState.CANCELLED)
    elif failure.trigger is StepTrigger.SLA_EXCEEDED:
        end_job(draft, JobTrigger.SLA_EXCEEDED, JobState.FAILED_FINAL, failure)
    else:
        end_job(draft, JobTrigger.STEP_FAILED, JobState.FAILED_FINAL, failure)


def cancel_step(draft: Draft, step: Step, failure: AttemptFailure) -> None:
    """The job is CANCELLING and its active step ended without a success or a final failure."""
    _fail_step(draft, step, StepState.CANCELLED, failure)
    end_job(draft, JobTrigger.NOTHING_IN_FLIGHT, JobState.CANCELLED)


def end_job(
    draft: Draft, trigger: JobTrigger, target: JobState, failure: AttemptFailure | None = None
) -> None:
    """The job ends and takes with it the steps that have not."""
    draft.move_job(trigger, target)
    draft.job_changes["completed_at"] = draft.now
    if failure is not None:
        draft.job_changes["error_code"] = failure.code
        draft.job_changes["error_message"] = failure.message
    for step in draft.aggregate.steps[draft.job.current_step_index :]:
        state = draft.step_changes.get(step.step_index, {}).get("state", step.state)
        if state not in TERMINAL_STEP_STATES:
            _end_step(draft, step, StepState.CANCELLED, StepTrigger.JOB_ENDED)


def _unanswered(draft: Draft, step: Step) -> int:
    """A late reply may have revived the attempt in this very decision."""
    attempts = draft.changes_of(step).get("attempts", step.attempts)
    return sum(attempt.unanswered for attempt in attempts)


def _advance(draft: Draft, following: Step) -> None:
    draft.job_changes["current_step_id"] = following.step_id
    draft.job_changes["current_step_index"] = following.step_index
    if draft.job_state is JobState.PAUSING:
        draft.move_job(JobTrigger.NOTHING_IN_FLIGHT, JobState.PAUSED)
    else:
        draft.move_job(JobTrigger.STEP_SUCCEEDED, JobState.IN_PROGRESS)
        start(draft, following, StepTrigger.ENQUEUED)


def _end_step(
    draft: Draft, step: Step, target: StepState, trigger: StepTrigger, detail: str | None = None
) -> StepChanges:
    """The step leaves what it was doing; no deadline of the attempt counts any more."""
    changes = draft.move_step(step, trigger, target, detail=detail)
    changes["ack_deadline"] = None
    changes["ceiling_at"] = None
    changes["next_attempt_at"] = None
    if target is not StepState.FAILED_RETRY:
        changes["completed_at"] = draft.now
        if step.turn is not None:
            changes["turn"] = None
    return changes


def _fail_step(draft: Draft, step: Step, target: StepState, failure: AttemptFailure) -> StepChanges:
    trigger, code, message, digest, unanswered = failure
    changes = _end_step(draft, step, target, trigger, code)
    changes["last_error_code"] = code
    changes["last_error_message"] = message
    if changes.get("attempts", step.attempts)[-1].outcome is None:
        draft.change_attempt(
            step,
            step.attempt_no,
            completed_at=draft.now,
            outcome=target,
            ended_by=trigger,
            error_code=code,
            error_message=message,
            result_digest=digest,
            unanswered=unanswered,
        )
    return changes


def _too_many_artifacts(size: int, digest: str) -> AttemptFailure:
    return AttemptFailure(
        StepTrigger.RESULT_SUCCEEDED,
        ErrorCode.DIRECTIVE_TOO_LARGE,
        f"with the artifacts of this step the next directive would have {size} bytes; "
        f"at most {DIRECTIVE_LIMIT} are allowed: name fewer artifacts",
        digest,
    )


def _next_directive_bytes(draft: Draft, step: Step, result: ResultReceived) -> int:
    steps = draft.aggregate.steps
    carried = sum(earlier.artifacts_bytes for earlier in steps[: step.step_index])
    return steps[step.step_index + 1].directive_bytes + carried + result.artifacts_bytes
