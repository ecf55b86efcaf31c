"""`adopt`: each promise about rows that are claimed at birth, also where `claim` finds them all."""

import asyncio
from collections.abc import Sequence

import pytest

from lucius_contract.messages import Outcome
from lucius_contract.states import OutboxState
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.domain.decision import OutboxKind, OutboxRow
from lucius_orchestrator.domain.events import RetryDue
from lucius_orchestrator.ports.ledger import Claim, Conflict, DirectiveStatus, Limits, Saturated
from tests.ledger.backends import Backend, Clock
from tests.ledger.jobs import (
    DIRECTIVE,
    INVOCATION,
    LEASE,
    MANY,
    SIGNAL,
    START,
    Pair,
    Story,
    World,
    ids,
    together,
)
from tests.ledger.view import on_the_wire
from tests.runner.deadlines import DEADLINE


class Nursery:
    """An adopter that keeps what it is given."""

    def __init__(self, room: int = MANY) -> None:
        self.room = room
        self.taken: list[Claim] = []

    def wants(self, row: OutboxRow) -> bool:  # noqa: ARG002 - of any queue
        return len(self.taken) < self.room

    def take(self, claims: Sequence[Claim]) -> None:
        self.taken += claims


async def held(world: World, nursery: Nursery) -> list[Claim]:
    """All rows, adopted or claimed; a row that is both would be there twice."""
    return [*nursery.taken, *await world.claim()]


async def test_every_row_is_adopted_or_claimed_and_never_both(world: World) -> None:
    nursery = Nursery(room=3)
    world.ledger.adopt(DIRECTIVE, LEASE, nursery)
    jobs = await world.create_many(5)
    claims = await held(world, nursery)
    assert sorted(claim.job_id for claim in claims) == sorted(ids(jobs))
    assert await world.claim() == []


async def test_rows_of_many_commits_at_once_are_adopted_or_claimed_once(
    ledgers: Pair, world: World
) -> None:
    nurseries = Nursery(room=7), Nursery()
    for ledger, nursery in zip(ledgers, nurseries, strict=True):
        ledger.adopt(DIRECTIVE, LEASE, nursery)
    jobs = await world.create_many(10, steps=2)
    decisions = [job.decide(job.result()) for job in jobs]
    submissions = [world.submission() for _ in range(10)]
    answers = await together(
        *(ledgers[n % 2].create(*each, Limits()) for n, each in enumerate(submissions)),
        *(
            ledgers[n % 2].commit(job.stored, decision)
            for n, (job, decision) in enumerate(zip(jobs, decisions, strict=True))
        ),
    )
    assert not [answer for answer in answers if isinstance(answer, BaseException)]
    claims = [*nurseries[0].taken, *nurseries[1].taken, *await world.claim()]
    rows = [claim.row.outbox_id for claim in claims]
    assert len(rows) == len(set(rows)) == 30


async def test_an_adopted_row_is_a_claim_as_any_other(world: World) -> None:
    nursery = Nursery()
    world.ledger.adopt(DIRECTIVE, LEASE, nursery)
    job = await world.create()
    (claim,) = await held(world, nursery)
    assert (claim.job_id, claim.kind, claim.tries) == (job.job_id, DIRECTIVE, 0)
    assert claim.version in (None, job.stored.version)
    assert on_the_wire(claim.row) == on_the_wire(job.directives[0])
    taken = DirectiveStatus(OutboxState.PENDING, claimable=False)
    assert await world.ledger.directive(job.job_id, "step_01", 1) == taken
    await job.sent(claim)
    sent = DirectiveStatus(OutboxState.SENT, claimable=False)
    assert await world.ledger.directive(job.job_id, "step_01", 1) == sent


async def test_an_adopted_row_can_be_given_back(world: World, clock: Clock) -> None:
    nursery = Nursery()
    world.ledger.adopt(DIRECTIVE, LEASE, nursery)
    await world.create_many(2)
    released, postponed = await held(world, nursery)
    await world.ledger.release([released])
    await world.ledger.postpone([postponed], "unreachable")
    again = await world.claim_one()
    assert (again.job_id, again.tries) == (released.job_id, 0)
    await world.ledger.discard([again])
    clock.advance(seconds=34)
    later = await world.claim_one()
    assert (later.job_id, later.tries) == (postponed.job_id, 1)


async def test_an_adopted_row_is_held_for_its_lease(
    backend: Backend, world: World, clock: Clock
) -> None:
    """And no longer, should the process die."""
    nursery = Nursery()
    world.ledger.adopt(DIRECTIVE, LEASE, nursery)
    await world.create()
    (old,) = await held(world, nursery)
    await backend.ledger.close()
    other = await backend.reopen()
    clock.advance(seconds=29)
    assert await other.claim(DIRECTIVE, MANY, LEASE) == []
    clock.advance(seconds=2)
    (new,) = await other.claim(DIRECTIVE, MANY, LEASE)
    assert (new.row.outbox_id, new.tries) == (old.row.outbox_id, 0)


