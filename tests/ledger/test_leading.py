"""`lead`: who looks for directives in which lane."""

import asyncio

import pytest

from lucius_orchestrator.ports.ledger import ALL_LANES, Ledger
from tests.ledger.backends import Backend
from tests.ledger.jobs import DIRECTIVE, LEASE, MANY, Pair, World

EVERY_LANE = frozenset(ALL_LANES)
NONE = frozenset[int]()


@pytest.fixture(params=["memory", "azure_tables"])
def on_tables(request: pytest.FixtureRequest) -> Backend:
    """Where lanes are led: the others need nobody to."""
    backend: Backend = request.getfixturevalue(f"{request.param}_backend")
    return backend


async def test_who_is_alone_leads_every_lane(ledger: Ledger) -> None:
    assert await ledger.lead(ALL_LANES, LEASE) == EVERY_LANE
    assert await ledger.lead(ALL_LANES, LEASE) == EVERY_LANE
    assert await ledger.lead([3, 5], LEASE) == {3, 5}
    assert await ledger.lead([], LEASE) == NONE


async def test_every_lane_is_led_by_somebody(ledgers: Pair) -> None:
    led = [await ledger.lead(ALL_LANES, LEASE) for ledger in ledgers]
    assert led[0] | led[1] == EVERY_LANE


async def test_nobody_is_kept_from_claiming(ledgers: Pair, world: World) -> None:
    await ledgers[0].lead(ALL_LANES, LEASE)
    job = await world.create()
    (claim,) = await ledgers[1].claim(DIRECTIVE, MANY, LEASE)
    assert claim.job_id == job.job_id


async def test_a_lane_has_one_leader(on_tables: Backend) -> None:
    one, other = on_tables.ledger, await on_tables.reopen()
    assert await one.lead([1, 2, 3], LEASE) == {1, 2, 3}
    assert await other.lead(ALL_LANES, LEASE) == EVERY_LANE - {1, 2, 3}
    assert await one.lead(ALL_LANES, LEASE) == {1, 2, 3}


async def test_of_many_who_begin_at_once_no_two_lead_a_lane(on_tables: Backend) -> None:
    ledgers = [await on_tables.reopen() for _ in range(4)]
    for _ in range(3):
        led = await asyncio.gather(*(ledger.lead(ALL_LANES, LEASE) for ledger in ledgers))
        assert sum(map(len, led)) == len(frozenset().union(*led))
    assert frozenset().union(*led) == EVERY_LANE


async def test_a_lease_that_is_renewed_goes_on(on_tables: Backend) -> None:
    one, other = on_tables.ledger, await on_tables.reopen()
    for _ in range(4):
        assert await one.lead(ALL_LANES, LEASE) == EVERY_LANE
        on_tables.clock.advance(seconds=20)
        assert await other.lead(ALL_LANES, LEASE) == NONE


async def test_a_leader_that_is_gone_is_followed_when_its_lease_is_over(
    on_tables: Backend,
) -> None:
    gone, other = on_tables.ledger, await on_tables.reopen()
    await gone.lead(ALL_LANES, LEASE)
    on_tables.clock.advance(seconds=31)
    assert await other.lead(ALL_LANES, LEASE) == EVERY_LANE
    assert await gone.lead(ALL_LANES, LEASE) == NONE


async def test_who_closes_leaves_the_lanes_to_others_at_once(on_tables: Backend) -> None:
    closing, other = await on_tables.reopen(), on_tables.ledger
    await closing.lead(ALL_LANES, LEASE)
    await closing.close()
    assert await other.lead(ALL_LANES, LEASE) == EVERY_LANE


async def test_rows_of_other_lanes_are_left_to_their_leader(on_tables: Backend) -> None:
    world = World(on_tables.ledger, on_tables.clock)
    jobs = [await world.create(tenant) for tenant in ("a", "b", "c", "d")]
    lanes = {job.job_id: job.aggregate.job.route.lane for job in jobs}
    mine = lanes[jobs[0].job_id]
    claims = await on_tables.ledger.claim(DIRECTIVE, MANY, LEASE, [mine])
    expected = {job_id for job_id, lane in lanes.items() if lane == mine}
    assert {claim.job_id for claim in claims} == expected
    assert len(expected) < len(jobs)
