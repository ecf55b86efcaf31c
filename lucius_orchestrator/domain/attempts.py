"""What a workflow asks for: an attempt of its own number and lease, which may have to wait for its
turn; and what is done when it is lost."""

from lucius_contract.audit import EventType
from lucius_contract.errors import ErrorCode
from lucius_contract.states import TERMINAL_JOB_STATES, JobState, OutboxState, StepState
from lucius_contract.transitions import JobTrigger, StepTrigger
from lucius_orchestrator.domain.aggregate import Engine, Step, Turn
from lucius_orchestrator.domain.decision import NOTHING, Decision, OutboxKind, apply
from lucius_orchestrator.domain.directive import turn_id, turn_row
from lucius_orchestrator.domain.draft import Draft
from lucius_orchestrator.domain.events import AttemptOpened, TurnGranted, WorkflowLost
from lucius_orchestrator.domain.moves import dispatch
from lucius_orchestrator.domain.workflow import start_row, wants_attempt

_OPENS_NO_MORE = TERMINAL_JOB_STATES | {JobState.CANCELLING}
_TRIGGERS = {
    StepState.PENDING: StepTrigger.ENQUEUED,
    StepState.FAILED_RETRY: StepTrigger.RETRY_DUE,
}


def on_attempt_opened(draft: Draft, event: AttemptOpened) -> Decision:
    """Open it, or nothing: then what comes next says why. The same attempt with the same lease was
    opened by this very event before. One that is not admitted waits for its turn."""
    step = draft.aggregate.step(event.step_id)
    if step is None or event.tenant_id != draft.job.tenant_id:
        return _refused(draft, ErrorCode.JOB_NOT_FOUND, "no such step or tenant of the job")
    if draft.job.engine is not Engine.TEMPORAL:
        return _refused(draft, ErrorCode.JOB_NOT_FOUND, "no workflow drives the job")
    if event.attempt_no <= step.attempt_no:
        return _opened_before(draft, step, event)
    if not _may_open(draft, step, event):
        return NOTHING
    if event.attempt_no != step.attempt_no + 1:
        return _refused(
            draft,
            ErrorCode.STATE_CONFLICT,
            f"attempt {step.attempt_no + 1} of {step.step_id} comes next",
        )
    may_go = event.admitted or step.turn is Turn.GRANTED
    return _opened(draft, step, event) if may_go else _awaits_turn(draft, step)


def _opened(draft: Draft, step: Step, event: AttemptOpened) -> Decision:
    if draft.job_state is JobState.QUEUED:
        draft.move_job(JobTrigger.FIRST_DIRECTIVE, JobState.DISPATCHING)
    dispatch(draft, step, _TRIGGERS[step.state], event.lease_id, event.lease_expires_at)
    return draft.decided()


def _opened_before(draft: Draft, step: Step, event: AttemptOpened) -> Decision:
    if (event.attempt_no, event.lease_id) == (step.attempt_no, step.lease_id):
        return NOTHING
    return _refused(
        draft,
        ErrorCode.STALE_ATTEMPT,
        f"attempt {step.attempt_no} of {step.step_id} was opened, under a lease of its own",
    )


def _may_open(draft: Draft, step: Step, event: AttemptOpened) -> bool:
    if step is not draft.aggregate.active or not wants_attempt(draft.job, step):
        return False
    due_at = step.next_attempt_at or draft.now
    return due_at <= draft.now < event.lease_expires_at


def _awaits_turn(draft: Draft, step: Step) -> Decision:
    if step.turn is Turn.WAITING:
        return NOTHING
    attempt_no = step.attempt_no + 1
    draft.changes_of(step)["turn"] = Turn.WAITING
    draft.outbox = (turn_row(draft, step, attempt_no),)
    _record_turn(draft, step.step_id, attempt_no, OutboxState.PENDING)
    return draft.decided()


def on_turn_granted(draft: Draft, event: TurnGranted) -> Decision:
    """End the row. The attempt that waits may be opened from now on, also if the job is paused, or
    an earlier attempt was revived by a late reply: there is no second TURN of an attempt."""
    step, state = draft.aggregate.active, OutboxState.SUPERSEDED
    is_next = (step.step_id, step.attempt_no + 1) == (event.step_id, event.attempt_no)
    if is_next and step.turn is not None and draft.job_state not in _OPENS_NO_MORE:
        draft.changes_of(step)["turn"] = Turn.GRANTED
        state = OutboxState.SENT
    draft.mark(turn_id(draft.job.job_id, event.step_id, event.attempt_no), state)
    _record_turn(draft, event.step_id, event.attempt_no, state)
    return draft.decided()


def _record_turn(draft: Draft, step_id: str, attempt_no: int, state: OutboxState) -> None:
    # Not a type of its own, which the previous release could not read.
    kind = OutboxKind.TURN.value
    draft.note(EventType.OUTBOX_RECORDED, step_id, attempt_no, cause=state, detail=kind)


def on_workflow_lost(draft: Draft, event: WorkflowLost) -> Decision:
    """Start another one, which goes on from what is stored."""
    job, step = draft.job, draft.aggregate.active
    if job.state in TERMINAL_JOB_STATES or job.engine is not Engine.TEMPORAL:
        return NOTHING
    draft.note(EventType.WORKFLOW_RESTARTED, step.step_id, step.attempt_no, cause=event.status)
    decision = draft.decided()
    row = start_row(apply(draft.aggregate, decision), draft.now, restarts=True)
    return decision._replace(outbox=(row,))


def _refused(draft: Draft, code: ErrorCode, reason: str) -> Decision:
    return draft.refused(code, reason, AttemptOpened.__name__)
