"""Deadlines that pass are reported, once, and what comes of it is obeyed."""

from datetime import UTC, datetime, timedelta

from lucius_orchestrator.ports.invoker import AttemptName, Reported
from lucius_orchestrator.temporal.client import WorkflowSettings
from tests.temporal.stage import SKEW, Stage, happened, timers_of, working
from tests.temporal.story import HOUR, NOW, Story, soon

STORED = AttemptName("", "acme", "s1", 2, "f" * 32)
SOON = timedelta(milliseconds=200)
A_SECOND = timedelta(seconds=1)


async def test_a_deadline_is_reported_with_its_attempt_when_it_has_passed(stage: Stage) -> None:
    following = stage.story.wait(STORED, ACK_TIMEOUT=SOON)
    await stage.start(following)
    await stage.invoker.says("report", stage.story.ends("CANCELLED"))
    call = await stage.invoker.called("report")
    assert (call.attempt, call.event) == (STORED._replace(job_id=stage.job_id), "ACK_TIMEOUT")
    assert call.at.isoformat() == following["timers"][1]["deadline"].replace("Z", "+00:00")
    assert call.came >= call.at + SKEW
    assert await stage.outcome() == "CANCELLED"


async def test_the_first_of_the_deadlines_comes_first(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED, ATTEMPT_TIMEOUT=HOUR, LEASE_EXPIRED=SOON))
    await stage.invoker.says("report", stage.story.ends())
    assert (await stage.invoker.called("report")).event == "LEASE_EXPIRED"


async def test_an_expired_lease_leads_to_another_attempt(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED, LEASE_EXPIRED=SOON))
    again = stage.story.open("s1", 3, "IN_PROGRESS", at=soon(SOON))
    await stage.invoker.says("report", again)
    await stage.invoker.says("open", stage.story.ends())
    call = await stage.invoker.called("open")
    assert (call.attempt.step_id, call.attempt.attempt_no) == ("s1", 3)
    assert await stage.outcome() == "SUCCEEDED"


async def test_a_deadline_that_moved_is_waited_for_again(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED, LEASE_EXPIRED=NOW))
    moved = stage.story.wait(STORED, LEASE_EXPIRED=SOON * 2)
    await stage.invoker.says("report", moved, stage.story.ends())
    call = await stage.invoker.called("report", 2)
    assert call.came >= call.at + SKEW


async def test_a_deadline_that_a_signal_moved_is_not_reported(temporal: str) -> None:
    wait = timedelta(milliseconds=600)
    while not await _is_moved_in_time(temporal, wait):
        wait *= 2  # the machine is busy


async def _is_moved_in_time(temporal: str, wait: timedelta) -> bool:
    """Whether the signal came before the deadline that it moved."""
    stage = await Stage.new(temporal)
    async with working(stage):
        ends = datetime.now(UTC) + wait
        await stage.start(stage.story.wait(STORED, ACK_TIMEOUT=wait))
        await stage.signal("step_ack", stage.story.wait(STORED, LEASE_EXPIRED=wait * 2))
        if datetime.now(UTC) >= ends:
            await stage.handle.terminate()
            return False
        await stage.invoker.says("report", stage.story.ends())
        assert (await stage.invoker.called("report")).event == "LEASE_EXPIRED"
        assert len(stage.invoker.calls["report"]) == 1
        return True


async def test_an_invoker_whose_clock_is_behind_is_not_asked_over_and_over(stage: Stage) -> None:
    following = stage.story.wait(STORED, ACK_TIMEOUT=NOW)
    await stage.start(following)
    await stage.invoker.says("report", following, following, stage.story.ends())
    assert await stage.outcome() == "SUCCEEDED"
    assert len(stage.invoker.calls["report"]) == 3
    *_, second, third = await timers_of(stage)
    assert A_SECOND <= second < third


async def test_what_clocks_may_differ_by_is_waited_at_least(temporal: str) -> None:
    stage = await Stage.new(temporal, WorkflowSettings(skew=timedelta(seconds=1.5)))
    async with working(stage):
        following = stage.story.wait(STORED, ACK_TIMEOUT=timedelta(seconds=-1))
        await stage.start(following)
        await stage.invoker.says("report", following, stage.story.ends())
        await stage.invoker.called("report", 2)
    first, second = (call.came for call in stage.invoker.calls["report"])
    assert first >= stage.invoker.calls["report"][0].at + timedelta(seconds=1.5)
    assert second - first >= timedelta(seconds=1.5)


