"""TURN rows: attempts of jobs that Temporal drives, which wait in the queues of directives."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lucius_contract.routing import Mode
from lucius_contract.states import OutboxState
from lucius_orchestrator.domain.aggregate import Engine, Turn
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.domain.events import TurnGranted
from lucius_orchestrator.ports.ledger import Backlog, Claim, DirectiveStatus, Ledger
from tests.ledger.backends import Backend, Clock
from tests.ledger.jobs import MANY, Pair, Story, World, ids
from tests.ledger.test_queues import OCR, STRANGE, Turns, claim, plans_for, queue, queued
from tests.ledger.view import LATER, on_the_wire

ROOM = {OCR: MANY}


async def waiting(world: World, tenant: str = "a", mode: Mode = Mode.DEFAULT) -> Story:
    """A job whose first attempt waits for its turn."""
    job = await world.create(tenant, engine=Engine.TEMPORAL, plans=plans_for(OCR), mode=mode)
    await job.happens(replace(job.opening(), admitted=False))
    return job


async def granted(job: Story, held: Claim) -> None:
    await job.happens(TurnGranted("step_01", 1), held)


async def test_a_step_says_whether_it_waits_or_has_its_turn(
    ledger: Ledger, world: World, backend: Backend
) -> None:
    job = await waiting(world)
    (held,) = await claim(ledger, Turns(ROOM))
    for turn in (Turn.WAITING, Turn.GRANTED):
        assert job.aggregate.active.turn is turn
        stored = await (await backend.reopen()).load(job.job_id)
        assert stored is not None
        assert stored.aggregate == job.aggregate
        await granted(job, held)


async def test_turns_and_directives_stand_in_the_same_queues(ledger: Ledger, world: World) -> None:
    jobs = []
    for _ in range(3):
        jobs += await queued(world, "a")
        jobs.append(await waiting(world))
    await waiting(world, "b")
    await waiting(world, "a", Mode.BURST)
    claims = await claim(ledger, Turns({OCR: 4}, {queue("a"): 4}))
    assert [held.job_id for held in claims] == ids(jobs[:4])
    kinds = [OutboxKind.DIRECTIVE, OutboxKind.TURN]
    assert [held.kind for held in claims] == [held.row.kind for held in claims] == kinds * 2


@pytest.mark.parametrize("tenant", STRANGE)
async def test_a_claim_of_a_turn_carries_it_as_it_was_decided(
    ledger: Ledger, world: World, tenant: str
) -> None:
    job = await waiting(world, tenant)
    (held,) = await claim(ledger, Turns(ROOM))
    assert on_the_wire(held.row) == on_the_wire(job.rows[-1])
    assert held.row.outbox_id == f"{job.job_id}.step_01.1.turn"
    assert (held.job_id, held.tries) == (job.job_id, 0)


async def test_a_turn_is_claimed_in_turn_and_not_by_its_kind_or_the_name_of_its_attempt(
    ledger: Ledger, world: World
) -> None:
    job = await waiting(world)
    assert await world.claim(kind=OutboxKind.TURN) == []
    assert await world.claim(kind=OutboxKind.INVOCATION) == []
    assert await ledger.take(job.job_id, "step_01", 1, timedelta(seconds=30)) is None
    assert await ledger.directive(job.job_id, "step_01", 1) is None
    assert len(await claim(ledger, Turns(ROOM))) == 1


async def test_a_turn_that_was_granted_is_not_claimed_again(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    job = await waiting(world)
    (held,) = await claim(ledger, Turns(ROOM))
    assert await claim(ledger, Turns(ROOM)) == []
    await granted(job, held)
    clock.advance(hours=1)
    assert await claim(ledger, Turns(ROOM)) == []
    await job.opened()
    assert job.aggregate.active.turn is None
    assert await ledger.directive(job.job_id, "step_01", 1) == DirectiveStatus(
        OutboxState.PENDING, claimable=True
    )
    assert await job.taken() is not None


async def test_a_dispatcher_that_dies_leaves_the_turn_to_another(
    ledgers: Pair, world: World, clock: Clock
) -> None:
    one, other = ledgers
    await waiting(world)
    (lost,) = await claim(one, Turns(ROOM))
    assert await claim(other, Turns(ROOM)) == []
    clock.advance(seconds=31)
    (found,) = await claim(other, Turns({}))
    assert found.row == lost.row


async def test_a_turn_that_is_postponed_is_due_later(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    await waiting(world)
    await ledger.postpone(await claim(ledger, Turns(ROOM)), "the job is paused")
    assert await claim(ledger, Turns(ROOM)) == []
    clock.advance(seconds=40)
    assert len(await claim(ledger, Turns(ROOM))) == 1


async def test_a_turn_that_is_released_or_discarded(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    await waiting(world)
    await ledger.release(await claim(ledger, Turns(ROOM)))
    (held,) = await claim(ledger, Turns(ROOM))
    assert held.tries == 0
    await ledger.discard([held])
    clock.advance(hours=1)
    assert await claim(ledger, Turns(ROOM)) == []
    assert await ledger.backlogs() == []


async def test_turns_count_in_backlogs(ledger: Ledger, world: World) -> None:
    job = await waiting(world)
    lane = job.job.route.lane
    assert await ledger.backlogs() == [Backlog(OCR, lane, 1, job.rows[-1].created_at)]
    assert await ledger.backlog() == {lane: 1}
    (held,) = await claim(ledger, Turns(ROOM))
    await granted(job, held)
    assert await ledger.backlogs() == []
    assert await ledger.backlog() == {}


async def test_a_turn_that_nobody_claimed_goes_with_its_job(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    job, other = await waiting(world), await waiting(world)
    await job.exceeds_its_sla()
    await ledger.remove(job.stored)
    assert [backlog.waiting for backlog in await ledger.backlogs()] == [1]
    while await ledger.prune(LATER, 2):
        pass
    clock.advance(hours=1)
    assert [held.job_id for held in await claim(ledger, Turns(ROOM))] == [other.job_id]


async def test_repair_leaves_turns_alone(ledger: Ledger, world: World, clock: Clock) -> None:
    job = await waiting(world)
    clock.advance(hours=1)
    assert await ledger.repair(MANY) == []
    (held,) = await claim(ledger, Turns(ROOM))
    await granted(job, held)
    clock.advance(hours=1)
    assert await ledger.repair(MANY) == []
