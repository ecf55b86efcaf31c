"""What comes next for a job that Temporal drives, and what its workflow is told.

The workflow keeps the time: it opens attempts, has their directives published and reports deadlines
that have passed. The ledger decides what each of these means, and says what comes next; whatever
happens to the job in another way (a reply, a command) reaches the workflow as a signal that says
the same. What was said later counts: `seq`, and `lease_expires_at` where that alone moved.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypedDict

from lucius_contract.states import (
    ADVANCING_JOB_STATES,
    TERMINAL_JOB_STATES,
    JobState,
    StepState,
)
from lucius_contract.timeouts import HEARTBEATS_PER_LEASE
from lucius_orchestrator.domain.aggregate import Aggregate, Engine, Job, JsonObject, Step, Turn
from lucius_orchestrator.domain.decision import Decision, OutboxKind, WorkflowRow, apply
from lucius_orchestrator.domain.directive import on_the_wire
from lucius_orchestrator.domain.events import (
    AckReceived,
    CancelRequested,
    Event,
    HeartbeatReceived,
    OfAttempt,
    PauseRequested,
    ResultReceived,
    ResumeRequested,
    SlaExceeded,
    TurnGranted,
)

_OPENS_ATTEMPTS = ADVANCING_JOB_STATES | {JobState.QUEUED}
_NOT_YET_OPEN = frozenset({StepState.PENDING, StepState.FAILED_RETRY})


class Action(StrEnum):
    OPEN = "OPEN"
    """Open the attempt, not before `at`."""
    PUBLISH = "PUBLISH"
    """Have the attempt's directive published."""
    WAIT = "WAIT"
    """Wait for a signal, or for the first of the timers."""
    END = "END"
    """The job is terminal."""


class TimerName(StrEnum):
    """The deadlines that a workflow keeps, as events of the internal API."""

    ACK_TIMEOUT = "ACK_TIMEOUT"
    LEASE_EXPIRED = "LEASE_EXPIRED"
    ATTEMPT_TIMEOUT = "ATTEMPT_TIMEOUT"
    RETRY_DUE = "RETRY_DUE"
    SLA_EXCEEDED = "SLA_EXCEEDED"


class Timer(TypedDict):
    event: str
    deadline: str


class Next(TypedDict):
    """`attempt_no` is the one to open, else the current one with its `lease_id`; `lease_seconds` is
    how long the lease of an attempt is when it is opened. The job's SLA is among the timers until
    it ends."""

    action: str
    state: str
    seq: int
    stepId: str
    attempt_no: int
    lease_id: str | None
    lease_expires_at: str | None
    lease_seconds: float
    at: str | None
    timers: list[Timer]


class Signal(StrEnum):
    STEP_ACK = "step_ack"
    STEP_RESULT = "step_result"
    STEP_HEARTBEAT = "step_heartbeat"
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    JOB_MOVED = "job_moved"
    """By its SLA, which another component has noticed; an attempt has its turn; or the workflow was
    thought to be lost."""


SIGNALS: Mapping[type[Event], Signal] = {
    AckReceived: Signal.STEP_ACK,
    ResultReceived: Signal.STEP_RESULT,
    HeartbeatReceived: Signal.STEP_HEARTBEAT,
    CancelRequested: Signal.CANCEL,
    PauseRequested: Signal.PAUSE,
    ResumeRequested: Signal.RESUME,
    SlaExceeded: Signal.JOB_MOVED,
    TurnGranted: Signal.JOB_MOVED,
}


def what_next(aggregate: Aggregate) -> Next:
    """What the workflow of the job has to do now."""
    job, step = aggregate.job, aggregate.active
    action, attempt_no, at = _action(job, step)
    return {
        "action": action.value,
        "state": job.state.value,
        "seq": job.seq,
        "stepId": step.step_id,
        "attempt_no": attempt_no,
        "lease_id": None if action is Action.OPEN else step.lease_id,
        "lease_expires_at": _text(step.lease_expires_at),
        "lease_seconds": step.policy.dispatch_lease().total_seconds(),
        "at": _text(at),
        "timers": [] if action is Action.END else _timers(job, step),
    }


def _action(job: Job, step: Step) -> tuple[Action, int, datetime | None]:
    if job.state in TERMINAL_JOB_STATES:
        return Action.END, step.attempt_no, None
    if wants_attempt(job, step) and step.turn is not Turn.WAITING:
        return Action.OPEN, step.attempt_no + 1, step.next_attempt_at
    if step.state is StepState.DISPATCHING:
        return Action.PUBLISH, step.attempt_no, None
    return Action.WAIT, step.attempt_no, None


