"""OUTBOX rows of jobs that Temporal drives: what a workflow is told, and directives it asks for."""

from datetime import timedelta

import pytest

from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Outcome
from lucius_contract.routing import lane_of
from lucius_contract.states import OutboxState, StepState
from lucius_contract.timeouts import DISPATCH_BACKOFF, JITTER
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.domain.decision import OutboxKind, OutboxRow, WorkflowRow
from lucius_orchestrator.domain.events import (
    CancelRequested,
    OutboxSent,
    OutboxSuperseded,
    WorkflowLost,
)
from lucius_orchestrator.ports.ledger import (
    Claim,
    Conflict,
    DirectiveStatus,
    Ledger,
    Limits,
    Saturated,
)
from tests.ledger.backends import Clock
from tests.ledger.jobs import (
    DIRECTIVE,
    INVOCATION,
    LEASE,
    MANY,
    SIGNAL,
    START,
    TENANT,
    Pair,
    Story,
    World,
    directive_of,
    ids,
    together,
)
from tests.ledger.view import LATER, on_the_wire

FREE = DirectiveStatus(OutboxState.PENDING, claimable=True)
TAKEN = DirectiveStatus(OutboxState.PENDING, claimable=False)
SENT = DirectiveStatus(OutboxState.SENT, claimable=False)
LOOKED_FOR = [DIRECTIVE, START, SIGNAL]
TOLD = [START, SIGNAL]


async def a_job(world: World, steps: int = 1) -> Story:
    return await world.create(engine=Engine.TEMPORAL, steps=steps)


async def an_attempt(world: World, steps: int = 1) -> Story:
    job = await a_job(world, steps)
    await job.opened()
    return job


async def rows_of(world: World, kind: OutboxKind, count: int = 1) -> list[Story]:
    """Jobs with one row each of a kind that workflows are told."""
    jobs = [await an_attempt(world) for _ in range(count)]
    if kind is SIGNAL:
        for job in jobs:
            await job.acked()
    return jobs


async def claimed(world: World) -> dict[OutboxKind, list[str]]:
    return {kind: [c.row.outbox_id for c in await world.claim(kind=kind)] for kind in OutboxKind}


def written(*rows: OutboxRow) -> dict[OutboxKind, list[str]]:
    return {kind: [row.outbox_id for row in rows if row.kind is kind] for kind in OutboxKind}


async def status(ledger: Ledger, job: Story) -> DirectiveStatus | None:
    return await ledger.directive(job.job_id, "step_01", 1)


def jobs_of(claims: list[Claim]) -> list[str]:
    return [claim.job_id for claim in claims]


async def test_a_start_comes_with_the_job_and_nothing_else(world: World) -> None:
    job = await a_job(world)
    (row,) = job.rows
    assert isinstance(row, WorkflowRow)
    assert await claimed(world) == written(row)


async def test_signals_and_invocations_come_with_commits(world: World) -> None:
    job = await an_attempt(world)
    await job.acked()
    start, invocation, signal = job.rows
    assert [row.kind for row in job.rows] == [START, INVOCATION, SIGNAL]
    assert await claimed(world) == written(start, signal)
    claim = await job.taken()
    assert claim is not None
    assert claim.row.outbox_id == invocation.outbox_id


async def test_a_commit_may_bring_rows_of_several_kinds(world: World) -> None:
    job = await a_job(world)
    await world.claim(kind=START)
    decision = job.decide(job.opening(), CancelRequested("ada"))
    await job.commit(decision)
    invocation, signal = decision.outbox
    assert [row.kind for row in decision.outbox] == [INVOCATION, SIGNAL]
    claim = await job.taken()
    assert claim is not None
    assert on_the_wire(claim.row) == on_the_wire(invocation)
    assert await claimed(world) == written(signal)


async def test_a_claim_carries_the_row_as_it_was_decided(world: World) -> None:
    job = await an_attempt(world)
    await job.happens(job.result(Outcome.FAILED_FINAL, error_message="no, ä\0"))
    claims = [await world.claim_one(START), await job.taken(), await world.claim_one(SIGNAL)]
    for claim, row in zip(claims, job.rows, strict=True):
        assert claim is not None
        assert on_the_wire(claim.row) == on_the_wire(row)
        assert (claim.job_id, claim.kind, claim.tries) == (job.job_id, row.kind, 0)
        assert claim.row.kind is row.kind
        assert claim.version in (None, job.stored.version)
        assert claim.stored in (None, job.stored)


