"""Courses that jobs take, which stand for all workflows that run somewhere: their histories are
recorded, and every later release must be able to go on with them."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from lucius_orchestrator.ports.invoker import InvokerUnavailable
from tests.temporal.stage import Stage
from tests.temporal.story import HOUR, NOW, soon

AWAY = InvokerUnavailable("connection refused")
SOON = timedelta(milliseconds=200)
HISTORY_LIMIT = 15
"""Of the course that is continued in another history."""


async def three_steps(stage: Stage) -> None:
    await stage.start()
    await stage.goes_smoothly()


async def retry(stage: Stage) -> None:
    """A step fails, its next attempt waits, then succeeds."""
    await stage.start()
    await _is_dispatched(stage)
    await stage.invoker.called("publish")
    again = stage.story.open("s0", 2, "IN_PROGRESS", at=soon(SOON))
    await stage.signal("step_result", again)
    await stage.invoker.called("publish", 2)
    await stage.signal("step_result", stage.story.end())


async def ack_timeout(stage: Stage) -> None:
    await stage.start()
    await _is_dispatched(stage, ACK_TIMEOUT=SOON)
    again = stage.story.open("s0", 2, "DISPATCHING", at=soon(SOON * 2))
    await stage.invoker.says("report", lambda _: stage.story.later(again))
    await stage.invoker.called("publish", 2)
    await stage.signal("step_result", stage.story.end())


async def lease_expiry(stage: Stage) -> None:
    """The lease was extended once, unheard; then it runs out, with no attempt left."""
    await stage.start()
    await _is_dispatched(stage, ACK_TIMEOUT=HOUR)
    call = await stage.invoker.called("publish")
    moved = lambda _: stage.story.wait(call.attempt, LEASE_EXPIRED=SOON)  # noqa: E731
    await stage.invoker.says("report", moved, stage.story.ends("FAILED_FINAL"))
    await stage.signal("step_ack", stage.story.wait(call.attempt, LEASE_EXPIRED=NOW))


async def pause_and_resume(stage: Stage) -> None:
    await stage.start()
    await _is_dispatched(stage, ACK_TIMEOUT=HOUR)
    call = await stage.invoker.called("publish")
    await stage.signal("pause", stage.story.wait(call.attempt, "PAUSING", LEASE_EXPIRED=HOUR))
    await stage.signal("step_result", stage.story.wait(call.attempt, "PAUSED"))
    await stage.signal("resume", stage.story.open("s1", 1, "IN_PROGRESS"))
    await stage.invoker.called("publish", 2)
    await stage.signal("step_result", stage.story.end())


async def cancel(stage: Stage) -> None:
    await stage.start()
    await _is_dispatched(stage, ACK_TIMEOUT=HOUR)
    call = await stage.invoker.called("publish")
    await stage.signal("cancel", stage.story.wait(call.attempt, "CANCELLING", ACK_TIMEOUT=HOUR))
    await stage.signal("step_result", stage.story.end("CANCELLED"))


async def cancel_by_temporal(stage: Stage) -> None:
    await stage.start()
    await _is_dispatched(stage, ACK_TIMEOUT=HOUR)
    await stage.invoker.called("publish")
    await stage.invoker.says("command", stage.story.ends("CANCELLED"))
    await stage.handle.cancel()


async def invoker_away(stage: Stage) -> None:
    """First it is away, then the bus; a signal makes the last try superfluous."""
    await stage.start()
    await stage.invoker.says("open", AWAY, AWAY, AWAY, lambda c: stage.story.publish(c.attempt))
    await stage.invoker.says("publish", AWAY)
    await stage.invoker.called("publish", 2)
    await stage.signal("step_result", stage.story.end())


async def asked_in_vain(stage: Stage) -> None:
    following = stage.story.open()
    await stage.start(following)
    await stage.invoker.says("open", following, stage.story.ends())


async def continued(stage: Stage) -> None:
    await stage.start()
    await _is_dispatched(stage, ACK_TIMEOUT=HOUR)
    call = await stage.invoker.called("publish")
    for _ in range(HISTORY_LIMIT):
        await stage.signal("step_heartbeat", stage.story.wait(call.attempt, LEASE_EXPIRED=HOUR))
    await stage.signal("step_result", stage.story.open("s1", 1, "IN_PROGRESS"))
    await stage.invoker.called("publish", 2)
    await stage.signal("step_result", stage.story.end())


async def _is_dispatched(stage: Stage, **timers: timedelta) -> None:
    await stage.invoker.says("open", lambda call: stage.story.publish(call.attempt))
    await stage.invoker.says(
        "publish", lambda call: stage.story.wait(call.attempt, "DISPATCHING", **timers)
    )


SCENARIOS: dict[str, tuple[Callable[[Stage], Awaitable[None]], str]] = {
    "three_steps": (three_steps, "SUCCEEDED"),
    "retry": (retry, "SUCCEEDED"),
    "ack_timeout": (ack_timeout, "SUCCEEDED"),
    "lease_expiry": (lease_expiry, "FAILED_FINAL"),
    "pause_and_resume": (pause_and_resume, "SUCCEEDED"),
    "cancel": (cancel, "CANCELLED"),
    "cancel_by_temporal": (cancel_by_temporal, "CANCELLED"),
    "invoker_away": (invoker_away, "SUCCEEDED"),
    "asked_in_vain": (asked_in_vain, "SUCCEEDED"),
    "continued": (continued, "SUCCEEDED"),
}
"""Each with the state in which it ends."""


def history_limit(name: str) -> int:
    return HISTORY_LIMIT if name == "continued" else 2_000
