"""What a handler learns from its context, and the runtime from it."""

import logging
import threading
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lucius_contract.documents import Artifact
from lucius_contract.messages import Progress
from lucius_sdk.context import StopReason, WorkState
from lucius_sdk.error_model import StepCancelled, WorkStopped
from tests.runner.deadlines import DEADLINE
from tests.sdk.service.samples import LEASE, STEP_DEADLINE, artifact, context, published_to


@pytest.fixture
def state() -> WorkState:
    return WorkState(STEP_DEADLINE)


def test_work_goes_on_while_there_is_no_reason_to_stop(state: WorkState) -> None:
    ctx = context(state)
    ctx.check()
    assert (ctx.cancelled, ctx.stopping) == (False, False)


def test_a_cancelled_job_raises_out_of_check(state: WorkState) -> None:
    ctx = context(state)
    state.request_cancel()
    assert (ctx.cancelled, ctx.stopping) == (True, True)
    with pytest.raises(StepCancelled):
        ctx.check()


@pytest.mark.parametrize("reason", StopReason)
def test_stopped_work_raises_its_reason_out_of_check(state: WorkState, reason: StopReason) -> None:
    ctx = context(state)
    state.stop(reason)
    assert (ctx.cancelled, ctx.stopping) == (False, True)
    with pytest.raises(WorkStopped) as caught:
        ctx.check()
    assert caught.value.reason is reason


def test_work_that_nobody_waits_for_is_not_reported_as_cancelled(state: WorkState) -> None:
    state.request_cancel()
    state.stop(StopReason.LEASE_LOST)
    with pytest.raises(WorkStopped):
        state.check()


def test_the_first_reason_to_stop_counts(state: WorkState) -> None:
    state.stop(StopReason.SUPERSEDED)
    state.stop(StopReason.SHUTTING_DOWN)
    assert state.reason is StopReason.SUPERSEDED


def test_every_new_reason_is_told_once(state: WorkState) -> None:
    told: list[str] = []
    state.on_stop(lambda: told.append("early"))
    state.request_cancel()
    state.request_cancel()
    state.on_stop(lambda: told.append("late"))
    state.stop(StopReason.LEASE_LOST)
    state.stop(StopReason.LEASE_LOST)
    assert told == ["early", "late", "early", "late"]


def test_a_wait_ends_when_there_is_a_reason_to_stop(state: WorkState) -> None:
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            context(state).wait(DEADLINE)
        except StepCancelled as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    state.request_cancel()
    thread.join(DEADLINE)
    assert len(ended) == 1


def test_a_wait_without_reason_to_stop_ends_quietly(state: WorkState) -> None:
    context(state).wait(0)


def test_the_deadline_moves_on_and_never_back(state: WorkState) -> None:
    ctx = context(state)
    assert ctx.seconds_left() == 900
    state.set_deadline(STEP_DEADLINE + timedelta(minutes=5))
    state.set_deadline(STEP_DEADLINE)
    assert ctx.deadline == STEP_DEADLINE + timedelta(minutes=5)
    assert ctx.seconds_left() == 1200


def test_after_the_deadline_no_second_is_left() -> None:
    assert context(WorkState(STEP_DEADLINE - timedelta(hours=1))).seconds_left() == 0


def test_there_is_no_progress_until_some_is_told(state: WorkState) -> None:
    assert state.latest_progress() is None


def test_progress_keeps_what_is_not_told_again(state: WorkState) -> None:
    ctx = context(state)
    ctx.progress(0.25, "page 1")
    ctx.progress(0.5)
    assert state.latest_progress() == Progress(fraction=0.5, note="page 1")
    ctx.progress(note="page 2")
    assert state.latest_progress() == Progress(fraction=0.5, note="page 2")


@given(st.floats() | st.integers(), st.text(st.characters(exclude_categories=()), max_size=2000))
@example(float("nan"), "page \ud800\0 " * 400)
def test_no_progress_fails_the_work(fraction: float, note: str) -> None:
    state = WorkState(STEP_DEADLINE)
    context(state).progress(fraction, note)
    told = state.latest_progress()
    assert told is not None
    assert told.note is not None
    assert len(told.note) <= 500
    assert told.to_bytes()


def test_what_is_published_is_remembered_for_the_result() -> None:
    ctx = context(publisher=published_to("file:///out/b.txt"))
    assert ctx.published is None
    assert ctx.publish(b"text") == "file:///out/b.txt"
    assert ctx.published == "file:///out/b.txt"


async def test_publishing_hands_over_content_and_media_type() -> None:
    seen: list[object] = []

    def publisher(content: Artifact | bytes, media_type: str | None) -> str:
        seen.extend([content, media_type, threading.current_thread()])
        return "file:///out/a.txt"

    await context(publisher=publisher).apublish(artifact(), "text/plain")
    assert seen[:2] == [artifact(), "text/plain"]
    assert seen[2] is not threading.current_thread()


def test_stopped_work_publishes_nothing(state: WorkState) -> None:
    ctx = context(state)
    state.stop(StopReason.SUPERSEDED)
    with pytest.raises(WorkStopped):
        ctx.publish(b"late")
    assert ctx.published is None


def test_a_context_knows_its_attempt() -> None:
    ctx = context(changes={"attempt_no": 2})
    assert (ctx.job_id, ctx.tenant_id, ctx.attempt_no) == ("job_1", "tenant-a", 2)
    assert ctx.is_retry
    assert not context().is_retry


def test_a_context_shows_no_secret() -> None:
    assert repr(context()) == "<StepContext OCR job_1 attempt 1>"
    assert LEASE not in repr(context())


def test_a_context_takes_no_attributes_by_mistake() -> None:
    with pytest.raises(AttributeError):
        context().paylod = {}  # type: ignore[attr-defined]


def test_the_log_is_a_logger() -> None:
    assert context().log.isEnabledFor(logging.CRITICAL)
