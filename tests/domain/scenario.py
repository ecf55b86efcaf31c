"""A job that tests drive: real decisions on a real aggregate, with a clock that tests move."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lucius_contract.audit import Verdict
from lucius_contract.errors import ErrorCode
from lucius_contract.ids import new_lease_id
from lucius_contract.messages import Outcome
from lucius_contract.routing import DecisionSource, Mode, ModeDecision, route
from lucius_contract.states import JobState, OutboxState, StepState
from lucius_orchestrator.domain.aggregate import Aggregate, Engine, Step, StepPolicy
from lucius_orchestrator.domain.creation import JobPlan, StepPlan, new_job
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import (
    Decision,
    DirectiveRow,
    OutboxKind,
    OutboxRow,
    WorkflowRow,
    apply,
)
from lucius_orchestrator.domain.draft import Fresh
from lucius_orchestrator.domain.events import (
    AckReceived,
    AckTimedOut,
    AttemptOpened,
    CancelRequested,
    CeilingReached,
    DispatchStale,
    Event,
    HeartbeatReceived,
    LeaseExpired,
    OutboxFailed,
    OutboxSent,
    OutboxSuperseded,
    PauseRequested,
    PublishDelayed,
    ResultReceived,
    ResumeRequested,
    RetryDue,
    SlaExceeded,
    Submitted,
    TurnGranted,
    WorkflowLost,
)
from lucius_orchestrator.domain.workflow import Next, what_next

START = datetime(2026, 1, 27, 10, 0, tzinfo=UTC)
TENANT = "acme"
STEP_TYPES = ("OCR", "EMBEDDING", "SIS")
ARTIFACT = {
    "name": "output.txt",
    "uri": "az://workspace/acme/output.txt",
    "sha256": "ab" * 32,
    "size": 5,
    "media_type": "text/plain",
}


def a_plan(steps: int = 3, policy: StepPolicy | None = None, **changes: Any) -> JobPlan:
    mode = ModeDecision(Mode.DEFAULT, DecisionSource.GLOBAL_CONFIG, "default")
    plan: dict[str, Any] = {
        "job_id": "job_1",
        "tenant_id": TENANT,
        "request_type": "OCR_EMBEDDING_SIS",
        "protocol_id": "ocr_embedding_sis",
        "protocol_version": "1",
        "steps": tuple(
            StepPlan(kind, kind.lower(), {"for": kind}, policy or StepPolicy())
            for kind in STEP_TYPES[:steps]
        ),
        "route": route(TENANT, None, mode),
        "input_ref": {"uri": "az://inbox/a.pdf"},
        "output_ref": {"uri": "az://outbox/a.json"},
        "workspace_ref": {"uri": "az://workspace/lucius/acme/job_1/"},
        "idempotency_hash": "00" * 32,
        "correlation_id": "corr-1",
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    }
    return JobPlan(**(plan | changes))


def later(one: Next, other: Next) -> Next:
    """Whichever was said later: answers and signals overtake each other."""
    return max(one, other, key=_said)


def _said(following: Next) -> tuple[int, datetime]:
    # Not the text: a whole second is written without a fraction and would sort after one.
    expires_at = following["lease_expires_at"]
    return following["seq"], datetime.fromisoformat(expires_at) if expires_at else START


@dataclass
class Scenario:
    aggregate: Aggregate
    now: datetime = START
    leases: int = 0
    decisions: list[Decision] = field(default_factory=list)
    rows: dict[str, OutboxState] = field(default_factory=dict)
    directives: list[DirectiveRow] = field(default_factory=list)
    turns: list[DirectiveRow] = field(default_factory=list)

    @classmethod
    def driven(cls, steps: int = 3, policy: StepPolicy | None = None, **plan: Any) -> "Scenario":
        """A job of which Temporal keeps the time."""
        return cls.new(steps, policy, engine=Engine.TEMPORAL, **plan)

    @classmethod
    def new(cls, steps: int = 3, policy: StepPolicy | None = None, **plan: Any) -> "Scenario":
        return cls(new_job(a_plan(steps, policy, **plan), START))

    @property
    def active(self) -> Step:
        return self.aggregate.active

    @property
    def states(self) -> tuple[JobState, StepState]:
        return self.aggregate.job.state, self.active.state

    @property
    def last(self) -> Decision:
        return self.decisions[-1]

    def identity(self) -> tuple[str, int, str]:
        step = self.active
        return step.step_id, step.attempt_no, step.lease_id or "none"

    def fresh(self) -> Fresh:
        self.leases += 1
        return Fresh(new_lease_id(self.leases.to_bytes(16)))

    def happens(self, event: Event, after: timedelta = timedelta(seconds=1)) -> "Scenario":
        self.now += after
        decision = decide(self.aggregate, event, self.now, self.fresh())
        self.aggregate = apply(self.aggregate, decision)
        self.decisions.append(decision)
        for row in decision.outbox:
            self._enqueue(row)
        for mark in decision.marks:
            self.rows[mark.outbox_id] = mark.state
        return self

    def _enqueue(self, row: OutboxRow) -> None:
        assert row.outbox_id not in self.rows, "a second row of one name"
        self.rows[row.outbox_id] = OutboxState.PENDING
        if isinstance(row, DirectiveRow):
            is_turn = row.kind is OutboxKind.TURN
            (self.turns if is_turn else self.directives).append(row)

    def submitted(self) -> "Scenario":
        return self.happens(Submitted())

    def begun(self) -> "Scenario":
        """The first attempt is open, whoever opens it."""
        self.submitted()
        return self if self.active.attempts else self.opened()

    def opening(self, **changes: Any) -> AttemptOpened:
        """What the job's workflow asks for when it opens the next attempt."""
        step = self.active
        asked: dict[str, Any] = {
            "step_id": step.step_id,
            "attempt_no": step.attempt_no + 1,
            "lease_id": f"{step.step_index + 1:016x}{step.attempt_no + 1:016x}",
            "lease_expires_at": self.now + step.policy.dispatch_lease(),
            "tenant_id": TENANT,
        }
        return AttemptOpened(**(asked | changes))

    def opened(self, **changes: Any) -> "Scenario":
        """Open the next attempt, once it is due."""
        self.now = max(self.now, self.active.next_attempt_at or self.now)
        return self.happens(self.opening(**changes))

    def queued(self) -> "Scenario":
        """Ask for the next attempt while its service has no room."""
        return self.opened(admitted=False)

    def turn_granted(self) -> "Scenario":
        """Grant the turn that was asked for last; where none was, one of the next attempt."""
        step = self.active
        waiting = self.turns[-1] if self.turns else None
        asked = (step.step_id, step.attempt_no + 1)
        return self.happens(
            TurnGranted(*((waiting.step_id, waiting.attempt_no) if waiting else asked))
        )

    def workflow_lost(self) -> "Scenario":
        return self.happens(WorkflowLost("TERMINATED", "lost_workflows"))

    def enqueued(self) -> DirectiveRow:
        """The directive that is all that the last decision put into the outbox."""
        (row,) = self.last.outbox
        assert isinstance(row, DirectiveRow)
        return row

    def told(self) -> list[WorkflowRow]:
        """The signals that came with the last decision."""
        return [
            row
            for row in self.last.outbox
            if isinstance(row, WorkflowRow) and row.kind is OutboxKind.SIGNAL
        ]

    @property
    def next(self) -> Next:
        return what_next(self.aggregate)

    def sent(self) -> "Scenario":
        return self.happens(OutboxSent(*self.identity()))

    def unpublishable(self, code: ErrorCode = ErrorCode.DISPATCH_FAILED) -> "Scenario":
        return self.happens(OutboxFailed(*self.identity(), code, "refused by the bus"))

    def superseded(self) -> "Scenario":
        return self.happens(OutboxSuperseded(*self.identity()))

    def publish_delayed(self) -> "Scenario":
        return self.happens(PublishDelayed(*self.identity()))

    def acked(self) -> "Scenario":
        return self.happens(AckReceived(*self.identity(), TENANT))

    def heartbeat(self) -> "Scenario":
        return self.happens(HeartbeatReceived(*self.identity(), TENANT))

    def result_event(
        self, outcome: Outcome = Outcome.SUCCEEDED, digest: str = "d1", **fields: Any
    ) -> ResultReceived:
        if outcome is not Outcome.SUCCEEDED:
            fields = {"error_code": "ocr.BROKEN", "error_message": "it broke", **fields}
        return ResultReceived(*self.identity(), TENANT, outcome=outcome, digest=digest, **fields)

    def result(
        self, outcome: Outcome = Outcome.SUCCEEDED, digest: str = "d1", **fields: Any
    ) -> "Scenario":
        return self.happens(self.result_event(outcome, digest, **fields))

    def succeeds(self, **fields: Any) -> "Scenario":
        return self.sent().acked().result(**fields)

    def cancel(self) -> "Scenario":
        return self.happens(CancelRequested())

    def pause(self) -> "Scenario":
        return self.happens(PauseRequested())

    def resume(self) -> "Scenario":
        return self.happens(ResumeRequested())

    def ack_timeout(self) -> "Scenario":
        return self._timer(AckTimedOut, self.active.ack_deadline)

    def unanswered(self) -> "Scenario":
        """The ACK timeout is over, and nothing else was heard from the service either."""
        deadline = self.active.ack_deadline or self.now
        self.now = max(self.now, deadline)
        return self.happens(AckTimedOut(*self.identity(), deadline, absent=True))

    def lease_expired(self) -> "Scenario":
        return self._timer(LeaseExpired, self.active.lease_expires_at)

    def ceiling(self) -> "Scenario":
        return self._timer(CeilingReached, self.active.ceiling_at)

    def retry_due(self) -> "Scenario":
        return self._timer(RetryDue, self.active.next_attempt_at)

    def stale(self, row: OutboxState = OutboxState.PENDING) -> "Scenario":
        dispatched_at = self.active.attempts[-1].dispatched_at
        deadline = dispatched_at + self.active.policy.stale_dispatch
        self.now = max(self.now, deadline)
        return self.happens(DispatchStale(*self.identity(), deadline, "stale_dispatch", row))

    def sla_exceeded(self, by: str | None = None) -> "Scenario":
        deadline = self.aggregate.job.sla_deadline
        self.now = max(self.now, deadline)
        return self.happens(SlaExceeded(deadline, by))

    def _timer(
        self,
        kind: type[AckTimedOut] | type[LeaseExpired] | type[CeilingReached] | type[RetryDue],
        deadline: datetime | None,
    ) -> "Scenario":
        """Fire a timer of the current attempt; without a deadline of that kind, a bygone one."""
        moment = deadline or self.now
        self.now = max(self.now, moment)
        return self.happens(kind(*self.identity(), moment))

    def verdict(self) -> Verdict | None:
        return self.last.verdict
