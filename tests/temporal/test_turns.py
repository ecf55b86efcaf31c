"""Workflows whose attempts wait for their turn, on a real server: the window of the service is one
directive."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest

from lucius_bus.memory import MemoryBus
from lucius_contract.messages import Directive
from lucius_contract.states import JobState, StepState
from lucius_orchestrator.domain.aggregate import Turn
from lucius_orchestrator.domain.window import Limits
from tests.engine.plane import SHIPPED, ack, one_step, request, result
from tests.engine.temporal_plane import TemporalPlane, set_to_now, temporal_plane
from tests.ledger.backends import Clock, MemoryBackend
from tests.names import unique
from tests.runner.deadlines import DEADLINE

ONE = Limits(1, 1)
QUICK = {
    "ack_timeout": timedelta(milliseconds=100),
    "backoff": (timedelta(milliseconds=50),),
    "max_attempts": 2,
}


@pytest.fixture
async def plane(temporal: str) -> AsyncIterator[TemporalPlane]:
    backend = set_to_now(MemoryBackend(Clock()))
    await backend.start()
    bus = MemoryBus(backend.clock)
    async with temporal_plane(backend, bus, temporal, ONE) as plane:
        yield plane
    await bus.close()
    await backend.stop()


async def submitted(plane: TemporalPlane, count: int, **policy: object) -> list[str]:
    snapshot = one_step(**policy) if policy else SHIPPED
    requests = [request(snapshot, idempotency_key=unique("job")) for _ in range(count)]
    return [await plane.submit(each) for each in requests]


async def ended(plane: TemporalPlane, job_id: str) -> bool:
    stored = await plane.stored(job_id)
    return stored.aggregate.job.completed_at is not None


async def on_the_bus(plane: TemporalPlane) -> list[Directive]:
    """What the service finds once the workflows rest and the dispatcher has looked."""
    await plane.dispatch()
    if await plane.dispatcher.run_once():
        await plane.dispatch()
    found = await plane.directives()
    assert len(found) <= 1, "more than the window admits"
    return found


async def serves(plane: TemporalPlane, *jobs: str) -> None:
    """Play a service with one slot until the jobs have ended."""
    async with asyncio.timeout(DEADLINE):
        while not all([await ended(plane, job_id) for job_id in jobs]):
            plane.clock.now = datetime.now(UTC)
            for directive in await on_the_bus(plane):
                await plane.reply(ack(directive))
                await plane.reply(result(directive))


async def turns(plane: TemporalPlane, jobs: list[str]) -> list[Turn | None]:
    return [(await plane.step(job_id)).turn for job_id in jobs]


async def test_thirty_jobs_of_a_service_with_one_slot_go_one_by_one(plane: TemporalPlane) -> None:
    jobs = await submitted(plane, 30)
    (first,) = await on_the_bus(plane)
    assert (await turns(plane, jobs)).count(Turn.WAITING) == 29
    await plane.reply(ack(first))
    await plane.reply(result(first))
    await serves(plane, *jobs)
    for job_id in jobs:
        step = await plane.step(job_id)
        assert (step.state, step.attempt_no, step.turn) == (StepState.SUCCEEDED, 1, None)


async def test_jobs_of_a_service_that_was_down_lose_no_attempt_that_counts(
    plane: TemporalPlane,
) -> None:
    jobs = await submitted(plane, 3, **QUICK)

    async def tried(times: int) -> bool:
        await plane.dispatcher.run_once()
        await plane.directives()
        return max([(await plane.step(job_id)).attempt_no for job_id in jobs]) >= times

    await plane.until(lambda: tried(4))
    await serves(plane, *jobs)
    for job_id in jobs:
        step = await plane.step(job_id)
        assert step.state is StepState.SUCCEEDED
        assert step.attempt_no == step.unanswered + 1


async def test_a_job_that_waits_can_be_paused_resumed_and_cancelled(plane: TemporalPlane) -> None:
    await submitted(plane, 1)
    (first,) = await on_the_bus(plane)
    paused, cancelled, other = await submitted(plane, 3)
    await plane.dispatch()
    await plane.desk.command(paused, "pause", "ada")
    await plane.desk.command(cancelled, "cancel", "ada")
    await plane.dispatch()
    assert (await plane.stored(cancelled)).aggregate.job.state is JobState.CANCELLED
    await plane.reply(ack(first))
    await plane.reply(result(first))
    await serves(plane, other)
    assert await plane.states(paused) == (JobState.PAUSED, StepState.PENDING)
    await plane.desk.command(paused, "resume", "ada")
    plane.later(minutes=2)
    assert [directive.job_id for directive in await on_the_bus(plane)] == [paused]


async def test_a_turn_that_was_granted_while_worker_and_invoker_were_away_is_used(
    temporal: str,
) -> None:
    backend = set_to_now(MemoryBackend(Clock()))
    await backend.start()
    bus = MemoryBus(backend.clock)
    async with temporal_plane(backend, bus, temporal, ONE) as plane:
        (one, waiting) = await submitted(plane, 2)
        (directive,) = await on_the_bus(plane)
        waiting = one if directive.job_id == waiting else waiting
    await plane.reply(ack(directive))
    assert await plane.dispatcher.run_once() == 1
    assert (await plane.step(waiting)).turn is Turn.GRANTED
    restarted = await plane.replica(limits=ONE)
    async with AsyncExitStack() as opened:
        restarted.engage(plane._options, opened)
        (directive,) = await on_the_bus(restarted)
        assert (directive.job_id, directive.attempt_no) == (waiting, 1)
    await bus.close()
    await backend.stop()
