"""OUTBOX rows: claimed by one dispatcher at a time, and ended with a commit."""

from datetime import timedelta

import pytest

from lucius_contract.errors import ErrorCode
from lucius_contract.routing import lane_of
from lucius_contract.states import TERMINAL_OUTBOX_STATES, OutboxState, StepState
from lucius_contract.timeouts import DISPATCH_BACKOFF, JITTER
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.domain.events import OutboxSent, OutboxSuperseded, RetryDue
from lucius_orchestrator.ports.ledger import Claim, Conflict, DirectiveStatus, Ledger
from tests.ledger.backends import Clock
from tests.ledger.jobs import (
    DIRECTIVE,
    LEASE,
    MANY,
    TENANT,
    Pair,
    Story,
    World,
    directive_of,
    ids,
    together,
)
from tests.ledger.view import on_the_wire

FREE = DirectiveStatus(OutboxState.PENDING, claimable=True)
TAKEN = DirectiveStatus(OutboxState.PENDING, claimable=False)
SENT = DirectiveStatus(OutboxState.SENT, claimable=False)
FAILED = DirectiveStatus(OutboxState.FAILED_FINAL, claimable=False)
LANE = lane_of(TENANT)
SUPERSEDED = DirectiveStatus(OutboxState.SUPERSEDED, claimable=False)


async def first_directive(ledger: Ledger, job: Story) -> DirectiveStatus | None:
    return await ledger.directive(job.job_id, "step_01", 1)


def jobs_of(claims: list[Claim]) -> list[str]:
    return [claim.job_id for claim in claims]


async def test_the_oldest_rows_are_claimed_first(ledger: Ledger, world: World) -> None:
    jobs = await world.create_many(5)
    assert jobs_of(await world.claim(2)) == ids(jobs[:2])
    assert jobs_of(await world.claim(2)) == ids(jobs[2:4])
    assert jobs_of(await world.claim(2)) == ids(jobs[4:])
    assert await world.claim(2) == []


async def test_the_backlog_counts_what_is_not_published_yet(ledger: Ledger, world: World) -> None:
    assert await ledger.backlog() == {}
    jobs = await world.create_many(3)
    assert await ledger.backlog() == {LANE: 3}
    claim, *_ = await world.claim()
    assert await ledger.backlog() == {LANE: 3}
    await jobs[0].sent(claim)
    assert await ledger.backlog() == {LANE: 2}


async def test_a_claim_carries_the_row_as_it_was_decided(ledger: Ledger, world: World) -> None:
    job = await world.create(steps=2)
    await world.claim()
    artifacts = ({"name": "ä", "uri": "az://x", "size": 2},)
    await job.happens(job.result(artifacts=artifacts, artifacts_bytes=50))
    claim = await world.claim_one()
    assert (claim.job_id, claim.kind, claim.tries) == (job.job_id, DIRECTIVE, 0)
    assert on_the_wire(claim.row) == on_the_wire(job.directives[1])
    assert on_the_wire(claim.row).body["prior_artifacts"] == {"OCR": [artifacts[0]]}
    assert directive_of(claim).reply_via is job.directives[1].reply_via
    assert claim.version in (None, job.stored.version)


async def test_rows_of_another_kind_are_left_alone(ledger: Ledger, world: World) -> None:
    await world.create()
    for kind in set(OutboxKind) - {DIRECTIVE}:
        assert await world.claim(kind=kind) == []
    assert len(await world.claim()) == 1


async def test_a_claim_holds_its_row_for_the_lease_and_no_longer(
    ledger: Ledger, world: World
) -> None:
    job = await world.create()
    await world.claim_one()
    assert await first_directive(ledger, job) == TAKEN
    world.clock.advance(seconds=LEASE.total_seconds() - 1)
    assert await world.claim() == []
    assert await first_directive(ledger, job) == TAKEN
    world.clock.advance(seconds=2)
    assert await first_directive(ledger, job) == FREE
    again = await world.claim_one()
    assert (again.job_id, again.tries) == (job.job_id, 0)
    assert await world.claim() == []


