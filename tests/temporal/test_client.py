"""Starting, signalling and looking at workflows, and what the server can do wrong."""

import asyncio
from dataclasses import replace

import pytest

from lucius_orchestrator.ports.invoker import AttemptName
from lucius_orchestrator.ports.workflows import WorkflowNotFound, Workflows, WorkflowStatus
from lucius_orchestrator.temporal.client import TemporalWorkflows
from lucius_orchestrator.temporal.connection import TemporalOptions
from lucius_orchestrator.temporal.errors import TemporalUnavailable
from tests.runner.deadlines import DEADLINE
from tests.temporal.stage import Stage, input_of, runs_of, working
from tests.temporal_server import temporal_server

STORED = AttemptName("", "acme", "s1", 2, "f" * 32)
NOBODY = TemporalOptions("127.0.0.1:1")


def _is_the_port(workflows: TemporalWorkflows) -> Workflows:
    return workflows


async def run_id(stage: Stage) -> str:
    return (await stage.handle.describe()).run_id or ""


async def found_by(stage: Stage, query: str) -> None:
    """Returns when the job is found; what can be searched for lags behind."""
    whole = f"WorkflowId = '{stage.job_id}' AND {query}"
    async with asyncio.timeout(DEADLINE):
        while (await stage.client.count_workflows(whole)).count != 1:
            pass


async def test_a_workflow_that_runs_is_not_started_again(stage: Stage) -> None:
    following = stage.story.wait(STORED)
    await stage.start(following)
    first, key = await run_id(stage), (await input_of(stage))["lease_key"]
    await stage.start(following)
    await stage.start(following, restarts=True)
    assert await run_id(stage) == first
    assert (await input_of(stage))["lease_key"] == key
    await stage.handle.terminate()


async def test_many_starts_at_once_are_one(stage: Stage) -> None:
    following = stage.story.wait(STORED)
    await asyncio.gather(*(stage.start(following) for _ in range(10)))
    await stage.signal("step_result", stage.story.end())
    await stage.outcome()
    assert len(await runs_of(stage)) == 1


async def test_a_workflow_that_has_ended_is_not_started_again(stage: Stage) -> None:
    await stage.start(stage.story.end())
    await stage.outcome()
    first = await run_id(stage)
    await stage.start(stage.story.open())
    assert await run_id(stage) == first
    assert await stage.workflows.status(stage.job_id) == WorkflowStatus(False, "COMPLETED")


async def test_a_workflow_that_was_terminated_is_started_again_by_a_restart(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED))
    first, key = await run_id(stage), (await input_of(stage))["lease_key"]
    await stage.handle.terminate()
    assert await stage.workflows.status(stage.job_id) == WorkflowStatus(False, "TERMINATED")
    await stage.start(stage.story.publish(STORED), restarts=True)
    assert await run_id(stage) != first
    assert (await input_of(stage))["lease_key"] != key
    await stage.invoker.says("publish", stage.story.ends())
    assert (await stage.invoker.called("publish")).attempt.lease_id == STORED.lease_id
    assert await stage.outcome() == "SUCCEEDED"


async def test_a_restart_of_a_workflow_that_runs_after_all_tells_it_where_the_job_stands(
    stage: Stage,
) -> None:
    """It was started with older news, after a signal had found no workflow."""
    await stage.start(stage.story.wait(STORED))
    await stage.start(stage.story.end(), restarts=True)
    assert await stage.outcome() == "SUCCEEDED"
    assert len(await runs_of(stage)) == 1


async def test_the_status_is_that_of_the_last_run(stage: Stage) -> None:
    assert await stage.workflows.status(stage.job_id) == WorkflowStatus(False, "MISSING")
    await stage.start(stage.story.wait(STORED))
    assert await stage.workflows.status(stage.job_id) == WorkflowStatus(True, "RUNNING")
    await stage.handle.terminate()


async def test_a_signal_needs_a_workflow_that_runs(stage: Stage) -> None:
    with pytest.raises(WorkflowNotFound):
        await stage.signal("step_ack", stage.story.end())
    await stage.start(stage.story.end())
    await stage.outcome()
    with pytest.raises(WorkflowNotFound):
        await stage.signal("step_ack", stage.story.end())


async def test_jobs_are_found_by_tenant_request_type_and_state(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED, "IN_PROGRESS"))
    await found_by(stage, "LuciusTenant = 'acme' AND LuciusRequestType = 'OCR'")
    await found_by(stage, "LuciusState = 'IN_PROGRESS'")
    await stage.signal("pause", stage.story.wait(STORED, "PAUSED"))
    await found_by(stage, "LuciusState = 'PAUSED' AND ExecutionStatus = 'Running'")
    await stage.signal("cancel", stage.story.end("CANCELLED"))
    await found_by(stage, "LuciusState = 'CANCELLED' AND ExecutionStatus = 'Completed'")
    assert (await stage.handle.describe()).static_summary is not None


async def test_search_attributes_are_added_where_they_are_missing() -> None:
    with temporal_server(with_attributes=False) as server:
        stage = await Stage.new(server.address)
        assert await stage.workflows.ensure_search_attributes()
        async with working(stage):
            await stage.start(stage.story.wait(STORED))
            await found_by(stage, "LuciusTenant = 'acme'")
            await stage.handle.terminate()


async def test_a_job_runs_in_a_namespace_without_search_attributes(temporal: str) -> None:
    with temporal_server(with_attributes=False) as server:
        stage = await Stage.new(server.address)
        stage.workflows._is_searchable = True  # as where nobody may ask
        async with working(stage):
            await stage.start()
            await stage.goes_smoothly()
            assert await stage.outcome() == "SUCCEEDED"


async def test_a_server_that_is_away_is_told_as_such(stage: Stage) -> None:
    away = TemporalWorkflows(NOBODY)
    for asking in (away.check(), away.status("j"), away.signal("j", "cancel", {})):
        with pytest.raises(TemporalUnavailable):
            await asking
    with pytest.raises(TemporalUnavailable):
        await away.start(
            {
                "jobId": "j",
                "tenant_id": "t",
                "request_type": "OCR",
                "restarts": False,
                "next": stage.story.open(),
            }
        )


async def test_a_server_that_answers_is_fit(stage: Stage) -> None:
    await stage.workflows.check()


async def test_a_missing_namespace_is_no_missing_workflow(stage: Stage) -> None:
    elsewhere = TemporalWorkflows(replace(stage.options, namespace="nowhere"))
    for asking in (elsewhere.check(), elsewhere.status("j"), elsewhere.signal("j", "cancel", {})):
        with pytest.raises(TemporalUnavailable, match="nowhere"):
            await asking


def test_the_key_of_the_server_is_not_shown() -> None:
    assert "secret" not in repr(TemporalOptions(api_key="secret"))