async def test_a_workflow_that_was_lost_is_started_by_another_row(world: World) -> None:
    job = await a_job(world)
    await world.ledger.discard(await world.claim(kind=START))
    await job.happens(WorkflowLost("NOT_FOUND"))
    claim = await world.claim_one(START)
    assert claim.row.outbox_id == job.rows[1].outbox_id != job.rows[0].outbox_id
    assert claim.row.body["restarts"]


async def test_the_oldest_rows_of_a_kind_are_claimed_first(world: World) -> None:
    jobs = await rows_of(world, SIGNAL, 5)
    for kind in TOLD:
        assert jobs_of(await world.claim(3, kind=kind)) == ids(jobs[:3])
        assert jobs_of(await world.claim(3, kind=kind)) == ids(jobs[3:])
        assert await world.claim(kind=kind) == []


@pytest.mark.parametrize("kind", TOLD)
async def test_a_claim_holds_a_row_for_the_lease_and_no_longer(
    world: World, kind: OutboxKind
) -> None:
    (job,) = await rows_of(world, kind)
    await world.claim_one(kind)
    world.clock.advance(seconds=LEASE.total_seconds() - 1)
    assert await world.claim(kind=kind) == []
    world.clock.advance(seconds=2)
    assert (await world.claim_one(kind)).job_id == job.job_id


@pytest.mark.parametrize("kind", TOLD)
async def test_what_was_told_is_never_claimed_again(
    ledger: Ledger, world: World, clock: Clock, kind: OutboxKind
) -> None:
    jobs = await rows_of(world, kind, 3)
    claims = await world.claim(kind=kind)
    await ledger.discard(claims[:2])
    await ledger.discard(claims[:2])
    clock.advance(hours=1)
    assert jobs_of(await world.claim(kind=kind)) == [jobs[2].job_id]
    await ledger.repair(MANY)
    await ledger.prune(LATER, MANY)
    assert await world.claim(kind=kind) == []
    for job in jobs:
        assert await ledger.load(job.job_id) == job.stored


@pytest.mark.parametrize("kind", TOLD)
async def test_a_released_row_is_due_at_once_and_was_not_tried(
    ledger: Ledger, world: World, kind: OutboxKind
) -> None:
    jobs = await rows_of(world, kind, 2)
    claims = await world.claim(kind=kind)
    await ledger.release(claims[:1])
    again = await world.claim_one(kind)
    assert (again.job_id, again.tries) == (jobs[0].job_id, 0)


@pytest.mark.parametrize("kind", TOLD)
async def test_a_postponed_row_waits_for_the_dispatch_backoff(
    ledger: Ledger, world: World, clock: Clock, kind: OutboxKind
) -> None:
    await rows_of(world, kind)
    for tries, wait in enumerate([*DISPATCH_BACKOFF, DISPATCH_BACKOFF[-1]]):
        claim = await world.claim_one(kind)
        assert claim.tries == tries
        await ledger.postpone([claim], "no route to the server, ä\0")
        clock.now += wait * (1 - JITTER) - timedelta(seconds=1)
        assert await world.claim(kind=kind) == []
        clock.now += wait * 2 * JITTER + timedelta(seconds=2)


@pytest.mark.parametrize("kind", TOLD)
@pytest.mark.parametrize("verb", ["release", "postpone", "discard"])
async def test_claims_that_were_lost_are_passed_over(
    ledger: Ledger, world: World, clock: Clock, kind: OutboxKind, verb: str
) -> None:
    jobs = await rows_of(world, kind, 3)
    lost = await world.claim(1, kind=kind)
    clock.advance(seconds=31)
    (taken,) = await world.claim(1, kind=kind)
    held = await world.claim(kind=kind)
    claims = [*lost, *held]
    await (ledger.postpone(claims, "away") if verb == "postpone" else getattr(ledger, verb)(claims))
    assert jobs_of(await world.claim(kind=kind)) == (ids(jobs[1:]) if verb == "release" else [])
    await ledger.release([taken])
    assert (await world.claim_one(kind)).job_id == jobs[0].job_id


