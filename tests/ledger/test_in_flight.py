"""`in_flight`: the counters that limits look at. A job takes its slots once and gives them back
once."""

from collections.abc import Awaitable, Callable

import pytest

from lucius_contract.errors import ErrorCode
from lucius_contract.routing import Mode
from lucius_contract.states import JobState
from lucius_orchestrator.domain.events import AckReceived, SlaExceeded
from lucius_orchestrator.ports.ledger import Conflict, Ledger, Limits, Stored
from tests.ledger.jobs import DIRECTIVE, LEASE, MANY, TENANT, Pair, Story, World, together
from tests.ledger.view import counters

NOBODY: dict[str, int] = {}


async def test_an_empty_ledger_has_nothing_in_flight(ledger: Ledger) -> None:
    assert await counters(ledger, [TENANT]) == NOBODY


async def test_jobs_are_counted_by_tenant_by_mode_and_together(
    ledger: Ledger, world: World
) -> None:
    await world.create_many(3)
    await world.create_many(2, "other", mode=Mode.BURST)
    await world.create("other")
    assert await counters(ledger, [TENANT, "other", "nobody"]) == {
        "total": 6,
        "mode DEFAULT": 4,
        "mode BURST": 2,
        f"tenant {TENANT}": 3,
        "tenant other": 3,
    }


async def test_counters_are_the_same_in_every_process(ledgers: Pair, world: World) -> None:
    await world.create_many(3)
    assert await counters(ledgers[1], [TENANT]) == await counters(ledgers[0], [TENANT])


async def ends_by_success(job: Story) -> None:
    await job.succeeds()


async def ends_by_failure(job: Story) -> None:
    await job.fails()


async def ends_by_cancel(job: Story) -> None:
    await job.fails_for_now()
    await job.cancelled()


async def ends_by_sla(job: Story) -> None:
    await job.fires(SlaExceeded)


async def ends_by_the_bus(job: Story) -> None:
    claims = await job.ledger.claim(DIRECTIVE, MANY, LEASE)
    (claim,) = [claim for claim in claims if claim.job_id == job.job_id]
    await job.unpublishable(claim, ErrorCode.DIRECTIVE_TOO_LARGE)


ENDS = [ends_by_success, ends_by_failure, ends_by_cancel, ends_by_sla, ends_by_the_bus]


@pytest.mark.parametrize("end", ENDS)
async def test_a_job_that_ends_gives_back_its_slots_and_its_timer_once(
    ledger: Ledger, world: World, end: Callable[[Story], Awaitable[None]]
) -> None:
    bystander = await world.create()
    job = await world.create(mode=Mode.BURST, steps=2)
    await end(job)
    left = {"total": 1, "mode DEFAULT": 1, f"tenant {TENANT}": 1}
    assert await counters(ledger, [TENANT]) == left
    assert job.stored.timer is None
    for _ in range(2):
        await job.happens(AckReceived("step_01", 1, "late", TENANT))
        assert await counters(ledger, [TENANT]) == left
        assert job.stored.timer is None
    await ledger.remove(job.stored)
    assert await counters(ledger, [TENANT]) == left
    await bystander.succeeds()
    assert await counters(ledger, [TENANT]) == NOBODY


@pytest.mark.parametrize("state", [JobState.PAUSED, JobState.PAUSING, JobState.CANCELLING])
async def test_a_job_that_has_not_ended_is_in_flight(
    ledger: Ledger, world: World, state: JobState
) -> None:
    job = await world.create()
    if state is JobState.CANCELLING:
        await job.cancelled()
    else:
        await job.paused()
    if state is JobState.PAUSED:
        await job.fails_for_now()
    assert job.job.state is state
    assert (await ledger.in_flight(TENANT)).tenant == 1


async def test_of_many_who_end_a_job_one_gives_back_its_slots(ledgers: Pair, world: World) -> None:
    await world.create()
    job = await world.create()
    decisions = [job.decide(job.result()) for _ in range(8)]
    answers = await together(
        *(ledgers[n % 2].commit(job.stored, each) for n, each in enumerate(decisions))
    )
    assert sum(isinstance(answer, Stored) for answer in answers) == 1
    assert sum(isinstance(answer, Conflict) for answer in answers) == 7
    assert (await ledgers[0].in_flight(TENANT)).tenant == 1


async def test_jobs_that_end_and_begin_at_once_are_counted_exactly(
    ledgers: Pair, world: World
) -> None:
    ending = await world.create_many(8)
    decisions = [job.decide(job.result()) for job in ending]
    beginning = [world.submission() for _ in range(5)]
    answers = await together(
        *(
            ledgers[n % 2].commit(job.stored, decision)
            for n, (job, decision) in enumerate(zip(ending, decisions, strict=True))
        ),
        *(ledgers[n % 2].create(*each, Limits()) for n, each in enumerate(beginning)),
    )
    assert not [answer for answer in answers if isinstance(answer, BaseException)]
    expected = {"total": 5, "mode DEFAULT": 5, f"tenant {TENANT}": 5}
    assert await counters(ledgers[0], [TENANT]) == expected