async def test_rows_of_later_attempts_are_adopted_too(world: World) -> None:
    nursery = Nursery()
    world.ledger.adopt(DIRECTIVE, LEASE, nursery)
    job = await world.create(steps=2)
    await job.happens(job.result(Outcome.FAILED_RETRY))
    world.clock.now = job.timer(RetryDue).deadline
    await job.happens(job.timer(RetryDue))
    await job.happens(job.result())
    written = {row.outbox_id for row in job.directives}
    assert len(written) == 3
    assert {claim.row.outbox_id for claim in await held(world, nursery)} == written


async def test_who_has_no_room_is_given_nothing(world: World) -> None:
    nursery = Nursery(room=0)
    world.ledger.adopt(DIRECTIVE, LEASE, nursery)
    job = await world.create()
    assert nursery.taken == []
    assert (await world.claim_one()).job_id == job.job_id


async def test_who_has_ended_the_adoption_is_given_nothing(world: World) -> None:
    nursery = Nursery()
    end = world.ledger.adopt(DIRECTIVE, LEASE, nursery)
    end()
    end()
    job = await world.create()
    assert nursery.taken == []
    assert (await world.claim_one()).job_id == job.job_id


@pytest.mark.parametrize("kind", sorted(set(OutboxKind) - {DIRECTIVE}))
async def test_rows_of_another_kind_are_not_adopted(world: World, kind: OutboxKind) -> None:
    nursery = Nursery()
    world.ledger.adopt(kind, LEASE, nursery)
    job = await world.create()
    assert nursery.taken == []
    assert (await world.claim_one()).job_id == job.job_id


async def test_rows_of_another_process_are_not_adopted(ledgers: Pair, world: World) -> None:
    nursery = Nursery()
    ledgers[0].adopt(DIRECTIVE, LEASE, nursery)
    created = await ledgers[1].create(*world.submission(), Limits())
    assert nursery.taken == []
    assert (await world.claim_one()).job_id == created.job_id


async def test_a_commit_that_fails_brings_nothing_to_adopt(world: World) -> None:
    job = await world.create(steps=2, entry="key:a")
    await world.claim()
    stale, advances = job.stored, job.decide(job.result())
    assert advances.outbox
    await job.acked()
    nursery = Nursery()
    world.ledger.adopt(DIRECTIVE, LEASE, nursery)
    with pytest.raises(Conflict):
        await world.ledger.commit(stale, advances)
    with pytest.raises(Saturated):
        await world.create(limits=Limits(tenant=1))
    assert (await world.submit(world.submission(entry="key:a"))).stored is None
    assert nursery.taken == []
    assert await ready_rows(world) == [job.job_id]


async def ready_rows(world: World) -> list[str]:
    """What can be claimed once every lease is over."""
    world.clock.advance(seconds=31)
    return [claim.job_id for claim in await world.claim()]


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8])
async def test_a_row_whose_writer_was_cancelled_is_found_after_the_lease_at_the_latest(
    world: World, turns: int
) -> None:
    world.ledger.adopt(DIRECTIVE, LEASE, Nursery())
    task = asyncio.create_task(world.submit(world.submission(entry="key:a")))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await together(task)
    created = await world.submit(world.submission(entry="key:a"))
    assert await ready_rows(world) == [created.job_id]


async def test_the_ledger_says_when_it_can_take_more(ledgers: Pair, world: World) -> None:
    jobs = await world.create_many(10)
    decisions = [job.decide(job.result()) for job in jobs]
    async with asyncio.timeout(DEADLINE):
        await ledgers[0].ready()
        commits = [
            asyncio.create_task(ledgers[n % 2].commit(job.stored, decision))
            for n, (job, decision) in enumerate(zip(jobs, decisions, strict=True))
        ]
        await asyncio.gather(*(ledgers[n % 2].ready() for n in range(10)))
        await asyncio.gather(*commits)
        await ledgers[0].ready()
    assert (await ledgers[1].in_flight()).total == 0


async def a_workflow(world: World) -> Story:
    """With a row of every kind that its engine has."""
    job = await world.create(engine=Engine.TEMPORAL)
    await job.opened()
    await job.acked()
    return job


async def test_each_kind_has_an_adopter_of_its_own(backend: Backend, world: World) -> None:
    nurseries = {kind: Nursery() for kind in OutboxKind}
    for kind, nursery in nurseries.items():
        world.ledger.adopt(kind, LEASE, nursery)
    directive, workflow = await world.create(), await a_workflow(world)
    for kind, nursery in nurseries.items():
        assert {claim.kind for claim in nursery.taken} <= {kind}
        claims = [*nursery.taken, *await world.claim(kind=kind)]
        rows = [row for row in [*directive.rows, *workflow.rows] if row.kind is kind]
        expected = [] if kind is INVOCATION else [row.outbox_id for row in rows]
        assert [claim.row.outbox_id for claim in claims] == expected
    assert await workflow.taken(await backend.reopen()) is not None


