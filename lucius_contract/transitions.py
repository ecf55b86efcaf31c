"""Every legal transition of a job, a step and an outbox row, as data.

A row says: in state `source`, when `trigger` happens and `condition` holds, the state becomes
`target`. What is in no row does not happen: the decision refuses it and says why. The diagrams and
tables in `docs/reference/` are generated from here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from lucius_contract.states import JobState, OutboxState, StepState


class JobTrigger(StrEnum):
    FIRST_DIRECTIVE = "FIRST_DIRECTIVE"
    ACKNOWLEDGED = "ACKNOWLEDGED"
    STEP_SUCCEEDED = "STEP_SUCCEEDED"
    STEP_FAILED = "STEP_FAILED"
    NOTHING_IN_FLIGHT = "NOTHING_IN_FLIGHT"
    CANCEL = "CANCEL"
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    SLA_EXCEEDED = "SLA_EXCEEDED"


class StepTrigger(StrEnum):
    ENQUEUED = "ENQUEUED"
    PUBLISHED = "PUBLISHED"
    ACKNOWLEDGED = "ACKNOWLEDGED"
    RESULT_SUCCEEDED = "RESULT_SUCCEEDED"
    RESULT_RETRYABLE = "RESULT_RETRYABLE"
    RESULT_FINAL = "RESULT_FINAL"
    ACK_TIMEOUT = "ACK_TIMEOUT"
    LEASE_EXPIRED = "LEASE_EXPIRED"
    ATTEMPT_TIMEOUT = "ATTEMPT_TIMEOUT"
    DISPATCH_FAILED = "DISPATCH_FAILED"
    RETRY_DUE = "RETRY_DUE"
    SLA_EXCEEDED = "SLA_EXCEEDED"
    JOB_ENDED = "JOB_ENDED"


class OutboxTrigger(StrEnum):
    PUBLISHED = "PUBLISHED"
    REFUSED = "REFUSED"
    OUTDATED = "OUTDATED"


State = TypeVar("State", bound=StrEnum)
Trigger = TypeVar("Trigger", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Transition(Generic[State, Trigger]):
    source: State
    trigger: Trigger
    target: State
    condition: str


def _rows(
    sources: Iterable[State], trigger: Trigger, target: State, condition: str
) -> tuple[Transition[State, Trigger], ...]:
    return tuple(Transition(source, trigger, target, condition) for source in sources)


def _job_rows() -> tuple[Transition[JobState, JobTrigger], ...]:
    j, t = JobState, JobTrigger
    return (
        *_rows([j.QUEUED], t.FIRST_DIRECTIVE, j.DISPATCHING, "the directive of step 0 is enqueued"),
        *_rows([j.DISPATCHING], t.ACKNOWLEDGED, j.IN_PROGRESS, "step 0 is acknowledged"),
        *_rows([j.IN_PROGRESS], t.STEP_SUCCEEDED, j.IN_PROGRESS, "the next step is enqueued"),
        *_rows([j.IN_PROGRESS, j.PAUSING], t.STEP_SUCCEEDED, j.SUCCEEDED, "it was the last step"),
        *_rows(
            [j.DISPATCHING, j.IN_PROGRESS, j.PAUSING],
            t.STEP_FAILED,
            j.FAILED_FINAL,
            "the active step failed for good",
        ),
        *_rows(
            [j.QUEUED, j.DISPATCHING, j.IN_PROGRESS, j.PAUSING],
            t.CANCEL,
            j.CANCELLING,
            "asked for by a caller",
        ),
        *_rows([j.PAUSED], t.CANCEL, j.CANCELLED, "asked for by a caller"),
        *_rows([j.CANCELLING], t.NOTHING_IN_FLIGHT, j.CANCELLED, "the active step has ended"),
        *_rows(
            [j.QUEUED, j.DISPATCHING, j.IN_PROGRESS],
            t.PAUSE,
            j.PAUSING,
            "asked for by a caller",
        ),
        *_rows([j.PAUSING], t.NOTHING_IN_FLIGHT, j.PAUSED, "no step is in flight"),
        *_rows([j.PAUSING, j.PAUSED], t.RESUME, j.DISPATCHING, "step 0 was never acknowledged yet"),
        *_rows([j.PAUSING, j.PAUSED], t.RESUME, j.IN_PROGRESS, "step 0 was acknowledged before"),
        *_rows(
            [j.QUEUED, j.DISPATCHING, j.IN_PROGRESS, j.PAUSING, j.PAUSED],
            t.SLA_EXCEEDED,
            j.FAILED_FINAL,
            "the job's SLA has passed, paused time included",
        ),
    )


def _attempt_ends(
    source: StepState, trigger: StepTrigger
) -> tuple[Transition[StepState, StepTrigger], ...]:
    """An attempt that failed in a way worth repeating."""
    s = StepState
    return (
        Transition(source, trigger, s.FAILED_RETRY, "attempts are left"),
        Transition(source, trigger, s.FAILED_FINAL, "attempts are used up"),
        Transition(source, trigger, s.CANCELLED, "the job is CANCELLING"),
    )


def _step_rows() -> tuple[Transition[StepState, StepTrigger], ...]:
    s, t = StepState, StepTrigger
    in_flight = [s.DISPATCHING, s.AWAITING_ACK, s.IN_PROGRESS]
    return (
        *_rows([s.PENDING], t.ENQUEUED, s.DISPATCHING, "attempt 1 with its own lease"),
        *_rows([s.DISPATCHING], t.PUBLISHED, s.AWAITING_ACK, "the outbox row is SENT"),
        *_rows([s.AWAITING_ACK], t.ACKNOWLEDGED, s.IN_PROGRESS, "ACK of this attempt and lease"),
        *_rows(
            [s.FAILED_RETRY],
            t.ACKNOWLEDGED,
            s.IN_PROGRESS,
            "late ACK: the attempt ended without a reply, the job is DISPATCHING or IN_PROGRESS",
        ),
        *_rows([s.IN_PROGRESS], t.RESULT_SUCCEEDED, s.SUCCEEDED, "RESULT of this attempt"),
        *_rows(
            [s.IN_PROGRESS],
            t.RESULT_SUCCEEDED,
            s.FAILED_FINAL,
            "its artifacts do not fit into the next directive",
        ),
        *_rows([s.IN_PROGRESS], t.RESULT_FINAL, s.FAILED_FINAL, "RESULT of this attempt"),
        *_rows(
            [s.IN_PROGRESS],
            t.RESULT_FINAL,
            s.CANCELLED,
            "the job is CANCELLING and the service stopped because of that",
        ),
        *_attempt_ends(s.IN_PROGRESS, t.RESULT_RETRYABLE),
        *_attempt_ends(s.AWAITING_ACK, t.ACK_TIMEOUT),
        *_attempt_ends(s.IN_PROGRESS, t.LEASE_EXPIRED),
        *_attempt_ends(s.IN_PROGRESS, t.ATTEMPT_TIMEOUT),
        *_attempt_ends(s.DISPATCHING, t.DISPATCH_FAILED),
        *_rows([s.FAILED_RETRY], t.RETRY_DUE, s.DISPATCHING, "next attempt with a new lease"),
        *_rows(
            [*in_flight, s.FAILED_RETRY],
            t.SLA_EXCEEDED,
            s.FAILED_FINAL,
            "the job's SLA has passed",
        ),
        *_rows(
            in_flight,
            t.SLA_EXCEEDED,
            s.CANCELLED,
            "the job's SLA has passed while it is CANCELLING",
        ),
        *_rows([s.PENDING], t.JOB_ENDED, s.CANCELLED, "the job ended before the step began"),
        *_rows([s.FAILED_RETRY], t.JOB_ENDED, s.CANCELLED, "the job is cancelled"),
    )


JOB_TRANSITIONS = _job_rows()
STEP_TRANSITIONS = _step_rows()
OUTBOX_TRANSITIONS: tuple[Transition[OutboxState, OutboxTrigger], ...] = (
    Transition(
        OutboxState.PENDING, OutboxTrigger.PUBLISHED, OutboxState.SENT, "the bus has accepted it"
    ),
    Transition(
        OutboxState.PENDING,
        OutboxTrigger.REFUSED,
        OutboxState.FAILED_FINAL,
        "the bus refuses it for good, or the tries are used up",
    ),
    Transition(
        OutboxState.PENDING,
        OutboxTrigger.OUTDATED,
        OutboxState.SUPERSEDED,
        "its attempt or lease is no longer the step's",
    ),
)


def targets_by_cause(
    table: Iterable[Transition[State, Trigger]],
) -> Mapping[tuple[State, Trigger], frozenset[State]]:
    """The table as a look-up: where a trigger may lead from a state."""
    found: dict[tuple[State, Trigger], set[State]] = {}
    for row in table:
        found.setdefault((row.source, row.trigger), set()).add(row.target)
    return {cause: frozenset(targets) for cause, targets in found.items()}


JOB_TARGETS = targets_by_cause(JOB_TRANSITIONS)
STEP_TARGETS = targets_by_cause(STEP_TRANSITIONS)
OUTBOX_TARGETS = targets_by_cause(OUTBOX_TRANSITIONS)