async def test_verbs_take_claims_of_several_kinds(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    job = await an_attempt(world)
    await job.acked()
    await world.create()
    claims = [claim for kind in LOOKED_FOR for claim in await world.claim(kind=kind)]
    invocation = await job.taken()
    assert invocation is not None
    await ledger.release([*claims, invocation])
    claims = [claim for kind in LOOKED_FOR for claim in await world.claim(kind=kind)]
    assert len(claims) == 3
    await ledger.postpone(claims, "away")
    clock.advance(minutes=1)
    claims = [claim for kind in LOOKED_FOR for claim in await world.claim(kind=kind)]
    assert [claim.tries for claim in claims] == [1, 1, 1]
    invocation = await job.taken()
    assert invocation is not None
    await ledger.discard([*claims, invocation])
    clock.advance(hours=1)
    assert await claimed(world) == written()
    assert await job.taken() is None


async def test_an_invocation_is_taken_by_one_for_the_lease(
    ledgers: Pair, world: World, clock: Clock
) -> None:
    job = await an_attempt(world)
    assert await status(ledgers[1], job) == FREE
    assert await job.taken() is not None
    for ledger in ledgers:
        assert await job.taken(ledger) is None
        assert await status(ledger, job) == TAKEN
    clock.advance(seconds=LEASE.total_seconds() - 1)
    assert await job.taken(ledgers[1]) is None
    clock.advance(seconds=2)
    assert await status(ledgers[0], job) == FREE
    again = await job.taken(ledgers[1])
    assert again is not None
    assert again.tries == 0
    assert await job.taken() is None


async def test_of_many_takers_one_holds_the_invocation(ledgers: Pair, world: World) -> None:
    for first in (0, 1):
        job = await an_attempt(world)
        takers = [job.taken(ledgers[(first + n) % 2]) for n in range(8)]
        assert sum(claim is not None for claim in await together(*takers)) == 1


async def test_what_is_not_an_invocation_cannot_be_taken(ledger: Ledger, world: World) -> None:
    directive, queued, job = await world.create(), await a_job(world), await an_attempt(world)
    assert await directive.taken() is None
    assert await queued.taken() is None
    for step_id, attempt_no in (("step_01", 2), ("step_02", 1), ("step_01", 0)):
        assert await ledger.take(job.job_id, step_id, attempt_no, LEASE) is None
    assert await ledger.take("job_nobody", "step_01", 1, LEASE) is None
    assert (await world.claim_one()).job_id == directive.job_id


async def test_an_invocation_that_was_sent_cannot_be_taken(
    ledgers: Pair, world: World, clock: Clock
) -> None:
    job = await an_attempt(world)
    claim = await job.taken()
    assert claim is not None
    await job.sent(claim)
    assert job.aggregate.active.state is StepState.AWAITING_ACK
    clock.advance(hours=1)
    for ledger in ledgers:
        assert await status(ledger, job) == SENT
        assert await job.taken(ledger) is None


async def test_an_invocation_is_taken_and_marked_by_another_process(
    ledgers: Pair, world: World
) -> None:
    job = await an_attempt(world)
    claim = await job.taken(ledgers[1])
    assert claim is not None
    other = Story(ledgers[1], job.clock, job.stored)
    await other.sent(claim)
    assert await status(ledgers[0], job) == SENT
    assert await job.taken() is None


async def test_an_invocation_can_be_taken_before_it_is_due_again(
    ledger: Ledger, world: World
) -> None:
    """Its workflow decides when, and does not wait for a dispatcher's pauses."""
    job = await an_attempt(world)
    for tries in range(3):
        claim = await job.taken()
        assert claim is not None
        assert claim.tries == tries
        await ledger.postpone([claim], "no route to the bus")
        assert await status(ledger, job) == TAKEN
    claim = await job.taken()
    assert claim is not None
    await ledger.release([claim])
    assert await status(ledger, job) == FREE
    again = await job.taken()
    assert again is not None
    assert again.tries == 3


async def test_an_invocation_that_the_bus_refused_has_failed(ledger: Ledger, world: World) -> None:
    job = await an_attempt(world)
    claim = await job.taken()
    assert claim is not None
    await job.unpublishable(claim, ErrorCode.DISPATCH_FAILED)
    assert await status(ledger, job) == DirectiveStatus(OutboxState.FAILED_FINAL, claimable=False)
    assert await job.taken() is None


async def test_an_invocation_that_nobody_wants_any_more_is_superseded(
    ledger: Ledger, world: World
) -> None:
    job = await an_attempt(world)
    await job.acked()
    claim = await job.taken()
    assert claim is not None
    await job.happens(OutboxSuperseded(*job.identity), claim)
    assert await status(ledger, job) == DirectiveStatus(OutboxState.SUPERSEDED, claimable=False)
    assert await job.taken() is None


async def test_a_commit_whose_claim_was_lost_goes_through_without_the_mark(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    job = await an_attempt(world)
    lost = await job.taken()
    clock.advance(seconds=31)
    held = await job.taken()
    assert lost is not None
    assert held is not None
    await job.sent(lost)
    assert await ledger.load(job.job_id) == job.stored
    assert await status(ledger, job) == TAKEN
    await job.happens(OutboxSent(*job.identity), held)
    assert await status(ledger, job) == SENT


async def test_a_commit_that_conflicts_leaves_the_claim_and_brings_no_signal(
    ledger: Ledger, world: World
) -> None:
    job = await an_attempt(world)
    await world.claim(kind=START)
    claim = await job.taken()
    assert claim is not None
    stale, acked = job.stored, job.decide(job.result())
    assert [row.kind for row in acked.outbox] == [SIGNAL]
    await job.sent(claim)
    with pytest.raises(Conflict):
        await ledger.commit(stale, acked)
    assert await claimed(world) == written()


async def test_a_creation_that_is_refused_brings_no_start(world: World) -> None:
    first = await world.create(engine=Engine.TEMPORAL, entry="key:a")
    with pytest.raises(Saturated):
        await world.create(engine=Engine.TEMPORAL, limits=Limits(tenant=1))
    again = await world.submit(world.submission(engine=Engine.TEMPORAL, entry="key:a"))
    assert again.job_id == first.job_id
    assert jobs_of(await world.claim(kind=START)) == [first.job_id]


async def test_each_attempt_has_an_invocation_of_its_own(world: World) -> None:
    job = await an_attempt(world, steps=2)
    first = await job.taken()
    await job.fails_for_now()
    job.clock.advance(hours=1)
    await job.opened()
    second = await job.taken()
    await job.happens(job.result())
    await job.opened()
    third = await job.taken()
    claims = [claim for claim in (first, second, third) if claim is not None]
    taken = [(row.step_id, row.attempt_no) for row in map(directive_of, claims)]
    assert taken == [("step_01", 1), ("step_01", 2), ("step_02", 1)]


async def test_the_backlog_counts_invocations_and_nothing_that_workflows_are_told(
    ledger: Ledger, world: World
) -> None:
    job, other = await an_attempt(world), await an_attempt(world)
    await other.acked()
    assert await ledger.backlog() == {lane_of(TENANT): 2}
    await world.create()
    assert await ledger.backlog() == {lane_of(TENANT): 3}
    claim = await job.taken()
    assert claim is not None
    assert await ledger.backlog() == {lane_of(TENANT): 3}
    await job.sent(claim)
    assert await ledger.backlog() == {lane_of(TENANT): 2}


async def test_nothing_of_a_removed_job_is_sent(ledger: Ledger, world: World) -> None:
    """Either a row is gone, or who claims it finds no job and ends it."""
    job = await an_attempt(world)
    await job.exceeds_its_sla()
    await ledger.remove(job.stored)
    assert await job.taken() is None
    assert await ledger.backlog() == {}
    for kind in LOOKED_FOR:
        claims = await world.claim(kind=kind)
        assert {claim.job_id for claim in claims} <= {job.job_id}
        await ledger.discard(claims)
    world.clock.advance(hours=1)
    assert await claimed(world) == written()


async def test_pruning_takes_away_nothing_that_is_still_to_be_sent(
    ledger: Ledger, world: World
) -> None:
    job, told = await an_attempt(world), await an_attempt(world)
    await told.acked()
    for kind in TOLD:
        claims = await world.claim(kind=kind)
        await ledger.discard([claim for claim in claims if claim.job_id == told.job_id])
        await ledger.release([claim for claim in claims if claim.job_id == job.job_id])
    claim = await told.taken()
    assert claim is not None
    await told.happens(OutboxSent(*told.identity), claim)
    while await ledger.prune(LATER, 2):
        pass
    assert await ledger.load(told.job_id) == told.stored
    assert await claimed(world) == written(job.rows[0])
    assert await job.taken() is not None


async def test_many_claimers_share_the_rows_and_no_two_hold_one(
    ledgers: Pair, world: World
) -> None:
    jobs = [await world.create(tenant, engine=Engine.TEMPORAL) for tenant in "abc" * 6]
    shares = await together(*(ledgers[n % 2].claim(START, 4, LEASE) for n in range(8)))
    found = [claim.job_id for share in shares for claim in share]
    found += jobs_of(await world.claim(kind=START))
    assert sorted(found) == sorted(ids(jobs))
