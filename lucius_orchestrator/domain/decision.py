"""What follows from an event: everything that one commit has to write."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, TypedDict

from lucius_contract.audit import DeadLetterKind, EventType, Verdict
from lucius_contract.errors import ErrorCode
from lucius_contract.states import JobState, OutboxState, StepState
from lucius_orchestrator.domain.aggregate import (
    Aggregate,
    Attempt,
    JsonObject,
    ReplyVia,
    Turn,
    evolve,
)


class JobChanges(TypedDict, total=False):
    state: JobState
    current_step_id: str
    current_step_index: int
    attempts_total: int
    seq: int
    refusals: int
    final_output: str | None
    error_code: str | None
    error_message: str | None
    updated_at: datetime
    completed_at: datetime | None


class StepChanges(TypedDict, total=False):
    state: StepState
    attempt_no: int
    lease_id: str | None
    lease_expires_at: datetime | None
    ack_deadline: datetime | None
    ceiling_at: datetime | None
    next_attempt_at: datetime | None
    attempts: tuple[Attempt, ...]
    stray_replies: int
    progress: JsonObject | None
    artifacts: tuple[JsonObject, ...]
    artifacts_bytes: int
    result_ref: JsonObject | None
    last_error_code: str | None
    last_error_message: str | None
    updated_at: datetime
    completed_at: datetime | None
    turn: Turn | None


class OutboxKind(StrEnum):
    """An INVOCATION is a directive of a job that Temporal drives: its workflow asks for it by name,
    and no dispatcher looks for it. A TURN stands in its place in the queue of the service until the
    attempt may be opened; a dispatcher claims it among DIRECTIVEs and publishes nothing."""

    DIRECTIVE = "DIRECTIVE"
    INVOCATION = "INVOCATION"
    TURN = "TURN"
    WEBHOOK = "WEBHOOK"
    SIGNAL = "SIGNAL"
    START = "START"


# The records below are named tuples: most decisions make several, and a frozen dataclass of their
# size takes four times as long to build.


class DirectiveRow(NamedTuple):
    """An outbox row of kind DIRECTIVE or INVOCATION, born PENDING; an attempt has one and never a
    second. Before it there may be one of kind TURN, whose body holds only what queues need, and
    whose `lease_id` is empty.

    `body` is the DIRECTIVE as it goes out, but for what the dispatcher adds: the callback addresses
    and token when `reply_via` is http, and the artifact token when `output_ref` names an artifact.
    """

    outbox_id: str
    step_id: str
    attempt_no: int
    lease_id: str
    service: str
    topic: str
    partition_key: str
    message_id: str
    body: JsonObject
    reply_via: ReplyVia
    created_at: datetime
    expires_at: datetime
    kind: OutboxKind = OutboxKind.DIRECTIVE


class WorkflowRow(NamedTuple):
    """An outbox row of kind START or SIGNAL, born PENDING: what Temporal is to be told of a job."""

    outbox_id: str
    job_id: str
    body: JsonObject
    created_at: datetime
    kind: OutboxKind


OutboxRow = DirectiveRow | WorkflowRow


class OutboxMark(NamedTuple):
    outbox_id: str
    state: OutboxState


class AuditEvent(NamedTuple):
    """One line of a job's history; `seq` counts within the job."""

    seq: int
    at: datetime
    type: EventType
    step_id: str | None = None
    attempt_no: int | None = None
    source: str | None = None
    target: str | None = None
    cause: str | None = None
    implied: bool = False
    detail: str | None = None
    by: str | None = None


class DeadLetter(NamedTuple):
    kind: DeadLetterKind
    step_id: str | None
    attempt_no: int | None
    code: str
    message: str
    at: datetime


class ReplyAnswer(NamedTuple):
    verdict: Verdict
    lease_expires_at: datetime | None
    cancel_requested: bool


class Refusal(NamedTuple):
    code: ErrorCode
    reason: str


class Decision(NamedTuple):
    job: JobChanges
    steps: Mapping[int, StepChanges]
    outbox: tuple[OutboxRow, ...]
    marks: tuple[OutboxMark, ...]
    events: tuple[AuditEvent, ...]
    dead_letters: tuple[DeadLetter, ...]
    reply: ReplyAnswer | None
    refusal: Refusal | None

    @property
    def writes(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.job or self.steps or self.outbox or self.marks or self.events)

    @property
    def verdict(self) -> Verdict | None:
        return self.reply.verdict if self.reply else None

    @property
    def wakes_dispatcher(self) -> bool:
        return bool(self.outbox) or any(e.type is EventType.DISPATCH_WOKEN for e in self.events)


NOTHING = Decision(JobChanges(), {}, (), (), (), (), None, None)
"""The event no longer means anything; there is nothing to write."""


def apply(aggregate: Aggregate, decision: Decision) -> Aggregate:
    """The aggregate as the ledger holds it once the decision is committed."""
    steps = list(aggregate.steps)
    for index, changes in decision.steps.items():
        steps[index] = evolve(steps[index], changes)
    return Aggregate(evolve(aggregate.job, decision.job), tuple(steps))


def merged_decision(decisions: Sequence[Decision]) -> Decision:
    """Decisions that build on each other, as one to commit: applying it is applying them in turn.
    It answers no reply and refuses nothing; those are each decision's own."""
    if len(decisions) == 1:
        return decisions[0]
    job: JobChanges = {}
    steps: dict[int, StepChanges] = {}
    outbox: tuple[OutboxRow, ...] = ()
    marks: tuple[OutboxMark, ...] = ()
    events: list[AuditEvent] = []
    letters: tuple[DeadLetter, ...] = ()
    for decision in decisions:
        job.update(decision.job)
        for index, changes in decision.steps.items():
            earlier = steps.get(index)
            steps[index] = changes if earlier is None else {**earlier, **changes}
        outbox += decision.outbox
        marks += decision.marks
        events += decision.events
        letters += decision.dead_letters
    return Decision(job, steps, _latest(outbox), marks, tuple(events), letters, None, None)


def _latest(rows: tuple[OutboxRow, ...]) -> tuple[OutboxRow, ...]:
    """Of signals that one commit brings the last one says all."""
    last = next((row for row in reversed(rows) if row.kind is OutboxKind.SIGNAL), None)
    return tuple(row for row in rows if row.kind is not OutboxKind.SIGNAL or row is last)
