"""The invoker or the bus is away, or refuses: nothing is lost, and the SLA still counts."""

from datetime import timedelta

import pytest

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.ports.invoker import AttemptName, InvokerRefused, InvokerUnavailable
from tests.temporal.stage import Stage, events_of
from tests.temporal.story import NOW, Story

AWAY = InvokerUnavailable("connection refused")
STORED = AttemptName("", "acme", "s1", 2, "f" * 32)
A_SECOND = timedelta(seconds=1)


def refused(code: ErrorCode) -> InvokerRefused:
    return InvokerRefused(code, f"the invoker answered {code}")


async def test_while_all_is_well_an_attempt_costs_no_activity_of_its_own(stage: Stage) -> None:
    await stage.start()
    await stage.goes_smoothly(steps=1)
    assert await stage.outcome() == "SUCCEEDED"
    assert "ACTIVITY_TASK_SCHEDULED" not in await events_of(stage)


async def test_a_short_failure_is_tried_over_at_once(stage: Stage) -> None:
    await stage.start()
    await stage.invoker.says("open", AWAY, stage.story.ends())
    assert await stage.outcome() == "SUCCEEDED"
    assert "ACTIVITY_TASK_SCHEDULED" not in await events_of(stage)


async def test_an_attempt_is_opened_under_the_same_lease_when_the_invoker_is_back(
    stage: Stage,
) -> None:
    await stage.start()
    await stage.invoker.says("open", *[AWAY] * 4, lambda call: stage.story.publish(call.attempt))
    await stage.invoker.says("publish", stage.story.ends())
    assert await stage.outcome() == "SUCCEEDED"
    assert len({call.attempt for call in stage.invoker.calls["open"]}) == 1
    assert len(stage.invoker.calls["open"]) == 5
    assert stage.invoker.calls["publish"][0].attempt == stage.invoker.calls["open"][0].attempt


async def test_an_invoker_that_does_not_answer_is_away(stage: Stage) -> None:
    await stage.start()
    await stage.invoker.called("open", 2)
    await stage.invoker.says("open", stage.story.ends())
    assert await stage.outcome() == "SUCCEEDED"
    assert "ACTIVITY_TASK_SCHEDULED" in await events_of(stage)


async def test_what_is_recorded_is_published_when_the_bus_is_back(stage: Stage) -> None:
    await stage.start()
    await stage.invoker.says("open", lambda call: stage.story.publish(call.attempt))
    await stage.invoker.says("publish", AWAY, AWAY, AWAY, stage.story.ends())
    assert await stage.outcome() == "SUCCEEDED"
    assert len(stage.invoker.calls["open"]) == 1
    assert len(stage.invoker.calls["publish"]) == 4


async def test_a_report_waits_until_the_invoker_is_back(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED, ACK_TIMEOUT=NOW))
    await stage.invoker.says("report", AWAY, AWAY, stage.story.ends())
    assert await stage.outcome() == "SUCCEEDED"


async def test_the_sla_is_reported_though_an_attempt_cannot_be_opened(stage: Stage) -> None:
    stage.story = Story(sla=A_SECOND)
    await stage.start()
    await stage.invoker.says("open", AWAY)
    await stage.invoker.says("report", stage.story.ends("CANCELLED"))
    assert (await stage.invoker.called("report")).event == "SLA_EXCEEDED"
    assert await stage.outcome() == "CANCELLED"


async def test_the_sla_is_reported_though_a_directive_cannot_be_published(stage: Stage) -> None:
    stage.story = Story(sla=A_SECOND)
    await stage.start(stage.story.publish(STORED))
    await stage.invoker.says("publish", AWAY)
    await stage.invoker.says("report", stage.story.ends("CANCELLED"))
    assert (await stage.invoker.called("report")).event == "SLA_EXCEEDED"
    assert await stage.outcome() == "CANCELLED"


async def test_a_signal_makes_what_was_asked_for_superfluous(stage: Stage) -> None:
    """Another invoker may be there, and know more."""
    await stage.start()
    await stage.invoker.says("open", AWAY)
    await stage.invoker.called("open", 3)
    await stage.signal("cancel", stage.story.end("CANCELLED"))
    assert await stage.outcome() == "CANCELLED"


async def test_an_attempt_that_is_not_wanted_is_not_asked_for_over_and_over(stage: Stage) -> None:
    following = stage.story.open()
    await stage.start(following)
    await stage.invoker.says("open", following, following, stage.story.ends())
    await stage.invoker.called("open", 3)
    first, second, third = (call.came for call in stage.invoker.calls["open"])
    assert A_SECOND <= second - first < third - second


async def test_a_refusal_that_says_what_comes_next_is_obeyed(stage: Stage) -> None:
    await stage.start()
    following = stage.story.publish(STORED)
    await stage.invoker.says("open", InvokerRefused(ErrorCode.STALE_ATTEMPT, "late", following))
    await stage.invoker.says("publish", stage.story.ends())
    call = await stage.invoker.called("publish")
    assert call.attempt.lease_id == STORED.lease_id
    assert await stage.outcome() == "SUCCEEDED"
    assert "ACTIVITY_TASK_FAILED" not in await events_of(stage)


@pytest.mark.parametrize("verb", ["open", "publish", "report"])
async def test_a_job_that_is_no_more_needs_no_workflow(stage: Stage, verb: str) -> None:
    first = {
        "open": stage.story.open(),
        "publish": stage.story.publish(STORED),
        "report": stage.story.wait(STORED, ACK_TIMEOUT=NOW),
    }
    await stage.start(first[verb])
    await stage.invoker.says(verb, refused(ErrorCode.JOB_NOT_FOUND))
    assert await stage.outcome() == "JOB_NOT_FOUND"


@pytest.mark.parametrize("code", [ErrorCode.UNAUTHENTICATED, ErrorCode.FORBIDDEN])
async def test_a_credential_can_be_mended_while_jobs_wait(
    stage: Stage, code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.start()
    await stage.invoker.says("open", *[refused(code)] * 3, stage.story.ends())
    assert await stage.outcome() == "SUCCEEDED"
    told = [r for r in caplog.records if r.message == "workflow.call_refused"]
    assert {record.__dict__["code"] for record in told} == {code}