async def test_an_invoker_that_has_just_started_is_asked_again_when_it_says(stage: Stage) -> None:
    following = stage.story.wait(STORED, ACK_TIMEOUT=NOW)
    not_before = datetime.now(UTC) + timedelta(seconds=2)
    await stage.start(following)
    await stage.invoker.says("report", Reported(following, not_before), stage.story.ends())
    assert (await stage.invoker.called("report", 2)).came >= not_before


async def test_a_signal_ends_the_wait_for_an_invoker_that_has_just_started(stage: Stage) -> None:
    following = stage.story.wait(STORED, ACK_TIMEOUT=NOW)
    await stage.start(following)
    later = datetime.now(UTC) + timedelta(minutes=10)
    await stage.invoker.says("report", Reported(following, later))
    await stage.invoker.called("report")
    await stage.signal("step_result", stage.story.end())
    assert await stage.outcome() == "SUCCEEDED"


async def test_a_new_deadline_does_not_wait_for_an_invoker_that_had_just_started(
    stage: Stage,
) -> None:
    following = stage.story.wait(STORED, ACK_TIMEOUT=NOW)
    await stage.start(following)
    later = datetime.now(UTC) + timedelta(minutes=10)
    await stage.invoker.says("report", Reported(following, later), stage.story.ends())
    await happened(stage, "ACTIVITY_TASK_COMPLETED", "TIMER_STARTED")
    await stage.signal("step_result", stage.story.wait(STORED, ACK_TIMEOUT=SOON))
    await stage.invoker.called("report", 2)
    assert await stage.outcome() == "SUCCEEDED"


async def test_the_sla_does_not_wait_for_replies_of_other_deadlines(temporal: str) -> None:
    sla = A_SECOND
    while not await _is_reported_before(temporal, sla):
        sla *= 2  # the machine is busy


async def _is_reported_before(temporal: str, sla: timedelta) -> bool:
    """Whether another deadline was reported before the SLA ended."""
    stage = await Stage.new(temporal)
    async with working(stage):
        stage.story = Story(sla)
        following = stage.story.wait(STORED, ACK_TIMEOUT=NOW)
        later = datetime.now(UTC) + timedelta(minutes=10)
        await stage.start(following)
        end = stage.story.end("CANCELLED")
        await stage.invoker.says("report", Reported(following, later), end)
        if (await stage.invoker.called("report")).event == "SLA_EXCEEDED":
            await stage.handle.terminate()
            return False
        assert (await stage.invoker.called("report", 2)).event == "SLA_EXCEEDED"
        assert await stage.outcome() == "CANCELLED"
        return True


async def test_the_sla_ends_a_job_that_waits_for_its_next_attempt(stage: Stage) -> None:
    stage.story = Story(sla=SOON)
    await stage.start(stage.story.open("s0", 2, "IN_PROGRESS", at=soon(timedelta(minutes=10))))
    await stage.invoker.says("report", stage.story.ends("CANCELLED"))
    assert (await stage.invoker.called("report")).event == "SLA_EXCEEDED"
    assert await stage.outcome() == "CANCELLED"


async def test_the_sla_ends_a_job_that_is_paused(stage: Stage) -> None:
    stage.story = Story(sla=SOON)
    await stage.start(stage.story.wait(None, "PAUSED"))
    await stage.invoker.says("report", stage.story.ends("CANCELLED"))
    call = await stage.invoker.called("report")
    assert (call.event, call.attempt.attempt_no, call.attempt.lease_id) == ("SLA_EXCEEDED", 0, "")


async def test_after_the_sla_nothing_is_opened(stage: Stage) -> None:
    stage.story = Story(sla=-A_SECOND)
    await stage.start()
    await stage.invoker.says("report", stage.story.ends("CANCELLED"))
    assert await stage.outcome() == "CANCELLED"
    assert not stage.invoker.calls["open"]