async def test_a_released_row_is_due_at_once_and_was_not_tried(
    ledger: Ledger, world: World
) -> None:
    jobs = await world.create_many(2)
    claims = await world.claim()
    await ledger.release(claims[:1])
    assert await first_directive(ledger, jobs[0]) == FREE
    assert await first_directive(ledger, jobs[1]) == TAKEN
    again = await world.claim_one()
    assert (again.job_id, again.tries) == (jobs[0].job_id, 0)


async def test_a_postponed_row_waits_for_the_dispatch_backoff_which_has_no_end(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    job = await world.create()
    for tries, wait in enumerate([*DISPATCH_BACKOFF, DISPATCH_BACKOFF[-1], DISPATCH_BACKOFF[-1]]):
        claim = await world.claim_one()
        assert claim.tries == tries
        await ledger.postpone([claim], "no route to the bus, ä\0")
        assert await first_directive(ledger, job) == TAKEN
        clock.now += wait * (1 - JITTER) - timedelta(seconds=1)
        assert await world.claim() == []
        assert await first_directive(ledger, job) == TAKEN
        clock.now += wait * 2 * JITTER + timedelta(seconds=2)
        assert await first_directive(ledger, job) == FREE


async def test_a_postponed_row_does_not_hold_up_the_others(ledger: Ledger, world: World) -> None:
    await world.create()
    await ledger.postpone(await world.claim(), "unreachable")
    other = await world.create()
    assert jobs_of(await world.claim(1)) == [other.job_id]


async def test_a_discarded_row_is_never_claimed_again(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    jobs = await world.create_many(2)
    claims = await world.claim()
    await ledger.discard(claims[:1])
    status = await first_directive(ledger, jobs[0])
    assert status is None or status.state in TERMINAL_OUTBOX_STATES
    clock.advance(hours=1)
    assert jobs_of(await world.claim()) == [jobs[1].job_id]


@pytest.mark.parametrize("verb", ["release", "postpone", "discard"])
async def test_claims_that_were_lost_are_passed_over(
    ledger: Ledger, world: World, clock: Clock, verb: str
) -> None:
    """One of the two was lost to another dispatcher, the other is still held."""
    lost_job, held_job = await world.create_many(2)
    lost = (await world.claim(1))[0]
    clock.advance(seconds=31)
    (taken,) = await world.claim(1)
    assert taken.job_id == lost.job_id == lost_job.job_id
    held = await world.claim_one()
    if verb == "postpone":
        await ledger.postpone([lost, held], "unreachable")
    else:
        await getattr(ledger, verb)([lost, held])
    assert await first_directive(ledger, lost_job) == TAKEN
    clock.advance(seconds=1)
    assert jobs_of(await world.claim()) == ([held_job.job_id] if verb == "release" else [])
    await lost_job.sent(taken)
    assert await first_directive(ledger, lost_job) == SENT


async def test_claims_that_were_given_back_are_passed_over(ledger: Ledger, world: World) -> None:
    job = await world.create()
    claims = await world.claim()
    await ledger.release(claims)
    await ledger.discard(claims)
    await ledger.postpone(claims, "unreachable")
    assert await first_directive(ledger, job) == FREE
    assert (await world.claim_one()).tries == 0


async def test_to_give_back_nothing_is_nothing(ledger: Ledger) -> None:
    await ledger.release([])
    await ledger.postpone([], "unreachable")
    await ledger.discard([])


async def test_a_row_is_marked_with_the_commit_of_its_claim(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    job = await world.create()
    await job.sent(await world.claim_one())
    assert job.aggregate.active.state is StepState.AWAITING_ACK
    assert await first_directive(ledger, job) == SENT
    clock.advance(hours=1)
    assert await world.claim() == []


async def test_a_row_that_the_bus_refused_has_failed(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    job = await world.create()
    await job.unpublishable(await world.claim_one(), ErrorCode.DISPATCH_FAILED)
    assert await first_directive(ledger, job) == FAILED
    clock.advance(hours=1)
    assert await world.claim() == []


async def test_a_row_that_nobody_wants_any_more_is_superseded(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    job = await world.create()
    await job.acked()
    await job.happens(OutboxSuperseded(*job.identity), await world.claim_one())
    assert await first_directive(ledger, job) == SUPERSEDED
    clock.advance(hours=1)
    assert await world.claim() == []


async def test_each_attempt_has_a_row_of_its_own(ledger: Ledger, world: World) -> None:
    job = await world.create()
    await job.sent(await world.claim_one())
    await job.fails_for_now()
    await job.fires(RetryDue)
    assert await first_directive(ledger, job) == SENT
    assert await ledger.directive(job.job_id, "step_01", 2) == FREE
    assert directive_of(await world.claim_one()).attempt_no == 2
    assert await ledger.directive(job.job_id, "step_01", 3) is None
    assert await ledger.directive(job.job_id, "step_02", 1) is None
    assert await ledger.directive("job_nobody", "step_01", 1) is None


async def test_a_commit_whose_claim_was_lost_goes_through_without_the_mark(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    job = await world.create()
    lost = await world.claim_one()
    clock.advance(seconds=31)
    held = await world.claim_one()
    await job.sent(lost)
    assert job.aggregate.active.state is StepState.AWAITING_ACK
    assert await ledger.load(job.job_id) == job.stored
    assert await first_directive(ledger, job) == TAKEN
    await job.happens(OutboxSent(*job.identity), held)
    assert await first_directive(ledger, job) == SENT


async def test_a_commit_that_conflicts_leaves_the_claim_as_it_was(
    ledger: Ledger, world: World
) -> None:
    job = await world.create()
    claim = await world.claim_one()
    stale, sent = job.stored, job.decide(OutboxSent(*job.identity))
    await job.acked()
    with pytest.raises(Conflict):
        await ledger.commit(stale, sent, claim)
    assert await first_directive(ledger, job) == TAKEN
    await job.sent(claim)
    assert await first_directive(ledger, job) == SENT


async def test_a_commit_without_a_mark_leaves_the_row_to_its_claim(
    ledger: Ledger, world: World
) -> None:
    job = await world.create()
    claim = await world.claim_one()
    await job.acked()
    await job.fails()
    assert await first_directive(ledger, job) == TAKEN
    await job.happens(OutboxSent("step_01", 1, job.identity[2]), claim)
    assert await first_directive(ledger, job) == SENT


async def test_a_row_is_claimed_and_marked_by_another_process(ledgers: Pair, world: World) -> None:
    job = await world.create()
    (claim,) = await ledgers[1].claim(DIRECTIVE, MANY, LEASE)
    assert claim.job_id == job.job_id
    assert await ledgers[0].claim(DIRECTIVE, MANY, LEASE) == []
    await Story(ledgers[1], job.clock, job.stored).sent(claim)
    assert await first_directive(ledgers[0], job) == SENT


async def test_many_claimers_share_the_rows_and_no_two_hold_one(
    ledgers: Pair, world: World
) -> None:
    jobs = [await world.create(tenant) for tenant in [TENANT, "a", "b", "c"] * 10]

    async def claim_all(ledger: Ledger) -> list[Claim]:
        mine: list[Claim] = []
        for _ in jobs:
            claims = await ledger.claim(DIRECTIVE, 3, LEASE)
            assert len(claims) <= 3
            mine += claims
        return mine

    shares = await together(*(claim_all(ledgers[n % 2]) for n in range(8)))
    claimed = [claim.job_id for share in shares for claim in share]
    claimed += jobs_of(await world.claim())
    assert sorted(claimed) == sorted(ids(jobs))


async def test_after_a_lease_one_of_many_claimers_takes_over(
    ledgers: Pair, world: World, clock: Clock
) -> None:
    jobs = await world.create_many(10)
    old = await world.claim()
    clock.advance(seconds=31)
    shares = await together(*(ledgers[n % 2].claim(DIRECTIVE, 4, LEASE) for n in range(8)))
    new = [claim for share in shares for claim in share]
    new += await world.claim()
    assert sorted(jobs_of(new)) == sorted(ids(jobs))
    await ledgers[0].release(old)
    assert await world.claim() == []
