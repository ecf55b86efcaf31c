"""Workers come and go; jobs do not notice."""

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from lucius_orchestrator.ports.invoker import AttemptName
from lucius_orchestrator.temporal.connection import connected
from lucius_orchestrator.temporal.worker import TemporalWorker, WorkerSettings
from tests.runner.deadlines import DEADLINE
from tests.temporal.invoker import ScriptedInvoker
from tests.temporal.stage import QUICKLY, Stage, employed, working
from tests.temporal_server import free_port, temporal_server

pytestmark = pytest.mark.check

STORED = AttemptName("", "acme", "s1", 2, "f" * 32)


async def test_a_worker_that_is_replaced_in_mid_job_is_not_missed(idle_stage: Stage) -> None:
    stage = idle_stage
    await stage.start()
    async with working(stage):
        await stage.invoker.says("open", lambda call: stage.story.publish(call.attempt))
        await stage.invoker.says("publish", lambda call: stage.story.wait(call.attempt))
        first = await stage.invoker.called("publish")
        assert await stage.handle.query("state")
    await stage.signal("step_result", stage.story.open("s0", 2, "IN_PROGRESS"))
    async with working(stage):
        second = await stage.invoker.called("publish", 2)
        await stage.signal("step_result", stage.story.end())
        assert await stage.outcome() == "SUCCEEDED"
    assert first.attempt.lease_id != second.attempt.lease_id
    assert len(stage.invoker.calls["open"]) == 2


async def test_a_worker_that_is_killed_in_mid_call_asks_again_under_the_same_lease(
    idle_stage: Stage,
) -> None:
    stage = idle_stage
    await stage.start()
    worker = TemporalWorker(stage.options, stage.invoker, QUICKLY)
    running = asyncio.create_task(worker.run())
    first = await stage.invoker.called("open")
    running.cancel()
    await asyncio.wait([running])
    await stage.invoker.says("open", stage.story.ends())
    async with working(stage):
        assert await stage.outcome() == "SUCCEEDED"
    assert {call.attempt for call in stage.invoker.calls["open"]} == {first.attempt}


async def test_a_workflow_that_does_not_fit_into_memory_is_replayed(idle_stage: Stage) -> None:
    async with working(idle_stage, WorkerSettings(cached_workflows=0)):
        await idle_stage.start()
        await idle_stage.goes_smoothly()
        assert await idle_stage.outcome() == "SUCCEEDED"


async def test_the_workflow_does_nothing_that_the_sandbox_forbids(idle_stage: Stage) -> None:
    """In production it runs outside, which is quicker."""
    async with working(idle_stage, runner=SandboxedWorkflowRunner()):
        await idle_stage.start()
        await idle_stage.goes_smoothly()
        assert await idle_stage.outcome() == "SUCCEEDED"


async def test_a_worker_may_start_before_the_server() -> None:
    port = free_port()
    options = Stage.options_for(f"127.0.0.1:{port}")
    invoker = ScriptedInvoker()
    async with employed(options, invoker):
        with temporal_server(port=port):
            stage = Stage(await connected(options), options)
            stage.invoker = invoker
            await stage.start()
            await stage.goes_smoothly(steps=1)
            assert await stage.outcome() == "SUCCEEDED"


async def test_a_job_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    port, file = free_port(), tmp_path / "temporal.db"
    with temporal_server(file, port) as server:
        stage = await Stage.new(server.address)
        async with working(stage):
            await stage.start(stage.story.wait(STORED))
            assert await stage.handle.query("state")
            server.kill()
            with temporal_server(file, port):
                await stage.signal("step_result", stage.story.open("s2"))
                await stage.goes_smoothly(steps=1)
                assert await stage.outcome() == "SUCCEEDED"


class Heard(logging.Handler):
    """Says when a log event has come so many times."""

    def __init__(self, event: str, times: int) -> None:
        super().__init__()
        self._event, self._left = event, times
        self.enough = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self._left -= record.msg == self._event
        if self._left <= 0:
            self.enough.set()


async def test_a_worker_keeps_trying_while_its_namespace_is_missing(idle_stage: Stage) -> None:
    options = replace(idle_stage.options, namespace="nowhere")
    settings = WorkerSettings(pause=timedelta(milliseconds=50))
    heard = Heard("temporal.away", 3)
    logging.getLogger("lucius_orchestrator.temporal").addHandler(heard)
    try:
        async with employed(options, idle_stage.invoker, settings):
            async with asyncio.timeout(DEADLINE):
                await heard.enough.wait()
    finally:
        logging.getLogger("lucius_orchestrator.temporal").removeHandler(heard)


async def test_a_stop_that_comes_while_the_server_is_away_is_obeyed() -> None:
    stage_options = Stage.options_for("127.0.0.1:1")
    worker = TemporalWorker(stage_options, ScriptedInvoker(), QUICKLY)
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0)
    await worker.stop()
    await running


async def test_a_stop_before_the_start_is_obeyed() -> None:
    worker = TemporalWorker(Stage.options_for("127.0.0.1:1"), ScriptedInvoker(), QUICKLY)
    await worker.stop()
    await worker.run()
