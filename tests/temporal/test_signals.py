"""What was said later counts, however and how often it comes."""

import asyncio
import logging
from datetime import timedelta

import pytest

from lucius_orchestrator.domain.workflow import SIGNALS, Next
from lucius_orchestrator.ports.invoker import AttemptName
from tests.runner.deadlines import DEADLINE
from tests.temporal.stage import Stage, working
from tests.temporal.story import soon

STORED = AttemptName("", "acme", "s1", 2, "f" * 32)


@pytest.mark.parametrize("name", sorted(SIGNALS.values()))
async def test_every_signal_says_what_comes_next(stage: Stage, name: str) -> None:
    await stage.start(stage.story.wait(STORED))
    await stage.signal(name, stage.story.end())
    assert await stage.outcome() == "SUCCEEDED"


async def test_what_was_said_before_changes_nothing(stage: Stage) -> None:
    older = stage.story.open("s9")
    current = stage.story.wait(STORED)
    await stage.start(current)
    await stage.signal("step_result", older)
    await stage.signal("step_result", current)
    assert await stage.handle.query("state") == current
    await stage.signal("step_result", stage.story.end())
    await stage.outcome()
    assert not stage.invoker.calls["open"]


async def test_the_same_signal_twice_is_one(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED))
    following = stage.story.open("s2")
    await stage.invoker.says("open", stage.story.wait(STORED))
    for _ in range(2):
        await stage.signal("step_result", following)
    await stage.invoker.called("open")
    await stage.signal("step_result", following)
    await stage.signal("step_result", stage.story.end())
    await stage.outcome()
    assert len(stage.invoker.calls["open"]) == 1


async def test_signals_in_the_wrong_order_lead_to_the_right_end(idle_stage: Stage) -> None:
    stage = idle_stage
    await stage.start(stage.story.wait(STORED))
    acknowledged, ended = stage.story.wait(STORED), stage.story.end()
    await stage.signal("step_result", ended)
    await stage.signal("step_ack", acknowledged)
    async with working(stage):
        assert await stage.outcome() == "SUCCEEDED"
    assert not stage.invoker.calls


async def test_a_heartbeat_that_moves_the_lease_alone_is_later(stage: Stage) -> None:
    current = stage.story.wait(STORED)
    current["lease_expires_at"] = soon(timedelta(minutes=1))
    await stage.start(current)
    extended: Next = {**current, "lease_expires_at": soon(timedelta(minutes=2))}
    await stage.signal("step_heartbeat", extended)
    await stage.signal("step_heartbeat", current)
    assert await stage.handle.query("state") == extended
    await stage.handle.terminate()


async def test_a_signal_that_comes_before_the_workflow_has_begun_counts(idle_stage: Stage) -> None:
    await idle_stage.start()
    await idle_stage.signal("cancel", idle_stage.story.end("CANCELLED"))
    async with working(idle_stage):
        assert await idle_stage.outcome() == "CANCELLED"
    assert not idle_stage.invoker.calls


async def test_an_answer_that_a_signal_has_overtaken_changes_nothing(stage: Stage) -> None:
    await stage.start(stage.story.publish(STORED))
    late, ended = stage.story.wait(STORED), stage.story.end()
    await stage.invoker.called("publish")
    await stage.signal("step_result", ended)
    await stage.invoker.says("publish", late)
    assert await stage.outcome() == "SUCCEEDED"


BAD = {
    "nothing": [],
    "null": [None],
    "text": ["hello"],
    "a list": [[1]],
    "no next": [{"jobId": "j"}],
    "an empty next": [{"next": {}}],
    "a next of text": [{"next": "soon"}],
    "a time without zone": [{"next": {"at": "2030-01-01T00:00:00"}}],
    "timers of text": [{"next": {"timers": "never"}}],
    "a timer without a name": [{"next": {"timers": [{"event": 1, "deadline": "2030-01-01T00Z"}]}}],
    "a sequence of text": [{"next": {"seq": "first"}}],
    "an endless sequence": [{"next": {"seq": float("inf")}}],
    "a lease without end": [{"next": {"lease_seconds": float("nan")}}],
    "a lease that is no text": [{"next": {"lease_id": 7}}],
    "the end of time": [{"next": {"at": "9999-12-31T23:59:59Z"}}],
    "several arguments": [1, 2, 3],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD.keys())
async def test_a_malformed_signal_is_ignored_and_told(
    stage: Stage, arguments: list[object], caplog: pytest.LogCaptureFixture
) -> None:
    current = stage.story.wait(STORED)
    await stage.start(current)
    with caplog.at_level(logging.WARNING):
        await stage.handle.signal("step_ack", args=[_whole(current, a) for a in arguments])
        await stage.signal("step_result", stage.story.end())
        assert await stage.outcome() == "SUCCEEDED"
    assert "workflow.signal_malformed" in caplog.messages


def _whole(current: Next, argument: object) -> object:
    """With the members of which the test says nothing, and later than what is known."""
    if not isinstance(argument, dict) or not isinstance(argument.get("next"), dict):
        return argument
    if not argument["next"]:
        return argument
    return {"next": {**current, "seq": 99, **argument["next"]}}


async def test_an_unknown_signal_is_ignored(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    await stage.start(stage.story.wait(STORED))
    await stage.handle.signal("step_blessed", args=[{"next": 1}, "more"])
    await stage.signal("step_result", stage.story.end())
    assert await stage.outcome() == "SUCCEEDED"
    assert "workflow.signal_unknown" in caplog.messages


async def test_unknown_members_are_ignored(stage: Stage) -> None:
    first: Next = {**stage.story.open(), "omens": ["good"]}  # type: ignore[typeddict-unknown-key]
    first["timers"][0]["colour"] = "red"  # type: ignore[typeddict-unknown-key]
    await stage.start(first)
    ended: Next = {**stage.story.end(), "omens": []}  # type: ignore[typeddict-unknown-key]
    await stage.invoker.says("open", ended)
    assert await stage.outcome() == "SUCCEEDED"


async def test_an_answer_that_cannot_be_read_is_asked_for_again(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.start(stage.story.publish(STORED))
    broken: Next = {**stage.story.wait(STORED), "timers": "never"}  # type: ignore[typeddict-item]
    await stage.invoker.says("publish", broken, stage.story.ends())
    assert await stage.outcome() == "SUCCEEDED"
    assert "workflow.answer_malformed" in caplog.messages


async def test_many_signals_at_once_are_all_heard(stage: Stage) -> None:
    await stage.start(stage.story.wait(STORED))
    heard = [stage.story.wait(STORED) for _ in range(30)]
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(*(stage.signal("step_heartbeat", each) for each in heard))
    assert await stage.handle.query("state") == heard[-1]
    await stage.handle.terminate()
