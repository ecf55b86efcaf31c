"""`LedgerEngine`: the use cases."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import NamedTuple

from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.ids import JOB_RANDOM_BYTES, LEASE_BYTES, new_job_id, new_lease_id
from lucius_contract.messages import Reply
from lucius_contract.states import JobState, StepState
from lucius_orchestrator.domain.aggregate import Aggregate, Engine, Step
from lucius_orchestrator.domain.creation import new_job
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import Decision, ReplyAnswer, apply, merged_decision
from lucius_orchestrator.domain.draft import Fresh
from lucius_orchestrator.domain.events import (
    AckReceived,
    CancelRequested,
    Command,
    Event,
    HeartbeatReceived,
    OutboxSent,
    PauseRequested,
    ReplyEvent,
    ResumeRequested,
    Submitted,
    from_reply,
)
from lucius_orchestrator.domain.timers import Due
from lucius_orchestrator.engine.backlogs import PendingLimit
from lucius_orchestrator.engine.holding import HoldingCreation, is_held
from lucius_orchestrator.engine.mailboxes import Letter, Mailboxes
from lucius_orchestrator.engine.recent import RecentJobs
from lucius_orchestrator.engine.requests import JobRequest, Redrive
from lucius_orchestrator.engine.telemetry import Telemetry
from lucius_orchestrator.engine.traffic import Traffic
from lucius_orchestrator.ports.inputs import Inputs
from lucius_orchestrator.ports.ledger import (
    Claim,
    Conflict,
    IdempotencyConflict,
    Ledger,
    Limits,
    NewJob,
    Reservation,
    Saturated,
    Scope,
    Stored,
    TooLarge,
)

_SATURATED = {
    Scope.TENANT: ErrorCode.TENANT_SATURATED,
    Scope.GLOBAL: ErrorCode.GLOBAL_SATURATED,
    Scope.MODE: ErrorCode.LANE_SATURATED,
}


_USE_NOTHING_NEW = (OutboxSent, AckReceived, HeartbeatReceived)
"""Events that need no lease id and no jitter: what was fetched for one serves for the next."""


@dataclass(frozen=True, slots=True)
class World:
    """What the engine knows of the world besides the ledger: the time, and chance."""

    clock: Callable[[], datetime]
    entropy: Callable[[int], bytes]
    chance: Callable[[], float]
    """Somewhere in [0, 1)."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """`max_conflicts` decisions are made anew before an event is given back to its sender;
    `recent_bytes` bounds what is remembered of jobs, 0 remembers nothing."""

    max_conflicts: int = 20
    recent_bytes: int = 64 * 1024 * 1024


class Submission(NamedTuple):
    """`duplicate`: the request was submitted before, and this is the job that it made then."""

    job_id: str
    state: JobState
    duplicate: bool


class Applied(NamedTuple):
    """What the events of a letter meant, and the job after they were committed."""

    decisions: list[Decision]
    stored: Stored


class LedgerEngine:
    """Refusals are `ContractError` with the contract's code; `LedgerUnavailable` passes through."""

    def __init__(
        self,
        ledger: Ledger,
        world: World,
        telemetry: Telemetry | None = None,
        settings: EngineSettings | None = None,
        inputs: Inputs | None = None,
        traffic: Traffic | None = None,
        pending_limit: PendingLimit | None = None,
    ) -> None:
        self.ledger = ledger
        self.world = world
        self.telemetry = telemetry or Telemetry()
        self.traffic = traffic or Traffic(world.clock)
        self.inputs = inputs
        """None: nothing is held for jobs."""
        self.pending_limit = pending_limit
        """None: as many directives may wait as come."""
        self.dispatches = False
        """Whether this process sends directives: a dispatcher that is made for it says so."""
        self._settings = settings or EngineSettings()
        self._recent = RecentJobs(self._settings.recent_bytes)
        self._mailboxes = Mailboxes(self._apply_all, ledger.ready)
        self._spare = self._fresh()

    async def submit(self, request: JobRequest) -> Submission:
        """Create the job, or find the one that this request made before."""
        now = self.world.clock()
        job_id = new_job_id(now, self.world.entropy(JOB_RANDOM_BYTES))
        fresh, self._spare = self._spare, self._fresh()

        def build(job_id: str) -> NewJob:
            aggregate = new_job(request.job_plan(job_id), now)
            decision = decide(aggregate, Submitted(), now, fresh)
            return NewJob(apply(aggregate, decision), decision)

        proposed = build(job_id)  # before anything is reserved: what is too large is refused here
        await self._check_pending(request, proposed.aggregate.active)
        create = partial(
            self._create,
            Reservation(request.tenant_id, request.entry, request.content_hash, job_id),
            lambda chosen: proposed if chosen == job_id else build(chosen),
            request,
        )
        planned = proposed.aggregate.job
        if self.inputs is not None and is_held(planned):
            holding = HoldingCreation(self.inputs, self.ledger)
            created = await holding.create(planned, request, create)
        else:
            created = await create()
        if created is None:
            return await self._earlier(request)
        self.remember(created)
        self.telemetry.submitted()
        job = created.aggregate.job
        return Submission(job.job_id, job.state, duplicate=False)

    async def reply(self, reply: Reply) -> ReplyAnswer:
        """Judge an ACK, RESULT or HEARTBEAT and apply it if it counts."""
        (decision,) = await self.judge(reply.job_id, [from_reply(reply)])
        if decision.reply is None:
            raise _refused(decision)
        return decision.reply

    async def judge(self, job_id: str, replies: Sequence[ReplyEvent]) -> list[Decision]:
        """Judge replies of one job, in their order; a refusal stands in its decision."""
        return (await self._mailboxes.send(job_id, replies)).decisions

    async def cancel(self, job_id: str, by: str | None = None) -> Aggregate:
        return await self._command(job_id, CancelRequested(by))

    async def pause(self, job_id: str, by: str | None = None) -> Aggregate:
        return await self._command(job_id, PauseRequested(by))

    async def resume(self, job_id: str, by: str | None = None) -> Aggregate:
        return await self._command(job_id, ResumeRequested(by))

    async def redrive(
        self,
        job_id: str,
        limits: Limits,
        idempotency_key: str | None = None,
        engine: Engine = Engine.LEDGER,
    ) -> Submission:
        """A new job from one that failed, which stays as it is but for its dead letters: they name
        the new one. Asked twice without a key, the answer is the same new job."""
        failed = (await self.read(job_id)).aggregate
        submission = await self.submit(Redrive(failed, limits, idempotency_key, engine))
        await self.ledger.mark_redriven(job_id, submission.job_id)
        return submission

    async def read(self, job_id: str) -> Stored:
        """The job as the ledger has it now."""
        stored = await self.ledger.load(job_id)
        if stored is None:
            self._recent.drop(job_id)
            raise ContractError(ErrorCode.JOB_NOT_FOUND, f"there is no job {job_id}")
        return stored

    def remember(self, stored: Stored) -> None:
        """The job as it was just read or committed. One whose directive another process will send
        is not worth it: the next event will find it changed."""
        if self.dispatches or stored.aggregate.active.state is not StepState.DISPATCHING:
            self._recent.put(stored)
        else:
            self._recent.drop(stored.aggregate.job.job_id)

    def recall(self, job_id: str) -> Stored | None:
        """The job as this process has last seen it; another may have moved it since."""
        return self._recent.get(job_id)

    async def apply(
        self, job_id: str, event: Event, claim: Claim | None = None
    ) -> tuple[Decision, Stored]:
        """Decide what the event means and commit that, again for as long as others are faster.

        Events of a job that are waiting at the same time are decided one after the other and
        committed together.
        """
        applied = await self._mailboxes.send(job_id, [event], claim)
        return applied.decisions[0], applied.stored

    async def reschedule(self, stored: Stored, due: Due | None) -> None:
        """Say when the job is to be looked at again, when what its timer promised did not happen.
        A job that moved meanwhile has set its own timer."""
        job_id = stored.aggregate.job.job_id
        self._recent.drop(job_id)
        try:
            await self.ledger.reschedule(stored, due)
        except Conflict:
            self.telemetry.conflict()

    async def _apply_all(self, job_id: str, letters: Sequence[Letter[Applied]]) -> list[Applied]:
        for _ in range(self._settings.max_conflicts):
            try:
                return await self._apply_once(job_id, letters)
            except Conflict as conflict:
                self._recent.drop(job_id)
                if conflict.found is not None:
                    self.remember(conflict.found)
                self.telemetry.conflict()
        raise ContractError(ErrorCode.UNAVAILABLE, f"{job_id} changes too fast; try again")

    async def _apply_once(self, job_id: str, letters: Sequence[Letter[Applied]]) -> list[Applied]:
        events = letters[0].events
        if len(letters) > 1:
            events = [event for letter in letters for event in letter.events]
        recent = self._recent.get(job_id)
        stored = recent or await self.read(job_id)
        decisions = self._decide_all(stored.aggregate, events)
        merged = merged_decision(decisions)
        if recent is not None and not merged.writes:
            # An answer that no commit checks must come from what is stored, not from memory.
            stored = await self.read(job_id)
            decisions = self._decide_all(stored.aggregate, events)
            merged = merged_decision(decisions)
        if merged.writes:
            claim = next((letter.claim for letter in letters if letter.claim), None)
            stored = await self.ledger.commit(stored, merged, claim)
            for event, decision in zip(events, decisions, strict=True):
                if decision.writes:
                    self.telemetry.committed(type(event).__name__, decision, stored.aggregate)
                    self.traffic.committed(event, decision, stored.aggregate)
        self.remember(stored)
        if len(letters) == 1:
            return [Applied(decisions, stored)]
        left = iter(decisions)
        return [Applied(list(islice(left, len(letter.events))), stored) for letter in letters]

    def _decide_all(self, aggregate: Aggregate, events: Sequence[Event]) -> list[Decision]:
        """Each event on top of what the one before it has changed."""
        now = self.world.clock()
        decisions: list[Decision] = []
        for event in events:
            if decisions:
                aggregate = apply(aggregate, decisions[-1])
            decisions.append(self._decide(aggregate, event, now))
        return decisions

    def _decide(self, aggregate: Aggregate, event: Event, now: datetime) -> Decision:
        decision = decide(aggregate, event, now, self._spare)
        if not isinstance(event, _USE_NOTHING_NEW) or decision.outbox:
            self._spare = self._fresh()
        return decision

    def _fresh(self) -> Fresh:
        lease_id = new_lease_id(self.world.entropy(LEASE_BYTES))
        return Fresh(lease_id, jitter=2 * self.world.chance() - 1)

    async def _check_pending(self, request: JobRequest, first: Step) -> None:
        """Raise `LaneSaturated` where no further directive may wait, unless the request made a job
        before. Only then is the entry looked up: an ordinary request costs nothing more."""
        refusal = self.pending_limit and self.pending_limit.refusal(first.service, first.route.lane)
        if refusal and await self.ledger.find(request.tenant_id, request.entry) is None:
            raise refusal

    async def _create(
        self, reservation: Reservation, build: Callable[[str], NewJob], request: JobRequest
    ) -> Stored | None:
        try:
            created = await self.ledger.create(reservation, build, request.limits)
        except IdempotencyConflict as conflict:
            raise ContractError(ErrorCode.IDEMPOTENCY_CONFLICT, str(conflict)) from conflict
        except Saturated as full:
            raise ContractError(_SATURATED[full.scope], str(full)) from full
        except TooLarge as error:
            raise ContractError(ErrorCode.TOO_LARGE, str(error)) from error
        return created.stored

    async def _earlier(self, request: JobRequest) -> Submission:
        found = await self.ledger.find(request.tenant_id, request.entry)
        stored = await self.ledger.load(found.job_id) if found else None
        if stored is None:
            raise ContractError(ErrorCode.UNAVAILABLE, "the earlier job was removed; try again")
        job = stored.aggregate.job
        return Submission(job.job_id, job.state, duplicate=True)

    async def _command(self, job_id: str, command: Command) -> Aggregate:
        decision, stored = await self.apply(job_id, command)
        if decision.refusal is not None:
            raise _refused(decision)
        return stored.aggregate


def _refused(decision: Decision) -> ContractError:
    assert decision.refusal is not None, "what is not answered is refused"
    return ContractError(decision.refusal.code, decision.refusal.reason)
