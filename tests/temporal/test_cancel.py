"""Cancelling a workflow by Temporal's own tools cancels the job, as a command does."""

from datetime import timedelta

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.ports.invoker import AttemptName, InvokerRefused, InvokerUnavailable
from tests.temporal.stage import Stage, working
from tests.temporal.story import soon

STORED = AttemptName("", "acme", "s1", 2, "f" * 32)


async def test_a_job_that_waits_is_cancelled_and_ends_properly(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED))
    await stage.invoker.says("command", stage.story.wait(STORED, "CANCELLING"))
    await stage.handle.cancel()
    call = await stage.invoker.called("command")
    assert (call.attempt.job_id, call.event, call.by) == (stage.job_id, "cancel", "temporal")
    await stage.signal("step_result", stage.story.end("CANCELLED"))
    assert await stage.outcome() == "CANCELLED"
    assert len(stage.invoker.calls["command"]) == 1


async def test_a_job_that_waits_for_an_attempt_is_cancelled(stage: Stage) -> None:
    await stage.start(stage.story.open("s0", 2, "IN_PROGRESS", at=soon(timedelta(minutes=9))))
    await stage.invoker.says("command", stage.story.ends("CANCELLED"))
    await stage.handle.cancel()
    assert await stage.outcome() == "CANCELLED"


async def test_a_workflow_that_was_cancelled_before_it_began_opens_nothing(
    idle_stage: Stage,
) -> None:
    await idle_stage.start(idle_stage.story.wait(STORED))
    await idle_stage.handle.cancel()
    await idle_stage.invoker.says("command", idle_stage.story.ends("CANCELLED"))
    async with working(idle_stage):
        assert await idle_stage.outcome() == "CANCELLED"


async def test_a_cancel_overtakes_what_cannot_be_done_now(stage: Stage) -> None:
    await stage.start(stage.story.publish(STORED))
    await stage.invoker.says("publish", InvokerUnavailable("no bus"))
    await stage.invoker.called("publish")
    await stage.invoker.says("command", stage.story.ends("CANCELLED"))
    await stage.handle.cancel()
    assert await stage.outcome() == "CANCELLED"


async def test_a_cancel_is_passed_on_when_the_invoker_is_back(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED))
    away = InvokerUnavailable("connection refused")
    await stage.invoker.says("command", away, away, stage.story.ends("CANCELLED"))
    await stage.handle.cancel()
    assert await stage.outcome() == "CANCELLED"


async def test_a_signal_does_not_make_a_cancel_superfluous_unless_the_job_has_ended(
    stage: Stage,
) -> None:
    await stage.start(stage.story.wait(STORED))
    await stage.handle.cancel()
    await stage.invoker.called("command")
    await stage.signal("step_heartbeat", stage.story.wait(STORED))
    await stage.signal("step_result", stage.story.end())
    assert await stage.outcome() == "SUCCEEDED"


async def test_a_cancel_that_comes_too_late_is_no_failure(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED))
    late = InvokerRefused(ErrorCode.STATE_CONFLICT, "it is CANCELLING", None)
    await stage.invoker.says("command", late)
    await stage.handle.cancel()
    await stage.invoker.called("command")
    await stage.signal("step_result", stage.story.end("CANCELLED"))
    assert await stage.outcome() == "CANCELLED"
    assert len(stage.invoker.calls["command"]) == 1
