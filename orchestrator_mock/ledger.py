"""The mock's jobs, moved by the orchestrator's own `decide`: a verdict of the mock is the verdict
that the orchestrator gives."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.ids import JOB_RANDOM_BYTES, LEASE_BYTES, new_job_id, new_lease_id
from lucius_contract.messages import Reply
from lucius_contract.routing import DecisionSource, Mode, ModeDecision, route
from lucius_contract.states import StepState
from lucius_orchestrator.domain.aggregate import Aggregate, JsonObject, Step, evolve
from lucius_orchestrator.domain.creation import JobPlan, StepPlan, new_job
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import Decision, DirectiveRow, ReplyAnswer, apply
from lucius_orchestrator.domain.draft import Fresh
from lucius_orchestrator.domain.events import (
    AckTimedOut,
    CancelRequested,
    Event,
    LeaseExpired,
    OutboxSent,
    RetryDue,
    Submitted,
    from_reply,
)
from orchestrator_mock.orders import Order

_MODE = ModeDecision(Mode.DEFAULT, DecisionSource.REQUEST, "the script's order")
_PROTOCOL = "mock"


class Refs(NamedTuple):
    input: JsonObject
    workspace: JsonObject
    output: JsonObject


class MockLedger:
    """Jobs of one step each, in memory. The time and the ids come from outside."""

    def __init__(self, clock: Callable[[], datetime], entropy: Callable[[int], bytes]) -> None:
        self._clock = clock
        self._entropy = entropy
        self._jobs: dict[str, Aggregate] = {}

    def new_id(self) -> str:
        return new_job_id(self._clock(), self._entropy(JOB_RANDOM_BYTES))

    def create(self, job_id: str, order: Order, refs: Refs) -> DirectiveRow:
        """A job whose first attempt is about to go out. `ContractError`: it is too large."""
        now = self._clock()
        step = StepPlan(order.step_type, order.service, order.payload, order.policy())
        plan = JobPlan(
            job_id=job_id,
            tenant_id=order.tenant_id,
            request_type=order.step_type,
            protocol_id=_PROTOCOL,
            protocol_version="1",
            steps=(step,),
            route=route(order.tenant_id, None, _MODE),
            input_ref=refs.input,
            output_ref=refs.output,
            workspace_ref=refs.workspace,
            idempotency_hash=job_id,
            correlation_id=order.correlation_id or f"mock-{self._entropy(6).hex()}",
            traceparent=order.traceparent or self._traceparent(),
        )
        self._jobs[job_id] = new_job(plan, now)
        return _row(self._decide(job_id, Submitted()))

    def sent(self, job_id: str, step_id: str, attempt_no: int, lease_id: str) -> None:
        """The directive of this attempt is out; said again it means nothing."""
        self._decide(job_id, OutboxSent(step_id, attempt_no, lease_id))

    def step(self, job_id: str) -> Step:
        return self.job(job_id).active

    def job(self, job_id: str) -> Aggregate:
        found = self._jobs.get(job_id)
        if found is None:
            raise ContractError(ErrorCode.JOB_NOT_FOUND, f"there is no job {job_id}")
        return found

    def judge(self, reply: Reply) -> ReplyAnswer:
        """`ContractError` for a reply that names what is not there."""
        self.job(reply.job_id)
        decision = self._decide(reply.job_id, from_reply(reply))
        if decision.reply is None:
            assert decision.refusal is not None, "what is not answered is refused"
            raise ContractError(decision.refusal.code, decision.refusal.reason)
        return decision.reply

    def cancel(self, job_id: str) -> None:
        decision = self._decide(job_id, CancelRequested("the script"))
        if decision.refusal is not None:
            raise ContractError(decision.refusal.code, decision.refusal.reason)

    def expire(self, job_id: str) -> None:
        """The attempt ends now, as if nobody had answered in time: its ACK timeout or its lease."""
        step, now = self.step(job_id), self._clock()
        identity = step.step_id, step.attempt_no, step.lease_id or ""
        if step.state is StepState.IN_PROGRESS:
            self._set(job_id, lease_expires_at=now)
            self._decide(job_id, LeaseExpired(*identity, deadline=now))
        elif step.state is StepState.AWAITING_ACK:
            self._set(job_id, ack_deadline=now)
            self._decide(job_id, AckTimedOut(*identity, deadline=now))
        elif step.state is not StepState.FAILED_RETRY:
            raise ContractError(
                ErrorCode.STATE_CONFLICT, f"a step in {step.state} has no attempt that could expire"
            )

    def retry(self, job_id: str) -> DirectiveRow:
        """The next attempt, at once. An attempt that is open is expired first."""
        if self.step(job_id).state is not StepState.FAILED_RETRY:
            self.expire(job_id)
        if self.step(job_id).state is not StepState.FAILED_RETRY:
            raise _no_further_attempt()
        now = self._clock()
        self._set(job_id, next_attempt_at=now)
        step = self.step(job_id)
        due = RetryDue(step.step_id, step.attempt_no, step.lease_id or "", deadline=now)
        return _row(self._decide(job_id, due))

    def _decide(self, job_id: str, event: Event) -> Decision:
        aggregate = self._jobs[job_id]
        fresh = Fresh(new_lease_id(self._entropy(LEASE_BYTES)))
        decision = decide(aggregate, event, self._clock(), fresh)
        self._jobs[job_id] = apply(aggregate, decision)
        return decision

    def _set(self, job_id: str, **fields: datetime) -> None:
        job, (step,) = self._jobs[job_id]
        self._jobs[job_id] = Aggregate(job, (evolve(step, fields),))

    def _traceparent(self) -> str:
        return f"00-{self._entropy(16).hex()}-{self._entropy(8).hex()}-01"


def _row(decision: Decision) -> DirectiveRow:
    row = next((row for row in decision.outbox if isinstance(row, DirectiveRow)), None)
    if row is None:
        raise _no_further_attempt()
    return row


def _no_further_attempt() -> ContractError:
    return ContractError(ErrorCode.STATE_CONFLICT, "the job allows no further attempt")