def wants_attempt(job: Job, step: Step) -> bool:
    """Whether another attempt of the active step is to be opened, now or later."""
    return job.state in _OPENS_ATTEMPTS and step.state in _NOT_YET_OPEN


def _timers(job: Job, step: Step) -> list[Timer]:
    found: list[tuple[TimerName, datetime | None]] = [(TimerName.SLA_EXCEEDED, job.sla_deadline)]
    if step.state is StepState.AWAITING_ACK:
        found.append((TimerName.ACK_TIMEOUT, step.ack_deadline))
    if step.state is StepState.IN_PROGRESS:
        found.append((TimerName.LEASE_EXPIRED, step.lease_expires_at))
        found.append((TimerName.ATTEMPT_TIMEOUT, step.ceiling_at))
    return [{"event": name.value, "deadline": on_the_wire(at)} for name, at in found if at]


def start_row(aggregate: Aggregate, now: datetime, *, restarts: bool) -> WorkflowRow:
    """Have a workflow started: the first one of the job, or another one since it was lost."""
    job, following = aggregate.job, what_next(aggregate)
    body = {
        "jobId": job.job_id,
        "tenant_id": job.tenant_id,
        "request_type": job.request_type,
        "protocol_id": job.protocol_id,
        "correlation_id": job.correlation_id,
        "restarts": restarts,
        "next": following,
    }
    outbox_id = f"{job.job_id}.start.{following['seq']}"
    return WorkflowRow(outbox_id, job.job_id, body, now, OutboxKind.START)


def with_signal(aggregate: Aggregate, event: Event, decision: Decision, now: datetime) -> Decision:
    """The decision with what the workflow must be told of it. What the workflow itself asked for is
    told in the answer to that."""
    if aggregate.job.engine is not Engine.TEMPORAL or not decision.writes:
        return decision
    name = _signal_of(event, aggregate, now)
    before, following = what_next(aggregate), what_next(apply(aggregate, decision))
    if name is None or before | {"seq": following["seq"]} == following:
        return decision
    row = _signal_row(name, aggregate.job, event, following, now)
    return decision._replace(outbox=(*decision.outbox, row))


def _signal_of(event: Event, aggregate: Aggregate, now: datetime) -> Signal | None:
    """None: the workflow asked for it, or need not know."""
    if isinstance(event, SlaExceeded) and event.by is None:
        return None
    if isinstance(event, HeartbeatReceived) and not _is_first_of_a_third(aggregate, now):
        return None
    return SIGNALS.get(type(event))


def _signal_row(
    name: Signal, job: Job, event: Event, following: Next, now: datetime
) -> WorkflowRow:
    body: dict[str, object] = {"signal": name.value, "jobId": job.job_id, "next": following}
    if isinstance(event, OfAttempt):
        body |= {
            "stepId": event.step_id,
            "attempt_no": event.attempt_no,
            "lease_id": event.lease_id,
        }
    if isinstance(event, ResultReceived):
        body["status"] = event.outcome.value
        if event.error_code is not None:
            body["error"] = {"code": event.error_code, "message": event.error_message or ""}
    # Heartbeats have no seq of their own.
    outbox_id = f"{job.job_id}.signal.{following['seq']}.{on_the_wire(now)}"
    return WorkflowRow(outbox_id, job.job_id, body, now, OutboxKind.SIGNAL)


def _is_first_of_a_third(aggregate: Aggregate, now: datetime) -> bool:
    """Of the lease; the job's time is cut into such thirds. Heartbeats between tell the workflow
    nothing that it needs: when its timer fires early, it learns the new deadline."""
    step, began = aggregate.active, aggregate.job.created_at
    if step.state is not StepState.IN_PROGRESS or step.lease_expires_at is None:
        return True
    third = step.policy.lease / HEARTBEATS_PER_LEASE or timedelta.resolution
    extended_at = step.lease_expires_at - step.policy.lease
    return (now - began) // third > (extended_at - began) // third


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else on_the_wire(moment)


def result_of(step: Step, attempt_no: int) -> JsonObject | None:
    """The RESULT that was applied for an attempt, if one was."""
    attempt = step.attempt(attempt_no)
    if attempt is None or attempt.result_digest is None or attempt.outcome is None:
        return None
    error = {"code": attempt.error_code, "message": attempt.error_message}
    return {"status": attempt.outcome.value, "error": error if attempt.error_code else None}
