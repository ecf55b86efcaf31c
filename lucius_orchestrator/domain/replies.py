"""ACK, HEARTBEAT and RESULT: gated by attempt and lease, judged in the contract's order."""

from lucius_contract.audit import EventType, Verdict
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Outcome
from lucius_contract.states import (
    ADVANCING_JOB_STATES,
    TERMINAL_JOB_STATES,
    TERMINAL_STEP_STATES,
    JobState,
    StepState,
)
from lucius_contract.transitions import StepTrigger
from lucius_orchestrator.domain.aggregate import Attempt, Step
from lucius_orchestrator.domain.decision import Decision
from lucius_orchestrator.domain.draft import RECORDED_SINGLY, Draft
from lucius_orchestrator.domain.events import (
    AckReceived,
    HeartbeatReceived,
    ReplyReceived,
    ResultReceived,
)
from lucius_orchestrator.domain.moves import (
    AttemptFailure,
    acknowledge,
    cancel_step,
    fail_attempt,
    fail_for_good,
    succeed,
)

_ENDED_WITHOUT_REPLY = frozenset({StepTrigger.ACK_TIMEOUT, StepTrigger.DISPATCH_FAILED})


def on_ack(draft: Draft, event: AckReceived) -> Decision:
    gated = _gate(draft, event)
    if isinstance(gated, Decision):
        return gated
    if gated.state is StepState.IN_PROGRESS:
        return _ignored(draft, gated, event, Verdict.DUPLICATE)
    acknowledge(draft, gated, implied=False)
    return draft.answered(gated, event, Verdict.APPLIED)


def on_heartbeat(draft: Draft, event: HeartbeatReceived) -> Decision:
    gated = _gate(draft, event)
    if isinstance(gated, Decision):
        return gated
    if gated.state is StepState.IN_PROGRESS:
        # Heartbeats may be decided by clocks that differ; none takes back what another gave.
        ends = draft.now + gated.policy.lease
        draft.changes_of(gated)["lease_expires_at"] = max(ends, gated.lease_expires_at or ends)
    else:
        acknowledge(draft, gated, implied=True)
    if event.progress is not None:
        draft.changes_of(gated)["progress"] = event.progress
    return draft.answered(gated, event, Verdict.APPLIED)


def on_result(draft: Draft, event: ResultReceived) -> Decision:
    gated = _gate(draft, event)
    if isinstance(gated, Decision):
        return gated
    if gated.state is not StepState.IN_PROGRESS:
        acknowledge(draft, gated, implied=True)
    _apply_result(draft, gated, event)
    return draft.answered(gated, event, Verdict.APPLIED)


def _apply_result(draft: Draft, step: Step, event: ResultReceived) -> None:
    if event.outcome is Outcome.SUCCEEDED:
        succeed(draft, step, event)
        return
    code = event.error_code or ErrorCode.INTERNAL
    message = "the service gave no error" if event.error_code is None else event.error_message or ""
    if event.outcome is Outcome.FAILED_RETRY:
        failure = AttemptFailure(StepTrigger.RESULT_RETRYABLE, code, message, event.digest)
        fail_attempt(draft, step, failure)
        return
    failure = AttemptFailure(StepTrigger.RESULT_FINAL, code, message, event.digest)
    if code == ErrorCode.CANCELLED and draft.job_state is JobState.CANCELLING:
        cancel_step(draft, step, failure)
    else:
        fail_for_good(draft, step, failure)


def _gate(draft: Draft, event: ReplyReceived) -> Step | Decision:
    """The step that the reply may move, or the answer to a reply that moves nothing."""
    step = draft.aggregate.step(event.step_id)
    if step is None or event.tenant_id != draft.job.tenant_id:
        return draft.refused(
            ErrorCode.JOB_NOT_FOUND,
            "the reply names a step or a tenant that is not the job's",
            type(event).__name__,
        )
    attempt = step.attempt(event.attempt_no)
    if attempt is not None and attempt.lease_id == event.lease_id:
        if attempt.result_digest is not None:
            return _ignored(draft, step, event, _verdict_after_result(attempt, event))
        if event.attempt_no == step.attempt_no and _open(draft, step, attempt):
            return step
    return _ignored(draft, step, event, Verdict.STALE_ATTEMPT)


def _verdict_after_result(attempt: Attempt, event: ReplyReceived) -> Verdict:
    if isinstance(event, ResultReceived) and event.digest != attempt.result_digest:
        return Verdict.RESULT_CONFLICT
    return Verdict.DUPLICATE


def _open(draft: Draft, step: Step, attempt: Attempt) -> bool:
    """Whether the current attempt still takes replies."""
    if step.state in TERMINAL_STEP_STATES or draft.job_state in TERMINAL_JOB_STATES:
        return False
    if step.state is StepState.FAILED_RETRY:
        return attempt.ended_by in _ENDED_WITHOUT_REPLY and draft.job_state in ADVANCING_JOB_STATES
    return True


def _ignored(draft: Draft, step: Step, event: ReplyReceived, verdict: Verdict) -> Decision:
    """Record a reply that changes nothing; after the first fifty, count it."""
    attempt = step.attempt(event.attempt_no)
    if attempt is None:
        seen = step.stray_replies
        draft.changes_of(step)["stray_replies"] = seen + 1
    else:
        seen = attempt.ignored_replies
        draft.change_attempt(step, event.attempt_no, ignored_replies=seen + 1)
    if seen < RECORDED_SINGLY:
        draft.note(
            EventType.REPLY_IGNORED,
            step.step_id,
            event.attempt_no,
            cause=type(event).__name__,
            detail=verdict,
        )
    return draft.answered(step, event, verdict)
