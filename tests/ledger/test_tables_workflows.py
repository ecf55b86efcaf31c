"""Rows for workflows on tables: processes that die while they send, and what a row costs."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from lucius_orchestrator.adapters.ledger.tables import directives, indexes
from lucius_orchestrator.adapters.ledger.tables.ledger import TableLedger
from lucius_orchestrator.adapters.ledger.tables.store import Call, Tables
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.domain.decision import Decision, OutboxKind
from lucius_orchestrator.domain.events import AckReceived, CancelRequested, OutboxSent
from lucius_orchestrator.ports.ledger import Ledger, Limits
from tests.ledger.backends import Clock
from tests.ledger.jobs import LEASE, MANY, SIGNAL, START, TENANT, Story, Submission, World
from tests.ledger.tables_soundness import never_too_little, places
from tests.ledger.tables_stage import Scene, Setting, Store, and_nothing, crashes, resendings
from tests.ledger.test_claims_at_birth import Nursery
from tests.ledger.view import LATER

TOLD = [START, SIGNAL]


async def a_job(world: World, **fields: Any) -> Story:
    return await world.create(engine=Engine.TEMPORAL, **fields)


async def an_attempt(world: World) -> Story:
    job = await a_job(world)
    await job.opened()
    return job


async def anything(_: Tables) -> None:
    """Who has told it is free to delete."""


def a_telling(kind: OutboxKind) -> Setting[Scene]:
    async def setting() -> Scene:
        store = Store()
        for _ in range(2):
            await (await an_attempt(store.world)).acked()

        async def tell(ledger: Ledger) -> None:
            await ledger.discard(await ledger.claim(kind, MANY, LEASE))

        return Scene(store, tell)

    return setting


@pytest.mark.parametrize("kind", TOLD)
async def test_who_dies_while_it_tells_leaves_the_rows_to_others(kind: OutboxKind) -> None:
    left = []
    for scene in await crashes(a_telling(kind), anything):
        store = scene.store
        store.clock.advance(seconds=31)
        claims = await store.world.claim(kind=kind)
        left.append(len(claims))
        await store.ledger.discard(claims)
        store.clock.advance(seconds=31)
        assert await store.world.claim(kind=kind) == []
        assert await store.ledger.repair(MANY) == []
    assert left == [2] * (len(left) - 1) + [0]


@pytest.mark.parametrize("kind", TOLD)
async def test_who_tells_and_hears_no_answer_has_told(kind: OutboxKind) -> None:
    """But for a claim whose answer was lost: that row waits until the lease is over."""
    for scene, _ in await resendings(a_telling(kind), and_nothing):
        assert await scene.store.world.claim(kind=kind) == []


async def test_a_row_that_another_has_taken_over_does_not_keep_the_rest_of_its_lane() -> None:
    """By who does not know it yet, since its clock is slow."""
    store, slow = Store(), Clock()
    jobs = [await a_job(store.world) for _ in range(2)]
    slow.now = store.clock.now
    late = TableLedger(store.tables.shared(), clock=slow)
    claims = await late.claim(START, MANY, LEASE)
    store.clock.advance(seconds=31)
    (taken,) = await store.world.claim(1, kind=START)
    await late.discard(claims)
    await store.ledger.release([taken])
    assert (await store.world.claim_one(START)).job_id == taken.job_id == jobs[0].job_id


async def a_removal() -> Scene:
    """Of a job with a START that nobody was told of, an INVOCATION that nobody asked for, and a
    SIGNAL of its end."""
    store = Store()
    job = await (await an_attempt(store.world)).exceeds_its_sla()
    await job.happens(CancelRequested("ada"))
    return Scene(store, lambda ledger: ledger.remove(job.stored))


async def test_a_removal_leaves_nothing_that_could_be_sent_for_ever() -> None:
    for scene in await crashes(a_removal, never_too_little):
        store = scene.store
        for stored in await store.jobs():
            await store.ledger.remove(stored)
        await store.ledger.ended(LATER, MANY)
        for kind in OutboxKind:
            await store.ledger.discard(await store.world.claim(kind=kind))
        await store.mended()
        assert not await places(store.tables, indexes.PENDING)


async def test_a_row_that_leads_to_a_tombstone_goes_when_it_is_met() -> None:
    scene = await a_removal()
    await scene.act(scene.store.ledger)
    assert len(await places(scene.store.tables, indexes.PENDING)) == 1
    assert await scene.store.world.claim(kind=START) == []
    assert not await places(scene.store.tables, indexes.PENDING)


async def test_a_start_that_announces_a_job_to_come_is_neither_claimed_nor_deleted() -> None:
    store = Store()
    submission = store.world.submission(engine=Engine.TEMPORAL)

    async def before(call: Call) -> None:
        """Another looks for rows when the job is about to be written."""
        if call.table == "jobs" and call.verb == "batch":
            assert await store.world.claim(kind=START) == []

    await store.process(before).create(*submission, Limits())
    assert len(await store.world.claim(kind=START)) == 1


Verb = Callable[[TableLedger], Awaitable[object]]


async def create(submission: Submission, ledger: Ledger) -> None:
    await ledger.create(*submission, Limits())


async def commit(job: Story, decision: Decision, ledger: Ledger) -> None:
    job.stored = await ledger.commit(job.stored, decision)


async def cost(store: Store, verb: Verb, prepare: Verb | None = None) -> int:
    """Of a verb, in calls, in a process that has done something before."""
    calls: list[Call] = []

    async def count(call: Call) -> None:
        calls.append(call)

    ledger = store.process(count)
    if prepare is not None:
        await prepare(ledger)
    calls.clear()
    await verb(ledger)
    return len(calls)


async def test_a_start_costs_as_much_as_a_directive() -> None:
    costs = []
    for engine in Engine:
        store = Store()
        submission = store.world.submission(engine=engine)
        costs.append(await cost(store, partial(create, submission)))
    assert costs[0] == costs[1]


async def test_a_commit_costs_one_call_more_for_each_row_that_it_brings() -> None:
    store = Store()
    directive, new, opened, both = [
        await store.world.create(),
        await a_job(store.world),
        await an_attempt(store.world),
        await a_job(store.world),
    ]
    opening = both.opening()
    ack = AckReceived(opening.step_id, opening.attempt_no, opening.lease_id, TENANT)
    for job, events, rows in (
        (directive, [AckReceived(*directive.identity, TENANT)], 0),
        (new, [new.opening()], 1),
        (opened, [AckReceived(*opened.identity, TENANT)], 1),
        (both, [opening, ack], 2),
    ):
        decision = job.decide(*events)
        assert len(decision.outbox) == rows
        assert await cost(store, partial(commit, job, decision)) == 1 + rows


async def test_an_adopted_row_is_told_in_one_call() -> None:
    store, nursery = Store(), Nursery()
    submission = store.world.submission(engine=Engine.TEMPORAL)

    async def adopt(ledger: Ledger) -> None:
        ledger.adopt(START, LEASE, nursery)
        await create(submission, ledger)

    assert await cost(store, lambda ledger: ledger.discard(nursery.taken), adopt) == 1
    assert len(nursery.taken) == 1


async def test_rows_of_a_lane_are_ended_together() -> None:
    store, nursery = Store(), Nursery()
    submissions = [store.world.submission(engine=Engine.TEMPORAL) for _ in range(101)]

    async def adopt(ledger: Ledger) -> None:
        ledger.adopt(START, LEASE, nursery)
        for submission in submissions:
            await create(submission, ledger)

    assert await cost(store, lambda ledger: ledger.discard(nursery.taken), adopt) == 2
    store.clock.advance(seconds=31)
    assert await store.world.claim(kind=START) == []


async def test_an_invocation_is_taken_in_two_calls_by_who_has_committed_it() -> None:
    store = Store()
    job = await a_job(store.world)
    opens = job.decide(job.opening())
    assert await cost(store, job.taken, partial(commit, job, opens)) == 2
    assert await cost(store, (await an_attempt(store.world)).taken) == 3


async def test_what_is_remembered_of_an_invocation_is_not_believed() -> None:
    """Another process may have taken it since, and sent it."""
    store = Store()
    job = await an_attempt(store.world)
    other = store.process()
    claim = await job.taken(other)
    assert claim is not None
    assert await job.taken() is None
    await Story(other, store.clock, job.stored).happens(OutboxSent(*job.identity), claim)
    assert await job.taken() is None


async def test_only_the_newest_invocations_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(directives, "REMEMBERED", 2)
    store = Store()
    jobs = [await a_job(store.world) for _ in range(3)]
    decisions = [job.decide(job.opening()) for job in jobs]

    async def commit_all(ledger: Ledger) -> None:
        for job, opens in zip(jobs, decisions, strict=True):
            await commit(job, opens, ledger)

    async def take_all(ledger: Ledger) -> None:
        assert all([await job.taken(ledger) for job in jobs])

    assert await cost(store, take_all, commit_all) == 2 * len(jobs) + 1
