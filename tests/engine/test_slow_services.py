"""Queues that are longer than the ACK timeout, services that are slow or down, many tenants: the
whole engine on a ledger and a bus, in virtual time."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from lucius_bus.port import BusMessage
from lucius_contract.states import JobState
from lucius_orchestrator.domain.window import Limits
from lucius_orchestrator.engine.traffic_reports import TrafficReporter
from tests.engine.plane import PIPELINE, Plane, configured, once, request
from tests.engine.services import Town
from tests.runner.tiers import by_tier

UNLIMITED = configured()
"""As many jobs in flight as come."""


@pytest.fixture
def town(plane: Plane) -> Town:
    """With the window as it is by default, which opens from one."""
    narrow = Plane.new(plane.backend, plane.bus, Limits())
    return Town(narrow)


async def submitted(town: Town, count: int, tenant: str = "acme", **members: Any) -> list[str]:
    return [
        await town.plane.submit(
            request(
                UNLIMITED,
                tenant_id=tenant,
                idempotency_key=f"{tenant}-{next(town.requests)}",
                **members,
            )
        )
        for _ in range(count)
    ]


async def attempts(town: Town, jobs: list[str]) -> Counter[int]:
    """How many jobs needed so many attempts; all of them have succeeded."""
    found = [(await town.plane.stored(job_id)).aggregate for job_id in jobs]
    assert {aggregate.job.state for aggregate in found} == {JobState.SUCCEEDED}
    return Counter(max(step.attempt_no for step in aggregate.steps) for aggregate in found)


async def test_a_queue_of_minutes_fails_nothing_and_nothing_is_done_twice(town: Town) -> None:
    service, count = town.service(slots=1, seconds=5), by_tier(40, 160)
    jobs = await submitted(town, count)
    took = await town.until(town.all_ended)
    assert await attempts(town, jobs) == {1: count}
    assert set(service.runs.values()) == {1}
    assert took < timedelta(seconds=5.2 * count)


async def test_a_service_that_states_no_capacity_fails_nothing_either(town: Town) -> None:
    town.service(slots=1, seconds=5).states_capacity = False
    jobs = await submitted(town, 40)
    took = await town.until(town.all_ended)
    assert await attempts(town, jobs) == {1: 40}
    assert took < timedelta(seconds=5.2 * 40)


async def test_what_waits_is_pending_and_its_clocks_stand_still(town: Town) -> None:
    service = town.service(slots=1, seconds=60)
    jobs = await submitted(town, 5)
    await town.passes(timedelta(seconds=50))
    states = [await town.plane.states(job_id) for job_id in jobs]
    assert [step for _, step in states] == ["IN_PROGRESS", *["DISPATCHING"] * 4]
    assert sum(service.runs.values()) == 1
    await town.until(town.all_ended)
    assert set(service.runs.values()) == {1}


async def test_a_service_that_is_down_for_half_an_hour_fails_nothing(town: Town) -> None:
    service = town.service(slots=2, seconds=0.5)
    jobs = await submitted(town, 20)
    await town.until(town.all_ended)
    service.is_up, heard_last = False, town.plane.clock.now
    jobs += await submitted(town, count := by_tier(100, 500))
    await town.passes(timedelta(minutes=30))
    assert (await town.plane.ledger.in_flight()).total == count
    service.is_up = True
    await town.passes(timedelta(minutes=1))
    done = count - (await town.plane.ledger.in_flight()).total
    assert done == count or done > 0.8 * 60 * 2 / 0.5 * 0.9
    await town.until(town.all_ended)
    await attempts(town, jobs)
    assert await town.plane.letters() == []
    steps = [await town.plane.step(job_id) for job_id in jobs]
    after = [step for step in steps if (step.attempts[0].sent_at or heard_last) > heard_last]
    assert sum(step.unanswered for step in after) > 5
    assert {step.attempt_no - step.unanswered for step in after} == {1}


async def test_a_single_job_outlives_an_outage_of_hours(town: Town) -> None:
    """It is sent more often than it has tries."""
    service = town.service(slots=1, seconds=1)
    service.is_up = False
    (job_id,) = await submitted(town, 1)
    await town.passes(timedelta(hours=2))
    assert (await town.plane.step(job_id)).attempt_no > 3
    service.is_up = True
    took = await town.until(town.all_ended)
    assert (await town.plane.job(job_id)).state is JobState.SUCCEEDED
    assert took < timedelta(minutes=1)


async def test_a_tenant_with_many_jobs_leaves_the_others_their_turn(town: Town) -> None:
    small = [f"small-{number}" for number in range(5)]
    town.service(slots=4, seconds=1)

    async def all_small() -> timedelta:
        """How long it takes until the small ones have their results."""
        jobs = [job for tenant in small for job in await submitted(town, 10, tenant)]

        async def have_ended() -> bool:
            ended = [(await town.plane.job(job_id)).completed_at for job_id in jobs]
            return all(ended)

        return await town.until(have_ended)

    alone = await all_small()
    many = await submitted(town, by_tier(300, 10_000), "big")
    await town.passes(timedelta(seconds=10))
    beside = await all_small()
    assert beside < 1.5 * alone
    assert (await town.plane.ledger.in_flight("big")).tenant > len(many) / 4


async def test_burst_leaves_default_its_share(town: Town) -> None:
    service = town.service(slots=2, seconds=1)
    for number in range(60):
        await submitted(town, 1, f"burst-{number % 6}", mode="BURST", doc_id=f"d-{number}")
    waiting = await submitted(town, 20, "calm")
    await town.passes(timedelta(seconds=22))
    ended = [(await town.plane.job(job_id)).completed_at for job_id in waiting]
    assert sum(moment is not None for moment in ended) >= 16
    await town.until(town.all_ended)
    assert set(service.runs.values()) == {1}


async def test_a_slow_service_does_not_delay_another(town: Town) -> None:
    town.service("ocr", slots=1, seconds=300)
    quick = town.service("embedding", slots=1, seconds=0.1)
    await submitted(town, 50)
    jobs = await submitted(
        town, 20, request_type="EMBEDDING", payload={"embedding": {"chunk_size": 200}}
    )
    await town.passes(timedelta(seconds=5))
    assert sum(quick.runs.values()) == 20
    assert await attempts(town, jobs) == {1: 20}


async def test_a_retry_waits_behind_its_tenant_s_other_jobs(town: Town) -> None:
    plane, service = town.plane, town.service(slots=1, seconds=10)
    service.is_up = False
    (lost,) = await submitted(town, 1)
    await plane.dispatch()
    await plane.deliveries()  # it is lost on its way
    await submitted(town, 12)
    service.is_up = True
    await town.until(town.all_ended)
    order = [job_id for job_id, _ in service.runs]
    assert order[-1] == lost or order.index(lost) > 5


async def test_one_frozen_instance_of_two_fails_no_job(town: Town) -> None:
    town.service(slots=2, seconds=2)
    frozen = town.service(slots=2, seconds=2)
    jobs = await submitted(town, 20)
    await town.passes(timedelta(seconds=5))
    frozen.is_frozen = True
    jobs += await submitted(town, 60)
    await town.passes(timedelta(minutes=3))
    frozen.is_up = False
    await town.until(town.all_ended)
    counts = await attempts(town, jobs)
    assert max(counts) <= 2
    assert counts[1] > 70


async def test_a_directive_that_the_bus_loses_is_found_while_others_are_answered(
    town: Town,
) -> None:
    town.service(slots=2, seconds=1)
    first = await submitted(town, 10)
    lost: list[str] = []

    async def lose(_topic: str, messages: list[BusMessage]) -> None:
        lost.append(str(messages.pop().properties["jobId"]))

    await town.passes(timedelta(seconds=3))
    town.plane.bus_detour.before["publish"] = once(lose)
    await town.until(town.all_ended)
    counts = await attempts(town, first)
    assert counts == {1: 9, 2: 1}
    step = await town.plane.step(lost[0])
    assert (step.attempt_no, step.unanswered) == (2, 0)


async def test_a_pipeline_under_a_backlog_goes_through(town: Town) -> None:
    for name, seconds in (("ocr", 3.0), ("embedding", 1.0), ("sis", 2.0)):
        town.service(name, slots=1, seconds=seconds)
    jobs = await submitted(town, 30, **PIPELINE)
    took = await town.until(town.all_ended)
    assert await attempts(town, jobs) == {1: 30}
    assert took < timedelta(seconds=1.2 * 3 * 30 + 10)


async def test_a_restarted_plane_publishes_no_more_than_is_picked_up(town: Town) -> None:
    service = town.service(slots=2, seconds=45)
    jobs = await submitted(town, 10)
    await town.passes(timedelta(seconds=30))
    plane = await town.plane.replica(limits=Limits())
    await TrafficReporter(plane.engine, dispatches=True).restore()
    town.plane = plane
    await town.until(town.all_ended)
    assert await attempts(town, jobs) == {1: 10}
    assert set(service.runs.values()) == {1}
