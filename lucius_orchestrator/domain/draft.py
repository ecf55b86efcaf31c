"""A decision in the making: collects what changes, hop by hop, each checked against its table."""

from datetime import datetime
from typing import Any, NamedTuple

from lucius_contract.audit import DeadLetterKind, EventType, Verdict
from lucius_contract.errors import ErrorCode
from lucius_contract.states import JobState, OutboxState, StepState
from lucius_contract.transitions import JOB_TARGETS, STEP_TARGETS, JobTrigger, StepTrigger
from lucius_orchestrator.domain.aggregate import Aggregate, Job, Step
from lucius_orchestrator.domain.decision import (
    AuditEvent,
    DeadLetter,
    Decision,
    JobChanges,
    OutboxMark,
    OutboxRow,
    Refusal,
    ReplyAnswer,
    StepChanges,
)
from lucius_orchestrator.domain.events import ReplyReceived

RECORDED_SINGLY = 50
"""Replies and refusals beyond this many per attempt or job are counted, not recorded."""

_CANCEL_REQUESTED = frozenset({JobState.CANCELLING, JobState.CANCELLED})


class Fresh(NamedTuple):
    """What a decision may need that is new: a lease id, and where in the jitter's range to fall."""

    lease_id: str
    jitter: float = 0.0


class IllegalTransitionError(Exception):
    """A hop that no table allows. `decide` turns it into a refusal."""


class Draft:
    __slots__ = (
        "aggregate",
        "by",
        "dead_letters",
        "events",
        "fresh",
        "job",
        "job_changes",
        "job_state",
        "marks",
        "now",
        "outbox",
        "step_changes",
    )

    def __init__(
        self, aggregate: Aggregate, now: datetime, fresh: Fresh, by: str | None = None
    ) -> None:
        self.aggregate = aggregate
        self.job: Job = aggregate.job
        self.now = now
        self.fresh = fresh
        self.by = by
        self.job_state = aggregate.job.state
        self.job_changes: JobChanges = {}
        self.step_changes: dict[int, StepChanges] = {}
        self.outbox: tuple[OutboxRow, ...] = ()
        self.marks: tuple[OutboxMark, ...] = ()
        self.events: list[AuditEvent] = []
        self.dead_letters: list[DeadLetter] = []

    def move_job(self, trigger: JobTrigger, target: JobState, *, implied: bool = False) -> None:
        source = self.job_state
        if target not in JOB_TARGETS.get((source, trigger), ()):
            raise IllegalTransitionError(f"{trigger} does not lead a job from {source} to {target}")
        self.job_state = self.job_changes["state"] = target
        self._record(
            EventType.JOB_STATE_CHANGED, None, None, source, target, trigger, implied, None
        )

    def move_step(
        self,
        step: Step,
        trigger: StepTrigger,
        target: StepState,
        *,
        implied: bool = False,
        detail: str | None = None,
    ) -> StepChanges:
        """Record the hop and return the step's changes, to be filled by the caller."""
        changes = self.changes_of(step)
        source = changes.get("state", step.state)
        if target not in STEP_TARGETS.get((source, trigger), ()):
            raise IllegalTransitionError(
                f"{trigger} does not lead a step from {source} to {target}"
            )
        changes["state"] = target
        attempt_no = changes.get("attempt_no", step.attempt_no)
        self._record(
            EventType.STEP_STATE_CHANGED,
            step.step_id,
            attempt_no,
            source,
            target,
            trigger,
            implied,
            detail,
        )
        return changes

    def changes_of(self, step: Step) -> StepChanges:
        changes = self.step_changes.get(step.step_index)
        if changes is None:
            changes = self.step_changes[step.step_index] = {"updated_at": self.now}
        return changes

    def change_attempt(self, step: Step, attempt_no: int, **fields: Any) -> None:
        """Change one entry of the step's history."""
        changes = self.changes_of(step)
        attempts = list(changes.get("attempts", step.attempts))
        attempts[attempt_no - 1] = attempts[attempt_no - 1]._replace(**fields)
        changes["attempts"] = tuple(attempts)

    def note(
        self, type: EventType, step_id: str, attempt_no: int, cause: str, detail: str | None = None
    ) -> None:
        """Record something that moves no state."""
        self._record(type, step_id, attempt_no, cause=cause, detail=detail)

    def mark(self, outbox_id: str, state: OutboxState) -> None:
        self.marks = (*self.marks, OutboxMark(outbox_id, state))

    def dead_letter(
        self,
        kind: DeadLetterKind,
        step_id: str | None,
        attempt_no: int | None,
        code: str,
        message: str,
    ) -> None:
        self.dead_letters.append(DeadLetter(kind, step_id, attempt_no, code, message, self.now))

    def decided(self) -> Decision:
        return self._finish()

    def answered(self, step: Step, reply: ReplyReceived, verdict: Verdict) -> Decision:
        """The answer to a reply; only the current attempt is told how long its lease lasts."""
        lease_expires_at = None
        if reply.lease_id == step.lease_id:
            lease_expires_at = self.changes_of(step).get("lease_expires_at", step.lease_expires_at)
        cancel_requested = self.job_state in _CANCEL_REQUESTED
        return self._finish(reply=ReplyAnswer(verdict, lease_expires_at, cancel_requested))

    def refused(self, code: ErrorCode, reason: str, cause: str) -> Decision:
        """Drop what was drafted; all that changes is the record that it was asked for."""
        job = self.job
        record = Draft(self.aggregate, self.now, self.fresh, self.by)
        record.job_changes["refusals"] = job.refusals + 1
        if job.refusals < RECORDED_SINGLY:
            record._record(EventType.REFUSED, source=job.state, cause=cause, detail=reason)
        return record._finish(refusal=Refusal(code, reason))

    def _record(
        self,
        type: EventType,
        step_id: str | None = None,
        attempt_no: int | None = None,
        source: str | None = None,
        target: str | None = None,
        cause: str | None = None,
        implied: bool = False,
        detail: str | None = None,
    ) -> None:
        place = (step_id, attempt_no, source, target, cause, implied, detail, self.by)
        self.events.append(AuditEvent(self.job.seq + len(self.events) + 1, self.now, type, *place))

    def _finish(self, reply: ReplyAnswer | None = None, refusal: Refusal | None = None) -> Decision:
        if self.events:
            self.job_changes["seq"] = self.job.seq + len(self.events)
        if self.job_changes:
            self.job_changes["updated_at"] = self.now
        return Decision(
            self.job_changes,
            self.step_changes,
            self.outbox,
            self.marks,
            tuple(self.events),
            tuple(self.dead_letters),
            reply,
            refusal,
        )
