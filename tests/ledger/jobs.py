"""Jobs on a ledger: real decisions, committed, with a clock that tests move."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from lucius_contract.errors import ErrorCode
from lucius_contract.ids import new_job_id, new_lease_id
from lucius_contract.messages import Outcome
from lucius_contract.routing import DecisionSource, Mode, ModeDecision, route
from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.domain.aggregate import Aggregate, Job, StepPolicy
from lucius_orchestrator.domain.creation import StepPlan, new_job
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import (
    AuditEvent,
    Decision,
    DirectiveRow,
    OutboxKind,
    OutboxRow,
    apply,
    merged_decision,
)
from lucius_orchestrator.domain.draft import Fresh
from lucius_orchestrator.domain.events import (
    AckReceived,
    AttemptOpened,
    CancelRequested,
    Event,
    HeartbeatReceived,
    OutboxFailed,
    OutboxSent,
    PauseRequested,
    ResultReceived,
    ResumeRequested,
    SlaExceeded,
    Submitted,
    Timer,
)
from lucius_orchestrator.domain.timers import armed
from lucius_orchestrator.domain.workflow import Action, what_next
from lucius_orchestrator.ports.ledger import (
    Claim,
    Created,
    Ledger,
    Limits,
    NewJob,
    Reservation,
    Stored,
)
from tests.domain.scenario import a_plan
from tests.ledger.backends import Clock
from tests.runner.deadlines import seconds

TENANT = "acme"
CONTENT = "c" * 64
LEASE = timedelta(seconds=30)
MANY = 1000
DIRECTIVE, INVOCATION = OutboxKind.DIRECTIVE, OutboxKind.INVOCATION
START, SIGNAL = OutboxKind.START, OutboxKind.SIGNAL
Pair = tuple[Ledger, Ledger]
TimerType = TypeVar("TimerType", bound=Timer)


class Submission(NamedTuple):
    """What a client asks for, as `create` takes it."""

    reservation: Reservation
    build: Callable[[str], NewJob]


@dataclass
class Story:
    """One job. Each event is decided on what the ledger answered last, and committed."""

    ledger: Ledger
    clock: Clock
    stored: Stored
    trail: list[AuditEvent] = field(default_factory=list)
    rows: list[OutboxRow] = field(default_factory=list)

    @property
    def directives(self) -> list[DirectiveRow]:
        return [row for row in self.rows if isinstance(row, DirectiveRow)]

    @property
    def aggregate(self) -> Aggregate:
        return self.stored.aggregate

    @property
    def job(self) -> Job:
        return self.aggregate.job

    @property
    def job_id(self) -> str:
        return self.job.job_id

    @property
    def identity(self) -> tuple[str, int, str]:
        step = self.aggregate.active
        return step.step_id, step.attempt_no, step.lease_id or "none"

    @property
    def ended(self) -> bool:
        return self.job.state in TERMINAL_JOB_STATES

    def decide(self, *events: Event) -> Decision:
        """A second after whatever came before; several as one, each on top of the one before."""
        self.clock.advance(seconds=1)
        aggregate, decisions = self.aggregate, []
        for event in events:
            fresh = Fresh(new_lease_id((aggregate.job.seq + 1).to_bytes(16)), jitter=0.3)
            decisions.append(decide(aggregate, event, self.clock.now, fresh))
            aggregate = apply(aggregate, decisions[-1])
        return merged_decision(decisions)

    async def commit(self, decision: Decision, claim: Claim | None = None) -> None:
        expected = apply(self.aggregate, decision)
        self.stored = await self.ledger.commit(self.stored, decision, claim)
        assert self.aggregate == expected
        self.trail += decision.events
        self.rows += decision.outbox

    async def happens(self, event: Event, claim: Claim | None = None) -> Decision:
        decision = self.decide(event)
        await self.commit(decision, claim)
        return decision

    async def sent(self, claim: Claim) -> Decision:
        return await self.happens(OutboxSent(*self.identity), claim)

    async def unpublishable(
        self, claim: Claim, code: ErrorCode = ErrorCode.DISPATCH_FAILED
    ) -> Decision:
        return await self.happens(OutboxFailed(*self.identity, code, "refused by the bus"), claim)

    async def acked(self) -> Decision:
        return await self.happens(AckReceived(*self.identity, self.job.tenant_id))

    async def heartbeat(self, progress: dict[str, Any] | None = None) -> Decision:
        return await self.happens(HeartbeatReceived(*self.identity, self.job.tenant_id, progress))

    def result(self, outcome: Outcome = Outcome.SUCCEEDED, **fields: Any) -> ResultReceived:
        if outcome is not Outcome.SUCCEEDED:
            fields = {"error_code": "ocr.BROKEN", "error_message": "it broke", **fields}
        identity = (*self.identity, self.job.tenant_id)
        return ResultReceived(*identity, outcome=outcome, digest="d" * 64, **fields)

    def opening(self) -> AttemptOpened:
        """What the workflow of the job asks for next, with a lease of its own."""
        following = what_next(self.aggregate)
        lease_id = new_lease_id((self.job.seq + 1).to_bytes(16))
        ends = self.clock.now + timedelta(seconds=following["lease_seconds"])
        identity = (following["stepId"], following["attempt_no"], lease_id)
        return AttemptOpened(*identity, lease_expires_at=ends, tenant_id=self.job.tenant_id)

    async def opened(self) -> Decision:
        return await self.happens(self.opening())

    async def taken(self, ledger: Ledger | None = None) -> Claim | None:
        """The INVOCATION of the current attempt."""
        step_id, attempt_no, _ = self.identity
        return await (ledger or self.ledger).take(self.job_id, step_id, attempt_no, LEASE)

    async def succeeds(self, **fields: Any) -> "Story":
        """Every step that is left; a RESULT implies the ACK and all before it."""
        while not self.ended:
            if what_next(self.aggregate)["action"] == Action.OPEN:
                await self.opened()
            await self.happens(self.result(**fields))
        return self

    async def fails(self, **fields: Any) -> "Story":
        """For good, which is a dead letter."""
        await self.happens(self.result(Outcome.FAILED_FINAL, **fields))
        return self

    async def fails_for_now(self) -> "Story":
        await self.happens(self.result(Outcome.FAILED_RETRY))
        return self

    async def cancelled(self) -> "Story":
        await self.happens(CancelRequested("ada"))
        return self

    async def paused(self) -> "Story":
        """PAUSING while a step is in flight."""
        await self.happens(PauseRequested("ada"))
        return self

    async def resumed(self) -> "Story":
        await self.happens(ResumeRequested("ada"))
        return self

    def timer(self, kind: type[TimerType]) -> TimerType:
        return next(timer for timer in armed(self.aggregate) if isinstance(timer, kind))

    async def fires(self, kind: type[TimerType]) -> Decision:
        """Wait until a deadline has passed."""
        timer = self.timer(kind)
        self.clock.now = max(self.clock.now, timer.deadline)
        return await self.happens(timer)

    async def exceeds_its_sla(self) -> "Story":
        deadline = self.job.sla_deadline
        self.clock.now = max(self.clock.now, deadline)
        await self.happens(SlaExceeded(deadline))
        return self


class World:
    """Jobs on one ledger, one a second."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self.ledger = ledger
        self.clock = clock
        self._numbers = itertools.count(1)

    def submission(
        self,
        tenant: str = TENANT,
        *,
        entry: str | None = None,
        content: str = CONTENT,
        mode: Mode = Mode.DEFAULT,
        steps: int = 1,
        policy: StepPolicy | None = None,
        plans: tuple[StepPlan, ...] = (),
        **plan: Any,
    ) -> Submission:
        number, now = next(self._numbers), self.clock.now
        decision = ModeDecision(mode, DecisionSource.REQUEST, "because")
        plan = {"route": route(tenant, "doc-7", decision), "idempotency_hash": content, **plan}

        def build(job_id: str) -> NewJob:
            request = a_plan(steps, policy, job_id=job_id, tenant_id=tenant, **plan)
            request = request._replace(steps=plans or request.steps)
            return first_rows(new_job(request, now), now)

        job_id = new_job_id(now, number.to_bytes(10))
        reservation = Reservation(tenant, entry or f"key:{number}", content, job_id)
        return Submission(reservation, build)

    async def submit(self, submission: Submission, limits: Limits | None = None) -> Created:
        return await self.ledger.create(*submission, limits or Limits())

    async def create(
        self, tenant: str = TENANT, *, limits: Limits | None = None, **fields: Any
    ) -> Story:
        self.clock.advance(seconds=1)
        submission = self.submission(tenant, **fields)
        created = await self.submit(submission, limits)
        assert created.stored is not None, "the entry was there before"
        decision = submission.build(created.job_id).decision
        trail, rows = list(decision.events), list(decision.outbox)
        return Story(self.ledger, self.clock, created.stored, trail, rows)

    async def create_many(self, count: int, tenant: str = TENANT, **fields: Any) -> list[Story]:
        return [await self.create(tenant, **fields) for _ in range(count)]

    async def claim(
        self, size: int = MANY, lease: timedelta = LEASE, kind: OutboxKind = DIRECTIVE
    ) -> list[Claim]:
        return await self.ledger.claim(kind, size, lease)

    async def claim_one(self, kind: OutboxKind = DIRECTIVE) -> Claim:
        (claim,) = await self.claim(kind=kind)
        return claim


def first_rows(aggregate: Aggregate, now: Any) -> NewJob:
    fresh = Fresh(new_lease_id(aggregate.job.job_id.encode()[-16:]))
    decision = decide(aggregate, Submitted(), now, fresh)
    return NewJob(apply(aggregate, decision), decision)


def directive_of(claim: Claim) -> DirectiveRow:
    assert isinstance(claim.row, DirectiveRow)
    return claim.row


def ids(stories: list[Story]) -> list[str]:
    return [story.job_id for story in stories]


async def together(*calls: Awaitable[Any]) -> list[Any]:
    """Answers and errors of calls made at once, in order."""
    async with asyncio.timeout(seconds(60)):
        return await asyncio.gather(*calls, return_exceptions=True)
