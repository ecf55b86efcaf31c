"""Random histories of two processes on one store, compared step by step with the model."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from lucius_contract.audit import DeadLetterKind
from lucius_contract.messages import Outcome
from lucius_contract.routing import Mode
from lucius_contract.states import TERMINAL_JOB_STATES, OutboxState
from lucius_orchestrator.domain.aggregate import Aggregate, Engine, StepPolicy
from lucius_orchestrator.domain.decision import Decision, DirectiveRow, OutboxKind
from lucius_orchestrator.domain.events import (
    AckReceived,
    CancelRequested,
    Event,
    HeartbeatReceived,
    OutboxFailed,
    OutboxSent,
    OutboxSuperseded,
    PauseRequested,
    ResumeRequested,
    SlaExceeded,
    WorkflowLost,
)
from lucius_orchestrator.domain.timers import armed, next_due
from lucius_orchestrator.ports.ledger import (
    Claim,
    Conflict,
    Created,
    Found,
    IdempotencyConflict,
    Ledger,
    Limits,
    Saturated,
    Stored,
)
from tests.ledger.backends import Backend, Clock
from tests.ledger.jobs import MANY, Story, Submission, World
from tests.ledger.model import Holder, Model, Row
from tests.ledger.test_claims_at_birth import Nursery
from tests.ledger.test_dead_letters import a_letter
from tests.ledger.view import on_the_wire, view

T = TypeVar("T")
LEASE = timedelta(seconds=30, microseconds=371)  # no event falls on the end of a lease
PROCESSES = st.integers(0, 1)
TENANTS = st.sampled_from(["acme", "other"])
MODES = st.sampled_from(Mode)
LIMITS = st.sampled_from([Limits(), Limits(), Limits(tenant=2), Limits(2, 3, 2)])
CONTENTS = st.sampled_from(["a" * 64, "a" * 64, "b" * 64])
REPLIES = st.sampled_from(["ack", "heartbeat", "stray", *Outcome, *Outcome])
Opener = Callable[[Clock], Coroutine[Any, Any, Backend]]


class Held(NamedTuple):
    holder: Holder
    claim: Claim


def is_of_a_workflow(aggregate: Aggregate) -> bool:
    return aggregate.job.engine is Engine.TEMPORAL


class Histories(RuleBasedStateMachine):
    open_backend: Opener

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = Clock()
        self.model = Model()
        self.stored: dict[str, list[Stored]] = {}
        self.held: list[Held] = []
        self.claim_numbers = itertools.count(1)

    @initialize()
    def start(self) -> None:
        self.backend = self.run(type(self).open_backend(self.clock))
        self.ledgers: list[Ledger] = [self.backend.ledger, self.run(self.backend.reopen())]
        self.world = World(self.backend.ledger, self.clock)
        self.nursery = Nursery(room=0)
        for kind in OutboxKind:
            self.ledgers[0].adopt(kind, LEASE, self.nursery)

    def teardown(self) -> None:
        if hasattr(self, "backend"):
            self.run(self.backend.stop())
        self.runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def story(self, job_id: str, process: int) -> Story:
        return Story(self.ledgers[process], self.clock, self.stored[job_id][-1])

    def pick(self, data: st.DataObject) -> str:
        """Mostly one that has not ended."""
        jobs, live = sorted(self.stored), sorted(self.model.live)
        return data.draw(st.one_of(st.sampled_from(live or jobs), st.sampled_from(jobs)))

    def happens(self, story: Story, event: Event, held: Held | None = None) -> None:
        decision = story.decide(event)
        self.commit(story, decision, held)

    def commit(self, story: Story, decision: Decision, held: Held | None = None) -> None:
        if not decision.writes:
            return
        self.run(story.commit(decision, held.claim if held else None))
        self.stored[story.job_id].append(story.stored)
        self.model.commit(story.job_id, decision, held.holder if held else None)
        self.keep_what_was_adopted()

    def keep_what_was_adopted(self) -> None:
        holder = (0, next(self.claim_numbers))
        for claim in self.nursery.taken:
            assert claim.kind is not OutboxKind.INVOCATION
            self.keep(holder, claim)
        self.nursery.taken.clear()

    def keep(self, holder: Holder, claim: Claim) -> None:
        row = self.model.rows[claim.row.outbox_id]
        assert row.free(self.clock.now)
        assert (claim.kind, claim.tries) == (row.row.kind, row.tries)
        assert on_the_wire(claim.row) == on_the_wire(row.row)
        row.holder, row.until = holder, self.clock.now + LEASE
        self.held.append(Held(holder, claim))

    @rule(
        process=PROCESSES,
        tenant=TENANTS,
        mode=MODES,
        entry=st.sampled_from(["key:a", "key:b", None]),
        content=CONTENTS,
        limits=LIMITS,
        steps=st.integers(1, 2),
        engine=st.sampled_from(Engine),
    )
    def create(self, process: int, entry: str | None, limits: Limits, **fields: Any) -> None:
        self.clock.advance(seconds=1)
        policy = StepPolicy(max_attempts=2)
        submission = self.world.submission(entry=entry, policy=policy, **fields)
        reservation = submission.reservation
        call = self.ledgers[process].create(*submission, limits)
        known = self.model.entries.get((reservation.tenant_id, reservation.entry))
        if known is None:
            self.create_anew(submission, limits, call)
        elif known.content_hash == reservation.content_hash:
            assert self.run(call) == Created(known.job_id, None)
        else:
            with pytest.raises(IdempotencyConflict) as refusal:
                self.run(call)
            assert refusal.value.job_id == known.job_id

    def create_anew(
        self, submission: Submission, limits: Limits, call: Coroutine[Any, Any, Created]
    ) -> None:
        new = submission.build(submission.reservation.job_id)
        scope = self.model.refusal(new.aggregate.job, limits)
        if scope is not None:
            with pytest.raises(Saturated) as refusal:
                self.run(call)
            assert refusal.value.scope is scope
            return
        created = self.run(call)
        assert created.stored is not None
        self.model.create(submission.reservation, new)
        self.stored[created.job_id] = [created.stored]
        self.keep_what_was_adopted()

    @rule(room=st.sampled_from([0, MANY]))
    def adopt(self, room: int) -> None:
        """The first process begins or ceases to take rows at their birth."""
        self.nursery.room = room

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), process=PROCESSES, reply=REPLIES)
    def reply(self, data: st.DataObject, process: int, reply: str | Outcome) -> None:
        story = self.story(self.pick(data), process)
        self.happens(story, self.event_of(story, reply))

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), process=PROCESSES, replies=st.lists(REPLIES, min_size=2, max_size=4))
    def replies_at_once(
        self, data: st.DataObject, process: int, replies: list[str | Outcome]
    ) -> None:
        story = self.story(self.pick(data), process)
        events = [self.event_of(story, reply) for reply in replies]
        self.commit(story, story.decide(*events))

    def event_of(self, story: Story, reply: str | Outcome) -> Event:
        identity = (*story.identity, story.job.tenant_id)
        match reply:
            case "ack":
                return AckReceived(*identity)
            case "heartbeat":
                return HeartbeatReceived(*identity, {"fraction": 0.25, "note": "ä"})
            case "stray":
                return AckReceived("step_01", 1, "stray", story.job.tenant_id)
            case _:
                return story.result(Outcome(reply))

    @precondition(lambda self: self.stored)
    @rule(
        data=st.data(),
        process=PROCESSES,
        event=st.sampled_from([CancelRequested("ada"), PauseRequested(), ResumeRequested("bob")]),
    )
    def command(self, data: st.DataObject, process: int, event: Event) -> None:
        self.happens(self.story(self.pick(data), process), event)

    @precondition(lambda self: self.model.live)
    @rule(data=st.data(), process=PROCESSES, likely=st.integers(0, 3))
    def deadline(self, data: st.DataObject, process: int, likely: int) -> None:
        story = self.story(data.draw(st.sampled_from(sorted(self.model.live))), process)
        timers = [
            t for t in armed(story.aggregate) if likely == 0 or not isinstance(t, SlaExceeded)
        ]
        if timers:
            timer = data.draw(st.sampled_from(timers))
            self.clock.now = max(self.clock.now, timer.deadline)
            self.happens(story, timer)

    @precondition(lambda self: any(len(versions) > 1 for versions in self.stored.values()))
    @rule(data=st.data(), process=PROCESSES)
    def commit_on_an_older_version(self, data: st.DataObject, process: int) -> None:
        job_id = data.draw(
            st.sampled_from([k for k, v in sorted(self.stored.items()) if len(v) > 1])
        )
        stale = data.draw(st.sampled_from(self.stored[job_id][:-1]))
        story = Story(self.ledgers[process], self.clock, stale)
        decision = story.decide(AckReceived("step_01", 1, "stray", story.job.tenant_id))
        with pytest.raises(Conflict):
            self.run(story.commit(decision))

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), process=PROCESSES)
    def reschedule(self, data: st.DataObject, process: int) -> None:
        job_id = self.pick(data)
        stored = self.run(self.ledgers[process].reschedule(self.stored[job_id][-1]))
        assert stored.timer == next_due(stored.aggregate)
        self.stored[job_id][-1] = stored

    @precondition(lambda self: any(map(is_of_a_workflow, self.model.live.values())))
    @rule(data=st.data(), process=PROCESSES, is_lost=st.booleans())
    def workflow(self, data: st.DataObject, process: int, is_lost: bool) -> None:
        """Opens the next attempt, or was lost and is started again."""
        live = [k for k, v in sorted(self.model.live.items()) if is_of_a_workflow(v)]
        story = self.story(data.draw(st.sampled_from(live)), process)
        due_at = story.aggregate.active.next_attempt_at
        self.clock.now = max(self.clock.now, due_at or self.clock.now)
        self.happens(story, WorkflowLost("CLOSED", "reconciler") if is_lost else story.opening())

    @precondition(lambda self: self.model.directives())
    @rule(data=st.data(), process=PROCESSES)
    def take(self, data: st.DataObject, process: int) -> None:
        """By name, due or not: but no directive of the ledger's own."""
        directives = self.model.directives()
        name = data.draw(st.sampled_from(sorted(directives)))
        is_there = directives[name].row.kind is OutboxKind.INVOCATION
        is_free = is_there and directives[name].free(self.clock.now)
        claim = self.run(self.ledgers[process].take(*name, LEASE))
        assert (claim is not None) == is_free
        if claim is not None:
            self.keep((process, next(self.claim_numbers)), claim)

    @rule(process=PROCESSES, kind=st.sampled_from(OutboxKind))
    def claim(self, process: int, kind: OutboxKind) -> None:
        now, number = self.clock.now, next(self.claim_numbers)
        claims = self.run(self.ledgers[process].claim(kind, MANY, LEASE))
        orphans = [claim for claim in claims if claim.job_id not in self.model.jobs]
        self.run(self.ledgers[process].discard(orphans))
        claims = [claim for claim in claims if claim.job_id in self.model.jobs]
        expected = {
            k: row
            for k, row in self.model.rows.items()
            if row.row.kind is kind is not OutboxKind.INVOCATION and row.claimable(now)
        }
        assert sorted(claim.row.outbox_id for claim in claims) == sorted(expected)
        for claim in claims:
            self.keep((process, number), claim)

    def draw_held(self, data: st.DataObject) -> tuple[Held, Row | None]:
        held = data.draw(st.sampled_from(self.held))
        self.held.remove(held)
        return held, self.model.rows.get(held.claim.row.outbox_id)

    def in_doubt(self, held: Held, row: Row | None) -> bool:
        """The lease is over and nobody else has the row: a ledger may take the claim as lost."""
        over = row is not None and row.until is not None and row.until < self.clock.now
        return over and row is not None and row.is_held_by(held.holder)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), verb=st.sampled_from(["release", "postpone"]))
    def give_back(self, data: st.DataObject, verb: str) -> None:
        held, row = self.draw_held(data)
        if self.in_doubt(held, row):
            return
        ledger = self.ledgers[held.holder[0]]
        if verb == "release":
            self.run(ledger.release([held.claim]))
        else:
            self.run(ledger.postpone([held.claim], "unreachable"))
        if row is not None and row.is_held_by(held.holder):
            if verb == "release":
                row.let_go()
            else:
                row.postpone(self.clock.now)

    @precondition(lambda self: self.held)
    @rule(
        data=st.data(),
        kind=st.sampled_from([OutboxSent, OutboxSent, OutboxFailed, OutboxSuperseded]),
    )
    def publish(self, data: st.DataObject, kind: type[OutboxSent]) -> None:
        """Or tell a workflow: that changes nothing of the job."""
        held, row = self.draw_held(data)
        if row is None or self.in_doubt(held, row):
            return
        if not isinstance(held.claim.row, DirectiveRow):
            self.run(self.ledgers[held.holder[0]].discard([held.claim]))
            if row.is_held_by(held.holder):
                row.state = OutboxState.SENT
            return
        directive = held.claim.row
        event = kind(directive.step_id, directive.attempt_no, directive.lease_id)
        self.happens(self.story(row.job_id, held.holder[0]), event, held)

    @precondition(lambda self: len(self.stored) > len(self.model.live))
    @rule(data=st.data(), process=PROCESSES)
    def remove(self, data: st.DataObject, process: int) -> None:
        job_id = data.draw(st.sampled_from(sorted(self.stored.keys() - self.model.live.keys())))
        self.run(self.ledgers[process].remove(self.stored.pop(job_id)[-1]))
        self.model.remove(job_id)

    @precondition(lambda self: self.model.dead_letters)
    @rule(data=st.data(), process=PROCESSES, by=st.sampled_from(["job_x", "job_y"]))
    def redrive(self, data: st.DataObject, process: int, by: str) -> None:
        letters = [letter.job_id for letter in self.model.dead_letters.values() if letter.job_id]
        job_id = data.draw(st.sampled_from([*letters, "job_nobody"]))
        marked = self.run(self.ledgers[process].mark_redriven(job_id, by))
        assert marked == self.model.redrive(job_id, by)

    @rule(process=PROCESSES, number=st.integers(1, 3))
    def bury(self, process: int, number: int) -> None:
        letter = a_letter(number, last_at=self.clock.now, kind=DeadLetterKind.REPLY)
        assert self.run(self.ledgers[process].bury(letter)) is self.model.bury(letter)

    @rule(seconds=st.sampled_from([1, 31, 140, 700]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @invariant()
    def both_processes_show_what_the_model_says(self) -> None:
        if not hasattr(self, "backend"):
            return
        self.clock.now = self.model.moment_without_doubt(self.clock.now)
        for ledger in self.ledgers:
            self.model.assert_shown(self.run(view(ledger)), self.clock.now)

    @invariant()
    def entries_stand_for_their_jobs(self) -> None:
        for (tenant, entry), (job_id, content) in self.model.entries.items():
            found = self.run(self.backend.ledger.find(tenant, entry))
            assert found == Found(job_id, content)

    @invariant()
    def jobs_that_ended_have_no_timer(self) -> None:
        for job_id, versions in self.stored.items():
            ended = self.model.jobs[job_id].job.state in TERMINAL_JOB_STATES
            assert (versions[-1].timer is None) == ended
