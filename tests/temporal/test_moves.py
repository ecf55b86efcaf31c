"""Every move of the loop, on a real server."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import WorkflowFailureError

from lucius_orchestrator.domain.workflow import Next
from lucius_orchestrator.ports.invoker import AttemptName
from tests.temporal.stage import Stage, input_of
from tests.temporal.story import soon

STORED = AttemptName("", "acme", "s1", 2, "f" * 32)


async def test_a_job_of_three_steps_runs_to_its_end(stage: Stage) -> None:
    await stage.start()
    await stage.goes_smoothly()
    assert await stage.outcome() == "SUCCEEDED"
    opened = [call.attempt for call in stage.invoker.calls["open"]]
    assert [attempt.step_id for attempt in opened] == ["s0", "s1", "s2"]
    assert {(a.job_id, a.tenant_id, a.attempt_no) for a in opened} == {(stage.job_id, "acme", 1)}
    assert [call.attempt for call in stage.invoker.calls["publish"]] == opened


async def test_the_lease_of_an_attempt_is_made_of_the_key_that_the_workflow_was_started_with(
    stage: Stage,
) -> None:
    await stage.start()
    await stage.invoker.says("open", stage.story.ends())
    call = await stage.invoker.called("open")
    key = (await input_of(stage))["lease_key"]
    assert len(key) == 64
    assert call.attempt.lease_id == hashlib.sha256(f"{key}:s0:1".encode()).hexdigest()[:32]


async def test_two_jobs_have_different_keys(stage: Stage, temporal: str) -> None:
    other = await Stage.new(temporal)
    await stage.start(stage.story.wait(STORED))
    await other.start()
    assert (await input_of(stage))["lease_key"] != (await input_of(other))["lease_key"]
    await other.handle.terminate()
    await stage.handle.terminate()


async def test_an_attempt_that_is_asked_for_again_has_the_same_lease(stage: Stage) -> None:
    first = stage.story.open()
    await stage.start(first)
    await stage.invoker.says("open", first, stage.story.ends())
    await stage.invoker.called("open", 2)
    one, two = stage.invoker.calls["open"]
    assert one.attempt == two.attempt
    assert one.at < two.at


async def test_a_lease_ends_as_long_after_its_opening_as_the_invoker_said(stage: Stage) -> None:
    before = datetime.now(UTC)
    await stage.start()
    await stage.invoker.says("open", stage.story.ends())
    call = await stage.invoker.called("open")
    assert before <= call.at - timedelta(seconds=900) <= call.came


async def test_an_attempt_is_not_opened_before_its_time(stage: Stage) -> None:
    following = stage.story.open("s0", 2, "IN_PROGRESS", at=soon(timedelta(milliseconds=400)))
    await stage.start(following)
    await stage.invoker.says("open", stage.story.ends())
    call = await stage.invoker.called("open")
    assert call.attempt.attempt_no == 2
    assert call.came.isoformat() >= (following["at"] or "")[:-1]


async def test_a_wait_for_the_time_of_an_attempt_ends_with_a_signal(stage: Stage) -> None:
    await stage.start(stage.story.open("s0", 2, "IN_PROGRESS", at=soon(timedelta(minutes=10))))
    await stage.signal("cancel", stage.story.end("CANCELLED"))
    assert await stage.outcome() == "CANCELLED"
    assert not stage.invoker.calls


async def test_a_workflow_that_begins_with_an_open_attempt_publishes_it_under_its_lease(
    stage: Stage,
) -> None:
    await stage.start(stage.story.publish(STORED))
    await stage.invoker.says("publish", stage.story.ends())
    call = await stage.invoker.called("publish")
    assert call.attempt == STORED._replace(job_id=stage.job_id)
    assert await stage.outcome() == "SUCCEEDED"
    assert not stage.invoker.calls["open"]


async def test_what_is_recorded_and_not_to_be_published_is_not(stage: Stage) -> None:
    await stage.start()
    await stage.invoker.says("open", stage.story.wait(STORED, "PAUSED"))
    await stage.invoker.called("open")
    await stage.signal("cancel", stage.story.end("CANCELLED"))
    assert await stage.outcome() == "CANCELLED"
    assert not stage.invoker.calls["publish"]


async def test_a_workflow_fails_as_its_job_does(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED))
    await stage.signal("step_result", stage.story.end("FAILED_FINAL"))
    with pytest.raises(WorkflowFailureError) as failed:
        await stage.outcome()
    assert str(failed.value.cause) == "FAILED_FINAL: the job failed for good"


async def test_an_action_that_is_not_known_is_waited_out(stage: Stage) -> None:
    newer: Next = {**stage.story.open(), "action": "CONSULT_THE_STARS"}
    await stage.start(newer)
    await stage.signal("step_result", stage.story.end())
    assert await stage.outcome() == "SUCCEEDED"
    assert not stage.invoker.calls


async def test_what_comes_next_can_be_asked_for(stage: Stage) -> None:
    following = stage.story.wait(STORED)
    await stage.start(following)
    assert await stage.handle.query("state") == following
    await stage.handle.terminate()
