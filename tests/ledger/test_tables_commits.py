"""Writers that die, stall or race between any two storage calls: the job before, or after."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Outcome
from lucius_orchestrator.adapters.ledger.tables.store import Tables
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.domain.decision import Decision
from lucius_orchestrator.domain.events import (
    AckReceived,
    CancelRequested,
    OutboxFailed,
    OutboxSent,
    PauseRequested,
    WorkflowLost,
)
from lucius_orchestrator.ports.ledger import Claim, Conflict, Ledger, Stored
from tests.ledger.jobs import DIRECTIVE, LEASE, MANY, TENANT, Story, World, directive_of
from tests.ledger.tables_soundness import Rows, never_too_little_while_jobs_stay
from tests.ledger.tables_stage import (
    Act,
    Meanwhile,
    NewStore,
    Scene,
    Setting,
    Store,
    and_nothing,
    and_repair,
    check_whole,
    crashes,
    in_memory,
    resendings,
    stall,
    stalls,
)
from tests.ledger.test_dead_letters import UNREADABLE
from tests.ledger.view import letters


@dataclass(frozen=True)
class Change:
    """A commit that is about to be made; `claims`: of a directive that its process holds."""

    prepare: Callable[[World], Awaitable[Story]]
    decide: Callable[[Story], Decision]
    claims: bool = False

    def act(self, job: Story, decision: Decision) -> Act:
        before = job.stored

        async def act(ledger: Ledger) -> Stored:
            claim = await claimed(ledger, job) if self.claims else None
            return await ledger.commit(before, decision, claim)

        return act


@dataclass(frozen=True)
class Committing(Scene):
    job: Story
    decision: Decision


async def a_new_job(world: World) -> Story:
    return await world.create(steps=2)


async def a_last_step(world: World) -> Story:
    job = await world.create()
    await job.acked()
    return job


async def a_last_step_to_be_told(world: World) -> Story:
    job = await world.create(callback_urls=("https://a.example", "https://b.example"))
    await job.acked()
    return job


async def a_long_lease(world: World) -> Story:
    job = await world.create()
    await job.acked()
    job.stored = await world.ledger.reschedule(job.stored)
    return job


async def a_pausing_job(world: World) -> Story:
    return await (await world.create(steps=2)).paused()


async def a_job_of_a_workflow(world: World) -> Story:
    return await world.create(engine=Engine.TEMPORAL)


async def an_attempt_of_a_workflow(world: World) -> Story:
    job = await a_job_of_a_workflow(world)
    await job.opened()
    return job


CHANGES = {
    "the next directive": Change(a_new_job, lambda job: job.decide(job.result())),
    "the end": Change(a_last_step, lambda job: job.decide(job.result())),
    "the end that is told": Change(a_last_step_to_be_told, lambda job: job.decide(job.result())),
    "a failure for good": Change(
        a_last_step, lambda job: job.decide(job.result(Outcome.FAILED_FINAL))
    ),
    "a directive that was sent": Change(
        a_new_job, lambda job: job.decide(OutboxSent(*job.identity)), claims=True
    ),
    "a directive that can never be sent": Change(
        a_new_job,
        lambda job: job.decide(OutboxFailed(*job.identity, ErrorCode.DIRECTIVE_TOO_LARGE, "big")),
        claims=True,
    ),
    "an earlier deadline": Change(
        a_long_lease, lambda job: job.decide(job.result(Outcome.FAILED_RETRY))
    ),
    "a pause": Change(a_new_job, lambda job: job.decide(PauseRequested("ada"))),
    "another state to wait in": Change(
        a_pausing_job, lambda job: job.decide(CancelRequested("ada"))
    ),
    "an ACK": Change(a_new_job, lambda job: job.decide(AckReceived(*job.identity, TENANT))),
    "an invocation": Change(a_job_of_a_workflow, lambda job: job.decide(job.opening())),
    "an invocation and a signal": Change(
        a_job_of_a_workflow, lambda job: job.decide(job.opening(), CancelRequested("ada"))
    ),
    "an invocation that was sent": Change(
        an_attempt_of_a_workflow, lambda job: job.decide(OutboxSent(*job.identity)), claims=True
    ),
    "a signal": Change(
        an_attempt_of_a_workflow, lambda job: job.decide(AckReceived(*job.identity, TENANT))
    ),
    "another start": Change(a_job_of_a_workflow, lambda job: job.decide(WorkflowLost("CLOSED"))),
    "the end that a workflow is told": Change(
        an_attempt_of_a_workflow, lambda job: job.decide(job.result())
    ),
}


def committing(name: str, new_store: NewStore = in_memory) -> Setting[Committing]:
    async def setting() -> Committing:
        store = await new_store()
        job = await CHANGES[name].prepare(store.world)
        await store.world.create("bystander")
        decision = CHANGES[name].decide(job)
        return Committing(store, CHANGES[name].act(job, decision), job, decision)

    return setting


async def claimed(ledger: Ledger, job: Story) -> Claim | None:
    if job.job.engine is Engine.TEMPORAL:
        return await job.taken(ledger)
    claims = await ledger.claim(DIRECTIVE, MANY, LEASE)
    return next((claim for claim in claims if claim.job_id == job.job_id), None)


@pytest.mark.parametrize("name", CHANGES)
async def test_a_writer_that_dies_leaves_the_job_before_or_after_its_commit(name: str) -> None:
    outcomes = []
    for scene in await crashes(committing(name)):
        store, stored = scene.store, await scene.store.the_job()
        done = stored.aggregate != scene.job.aggregate
        outcomes.append(done)
        await check_whole(store, stored)
        await store.mended()
        await check_whole(store, stored)
        if not done:
            await store.ledger.commit(await store.the_job(), scene.decision)
            await store.mended()
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {True, False}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_row_that_was_committed_can_be_sent_whoever_died(name: str) -> None:
    for scene in await crashes(committing(name)):
        store = scene.store
        sendable = await store.sendable()
        assert sendable == (await Rows.read(store.tables)).unsent
        if (await store.the_job()).aggregate != scene.job.aggregate:
            assert {row.outbox_id for row in scene.decision.outbox} <= sendable


@pytest.mark.parametrize("name", CHANGES)
async def test_a_writer_that_stalled_while_others_repaired_conflicts_or_has_succeeded(
    name: str,
) -> None:
    for scene, answer in await stalls(committing(name), and_repair):
        store, stored = scene.store, await scene.store.the_job()
        if isinstance(answer, Stored):
            assert stored == answer
            assert stored.aggregate != scene.job.aggregate
        else:
            assert isinstance(answer, Conflict)
            assert stored.aggregate == scene.job.aggregate
        await check_whole(store, stored)
        await store.mended()


async def test_a_repair_may_come_in_time_to_make_a_stalled_writer_conflict() -> None:
    ends = await stalls(committing("the next directive"), and_repair)
    assert {type(answer) for _, answer in ends} == {Stored, Conflict}


async def and_reply(store: Store) -> None:
    story = Story(store.ledger, store.clock, await store.the_job())
    await story.happens(AckReceived("step_01", 9, "stray", TENANT))


async def and_end(store: Store) -> None:
    story = Story(store.ledger, store.clock, await store.the_job())
    if not story.ended:
        await story.cancelled()
    if not story.ended:
        await story.happens(story.result())
    assert story.ended


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("meanwhile", [and_reply, and_end])
async def test_a_writer_that_was_overtaken_conflicts_and_leaves_nothing(
    name: str, meanwhile: Meanwhile
) -> None:
    answers = set()
    for scene, answer in await stalls(committing(name), meanwhile):
        store, stored = scene.store, await scene.store.the_job()
        answers.add(type(answer))
        strays = sum(step.stray_replies for step in stored.aggregate.steps)
        assert strays == (meanwhile is and_reply)
        events = set(await store.ledger.events(scene.job.job_id, limit=MANY))
        assert scene.decision.events
        assert (set(scene.decision.events) <= events) == isinstance(answer, Stored)
        await check_whole(store, stored)
        await store.mended()
    assert Conflict in answers <= {Conflict, Stored}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_writer_whose_answers_are_lost_has_made_its_commit(name: str) -> None:
    for scene, answer in await resendings(committing(name), and_nothing):
        assert isinstance(answer, Stored)
        assert await scene.store.the_job() == answer
        await check_whole(scene.store, answer)
        await scene.store.mended()


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("meanwhile", [and_repair, and_reply, and_end])
async def test_a_commit_that_was_made_and_overtaken_before_its_answer_is_not_undone(
    name: str, meanwhile: Meanwhile
) -> None:
    """Its writer may take it for a conflict, and decides again on what is there."""
    for scene, answer in await resendings(committing(name), meanwhile):
        assert isinstance(answer, Stored | Conflict)
        stored = await scene.store.the_job()
        await check_whole(scene.store, stored)
        await never_too_little_while_jobs_stay(scene.store.tables)
        await scene.store.mended()


async def a_reschedule() -> Scene:
    store = Store()
    job = await store.world.create()
    await job.acked()
    return Scene(store, lambda ledger: ledger.reschedule(job.stored))


async def test_a_reschedule_that_dies_leaves_a_timer_in_time() -> None:
    for scene in await crashes(a_reschedule):
        await check_whole(scene.store, await scene.store.the_job())
        await scene.store.mended()


@pytest.mark.parametrize("meanwhile", [and_repair, and_reply, and_end])
async def test_a_reschedule_that_stalled_leaves_a_timer_in_time(meanwhile: Meanwhile) -> None:
    for scene, answer in await stalls(a_reschedule, meanwhile):
        assert isinstance(answer, Stored | Conflict)
        await check_whole(scene.store, await scene.store.the_job())
        await scene.store.mended()


async def a_claim() -> Scene:
    store = Store()
    await store.world.create()
    return Scene(store, lambda ledger: ledger.claim(DIRECTIVE, MANY, LEASE))


async def test_a_claimer_that_dies_leaves_the_row_to_the_next() -> None:
    for scene in await crashes(a_claim):
        scene.store.clock.advance(seconds=31)
        assert len(await scene.store.world.claim()) == 1


async def test_of_two_claimers_one_holds_the_row() -> None:
    async def and_claim(store: Store) -> None:
        assert len(await store.world.claim()) == 1

    for _, answer in await stalls(a_claim, and_claim):
        assert answer == []


async def test_a_row_of_a_commit_that_is_to_come_is_neither_claimed_nor_deleted() -> None:
    scene = await committing("the next directive")()
    writer = await stall(scene, 1)
    claimed = await scene.store.world.claim()
    assert {directive_of(claim).step_id for claim in claimed} == {"step_01"}
    assert isinstance(await writer.end(), Stored)
    (claim,) = await scene.store.world.claim()
    assert directive_of(claim).step_id == "step_02"


async def test_a_letter_whose_burial_died_is_there_after_the_next_try() -> None:
    async def a_burial() -> Scene:
        return Scene(Store(), lambda ledger: ledger.bury(UNREADABLE))

    async def anything(_: Tables) -> None:
        """Who buries a letter and dies owes another try."""

    for scene in await crashes(a_burial, anything):
        await scene.store.ledger.bury(UNREADABLE)
        assert await letters(scene.store.ledger) == [UNREADABLE]
        await scene.store.mended()