async def test_an_adopted_row_of_a_workflow_is_a_claim_as_any_other(world: World) -> None:
    nurseries = {kind: Nursery() for kind in (START, SIGNAL)}
    for kind, nursery in nurseries.items():
        world.ledger.adopt(kind, LEASE, nursery)
    jobs = [await a_workflow(world) for _ in range(3)]
    for kind, nursery in nurseries.items():
        told, released, postponed = [*nursery.taken, *await world.claim(kind=kind)]
        for claim, job in zip((told, released, postponed), jobs, strict=True):
            (row,) = [row for row in job.rows if row.kind is kind]
            assert on_the_wire(claim.row) == on_the_wire(row)
            assert (claim.job_id, claim.tries) == (job.job_id, 0)
        await world.ledger.discard([told])
        await world.ledger.release([released])
        await world.ledger.postpone([postponed], "away")
        again = await world.claim_one(kind)
        assert (again.job_id, again.tries) == (released.job_id, 0)
        await world.ledger.discard([again])
    world.clock.advance(seconds=34)
    for kind in nurseries:
        later = await world.claim_one(kind)
        assert (later.job_id, later.tries) == (jobs[2].job_id, 1)


async def test_an_adopted_start_is_held_for_its_lease(
    backend: Backend, world: World, clock: Clock
) -> None:
    nursery = Nursery()
    world.ledger.adopt(START, LEASE, nursery)
    await world.create(engine=Engine.TEMPORAL)
    (old,) = [*nursery.taken, *await world.claim(kind=START)]
    await backend.ledger.close()
    other = await backend.reopen()
    clock.advance(seconds=29)
    assert await other.claim(START, MANY, LEASE) == []
    clock.advance(seconds=2)
    (new,) = await other.claim(START, MANY, LEASE)
    assert (new.row.outbox_id, new.tries) == (old.row.outbox_id, 0)


async def test_the_end_of_one_adoption_leaves_the_others(world: World) -> None:
    starts, signals = Nursery(), Nursery()
    end = world.ledger.adopt(START, LEASE, starts)
    world.ledger.adopt(SIGNAL, LEASE, signals)
    end()
    job = await a_workflow(world)
    assert starts.taken == []
    assert (await world.claim_one(START)).job_id == job.job_id
    claims = [*signals.taken, *await world.claim(kind=SIGNAL)]
    assert [claim.job_id for claim in claims] == [job.job_id]


async def test_a_later_adopter_of_a_kind_takes_the_place_of_the_earlier(world: World) -> None:
    earlier, later = Nursery(), Nursery()
    end = world.ledger.adopt(START, LEASE, earlier)
    world.ledger.adopt(START, LEASE, later)
    end()
    job = await world.create(engine=Engine.TEMPORAL)
    claims = [*later.taken, *await world.claim(kind=START)]
    assert earlier.taken == []
    assert [claim.job_id for claim in claims] == [job.job_id]


async def test_a_row_whose_adopter_left_meanwhile_is_found(world: World) -> None:
    """After the lease at the latest."""

    class Leaver(Nursery):
        def wants(self, row: OutboxRow) -> bool:  # noqa: ARG002 - of any queue
            end()
            return True

    leaver = Leaver()
    end = world.ledger.adopt(START, LEASE, leaver)
    job = await world.create(engine=Engine.TEMPORAL)
    assert leaver.taken == []
    world.clock.advance(seconds=31)
    assert (await world.claim_one(START)).job_id == job.job_id


@pytest.fixture(params=["memory", "sqlite", "azure_tables"])
def adopting(request: pytest.FixtureRequest) -> Backend:
    """Where rows are adopted. PostgreSQL tells all processes, a moment later."""
    backend: Backend = request.getfixturevalue(f"{request.param}_backend")
    return backend


@pytest.mark.parametrize("adopted", [True, False])
async def test_whoever_looks_for_rows_is_woken_for_those_that_were_not_adopted(
    adopting: Backend, adopted: bool
) -> None:
    """And not for an INVOCATION, which nobody looks for."""
    world, woken = World(adopting.ledger, adopting.clock), list[None]()
    if adopted:
        for kind in (START, SIGNAL):
            world.ledger.adopt(kind, LEASE, Nursery())
    listening = asyncio.create_task(world.ledger.listen(lambda: woken.append(None)))
    await asyncio.sleep(0)
    job = await world.create(engine=Engine.TEMPORAL)
    assert len(woken) == (not adopted)
    await job.opened()
    assert len(woken) == (not adopted)
    await job.acked()
    assert len(woken) == 2 * (not adopted)
    listening.cancel()
    await asyncio.wait([listening])
