"""What became of a directive in the outbox."""

from lucius_contract.audit import DeadLetterKind, EventType
from lucius_contract.errors import ERRORS
from lucius_contract.states import OutboxState, StepState
from lucius_contract.transitions import StepTrigger
from lucius_orchestrator.domain.aggregate import Attempt, Step
from lucius_orchestrator.domain.decision import NOTHING, Decision
from lucius_orchestrator.domain.directive import outbox_id
from lucius_orchestrator.domain.draft import Draft
from lucius_orchestrator.domain.events import (
    ERROR_MESSAGE_LIMIT,
    DispatchStale,
    OfAttempt,
    OutboxFailed,
    OutboxSent,
    OutboxSuperseded,
    PublishDelayed,
)
from lucius_orchestrator.domain.moves import AttemptFailure, fail_attempt


def on_sent(draft: Draft, event: OutboxSent) -> Decision:
    made = _made(draft, event)
    if made is None:
        return _recorded(draft, event, OutboxState.SENT)
    draft.mark(_row_of(draft, event), OutboxState.SENT)
    step = _awaiting_publish(draft, event)
    if step is not None:
        _await_ack(draft, step)
        return draft.decided()
    # A reply, a timer or a command was faster; the history still learns when it was sent.
    sent_step, attempt = made
    draft.change_attempt(sent_step, attempt.attempt_no, sent_at=attempt.sent_at or draft.now)
    return _recorded(draft, event, OutboxState.SENT)


def on_failed(draft: Draft, event: OutboxFailed) -> Decision:
    message = event.message[:ERROR_MESSAGE_LIMIT]
    made = _made(draft, event)
    if made is not None and made[1].ended_by is not StepTrigger.DISPATCH_FAILED:
        draft.mark(_row_of(draft, event), OutboxState.FAILED_FINAL)
        draft.dead_letter(
            DeadLetterKind.OUTBOX, event.step_id, event.attempt_no, event.code, message
        )
    step = _awaiting_publish(draft, event)
    if step is None:
        return _recorded(draft, event, OutboxState.FAILED_FINAL)
    failure = AttemptFailure(StepTrigger.DISPATCH_FAILED, event.code, message)
    # A directive that is too large stays too large: another attempt would meet the same end.
    fail_attempt(draft, step, failure, worth_retrying=ERRORS[event.code].retryable)
    return draft.decided()


def on_superseded(draft: Draft, event: OutboxSuperseded) -> Decision:
    if _made(draft, event) is None or _awaiting_publish(draft, event) is not None:
        return NOTHING
    draft.mark(_row_of(draft, event), OutboxState.SUPERSEDED)
    return _recorded(draft, event, OutboxState.SUPERSEDED)


def on_delayed(draft: Draft, event: PublishDelayed) -> Decision:
    """An unreachable bus is not a try: the attempt goes out late, but with its whole lease."""
    step = _awaiting_publish(draft, event)
    if step is None:
        return NOTHING
    changes = draft.changes_of(step)
    changes["lease_expires_at"] = draft.now + step.policy.dispatch_lease()
    return draft.decided()


def on_stale(draft: Draft, event: DispatchStale) -> Decision:
    """Look after a directive that should have gone out by now."""
    step = _awaiting_publish(draft, event)
    if step is None:
        return NOTHING
    if event.deadline != step.stale_at or draft.now < step.stale_at:
        return NOTHING
    if event.row is OutboxState.SENT:
        _await_ack(draft, step)
    elif event.row is OutboxState.PENDING:
        draft.changes_of(step)  # it moved, so that the next look comes one such time later
        draft.note(EventType.DISPATCH_WOKEN, step.step_id, step.attempt_no, cause=event.row)
    else:
        return NOTHING
    return draft.decided()


def _row_of(draft: Draft, event: OfAttempt) -> str:
    return outbox_id(draft.job.job_id, event.step_id, event.attempt_no)


def _made(draft: Draft, event: OfAttempt) -> tuple[Step, Attempt] | None:
    """The attempt that the event speaks of, current or not, if it was ever made."""
    step = draft.aggregate.step(event.step_id)
    attempt = step.attempt(event.attempt_no) if step else None
    if step is None or attempt is None or attempt.lease_id != event.lease_id:
        return None
    return step, attempt


def _awaiting_publish(draft: Draft, event: OfAttempt) -> Step | None:
    """The step, if the event speaks of its current attempt and that is not out yet."""
    step = draft.aggregate.active
    current = (step.step_id, step.attempt_no, step.lease_id)
    if step.state is not StepState.DISPATCHING:
        return None
    return step if current == (event.step_id, event.attempt_no, event.lease_id) else None


def _await_ack(draft: Draft, step: Step) -> None:
    changes = draft.move_step(step, StepTrigger.PUBLISHED, StepState.AWAITING_ACK)
    changes["ack_deadline"] = draft.now + step.policy.ack_timeout
    draft.change_attempt(step, step.attempt_no, sent_at=draft.now)


def _recorded(draft: Draft, event: OfAttempt, row: OutboxState) -> Decision:
    draft.note(EventType.OUTBOX_RECORDED, event.step_id, event.attempt_no, cause=row)
    return draft.decided()
