"""A history does not grow for ever, and no signal is lost when another one is begun."""

import asyncio

import pytest

from lucius_orchestrator.ports.invoker import AttemptName
from lucius_orchestrator.temporal.client import WorkflowSettings
from tests.runner.deadlines import DEADLINE
from tests.temporal.stage import SKEW, Stage, happened, runs_of, working

STORED = AttemptName("", "acme", "s1", 2, "f" * 32)
LIMIT = 20


@pytest.fixture
async def idle_stage(temporal: str) -> Stage:
    return await Stage.new(temporal, WorkflowSettings(skew=SKEW, history_limit=LIMIT))


async def beat(stage: Stage, times: int) -> None:
    """Heartbeats, all at once; the last one is heard."""
    heard = [stage.story.wait(STORED) for _ in range(times)]
    async with asyncio.TaskGroup() as tasks:
        for following in heard:
            tasks.create_task(stage.signal("step_heartbeat", following))
    assert await stage.handle.query("state") == heard[-1]


async def test_a_job_with_many_heartbeats_has_many_short_histories(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED))
    async with asyncio.timeout(DEADLINE):
        while len(runs := await runs_of(stage)) < 4:
            await beat(stage, 1)
    await stage.signal("step_result", stage.story.end())
    assert await stage.outcome() == "SUCCEEDED"
    assert max(len(run.events) for run in runs) < 10 * LIMIT


async def test_no_signal_is_lost_between_two_histories(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED))
    async with asyncio.timeout(DEADLINE):
        while len(await runs_of(stage)) < 4:
            await beat(stage, 10)
    await stage.signal("step_result", stage.story.end())
    assert await stage.outcome() == "SUCCEEDED"


async def test_an_attempt_keeps_its_lease_in_the_next_history(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED))
    for _ in range(LIMIT):
        await stage.signal("step_heartbeat", stage.story.wait(STORED))
    following = stage.story.open("s2")
    await stage.invoker.says("open", following, stage.story.ends())
    await stage.signal("step_result", following)
    assert await stage.outcome() == "SUCCEEDED"
    assert len({call.attempt for call in stage.invoker.calls["open"]}) == 1


async def test_a_cancel_at_the_end_of_a_history_is_passed_on(idle_stage: Stage) -> None:
    """It comes in the same task as the signals that make the history long."""
    stage = idle_stage
    await stage.start(stage.story.wait(STORED))
    async with working(stage):
        await happened(stage, "TIMER_STARTED")
    for _ in range(LIMIT):
        await stage.signal("step_heartbeat", stage.story.wait(STORED))
    await stage.handle.cancel()
    await stage.invoker.says("command", stage.story.ends("CANCELLED"))
    async with working(stage):
        assert await stage.outcome() == "CANCELLED"
