"""The rules that a platform service must follow, LC-01 to LC-26, on the memory bus.

The same rules are checked from outside, on any service, by the conformance suite.
"""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lucius_bus.port import BusUnavailable
from lucius_bus.topology import dead_letters_of
from lucius_contract.messages import Ack, FailureClass, Reply, ResultStatus
from lucius_contract.routing import directive_topic
from lucius_sdk import StepContext
from lucius_sdk.idempotency_store import ClaimState, StepKey
from lucius_sdk.idempotency_store.port import Stored
from lucius_sdk.metrics import NoMetrics
from lucius_sdk.replies.answers import Answer, ReplyUnavailable, Verdict
from lucius_sdk.testing import FakeClock
from lucius_sdk.testing.replies import APPLIED
from tests.runner.deadlines import DEADLINE
from tests.sdk.runtime.rig import NAME, Payload, Rig, turns

KEY = StepKey("job_1", "step_01")
LOCK = 60


def away(_: Reply) -> Answer:
    raise ReplyUnavailable("nobody is there")


def stale(_: Reply) -> Answer:
    return Answer(Verdict.STALE)


async def test_lc01_the_ack_is_answered_before_the_work_begins(rig: Rig) -> None:
    began: list[int] = []
    rig.workshop.act = lambda _: began.append(len(rig.replies.acks))
    await rig.start()
    await rig.send(rig.directive())
    await rig.results()
    assert began == [1]
    assert [reply.type for reply in rig.replies.replies] == ["ACK", "RESULT"]


async def test_lc01_work_does_not_wait_longer_for_the_answer_than_it_may(rig: Rig) -> None:
    rig.replies.answering = away
    await rig.start(ack=5)
    await rig.send(rig.directive())
    await turns(50)
    await rig.advance(4)
    assert not rig.runs
    await rig.advance(2)
    await rig.until(lambda: rig.runs["job_1", 1] == 1)
    rig.replies.answering = lambda _: APPLIED
    await rig.advance(60)
    assert len(await rig.results()) == 1


async def test_lc02_replies_carry_the_identity_of_the_directive(rig: Rig) -> None:
    directive = rig.directive(attempt_no=3, correlation_id="of the client")
    await rig.start()
    await rig.send(directive)
    await rig.results()
    for reply in rig.replies.replies:
        assert (reply.job_id, reply.step_id) == (directive.job_id, directive.step_id)
        assert (reply.attempt_no, reply.lease_id) == (3, directive.lease_id)
        assert reply.tenant_id == directive.tenant_id
        assert reply.correlation_id == "of the client"
        assert reply.timestamp.tzinfo == UTC


async def test_lc03_nothing_failed_so_there_is_one_result(rig: Rig) -> None:
    await rig.start()
    await rig.send(rig.directive())
    await rig.settled()
    await rig.advance(120)
    assert len(rig.replies.results) == 1


async def test_lc03_a_result_whose_answer_was_lost_is_sent_again_byte_for_byte(rig: Rig) -> None:
    answers = [APPLIED, None, None, APPLIED]
    bodies: list[bytes] = []

    def answer(reply: Reply) -> Answer:
        bodies.append(reply.to_bytes())
        found = answers.pop(0)
        if found is None:
            raise ReplyUnavailable("the answer was lost")
        return found

    rig.replies.answering = answer
    await rig.start()
    await rig.send(rig.directive())
    await rig.until(lambda: len(bodies) == 2)
    await rig.advance(10)
    await rig.settled()
    assert len(bodies) == 4
    assert len(set(bodies[1:])) == 1


async def test_lc04_a_duplicate_after_completion_is_not_run_again(rig: Rig) -> None:
    await rig.start()
    await rig.send(rig.directive())
    await rig.settled()
    await rig.send(rig.directive(), times=3)
    await rig.settled()
    assert rig.runs["job_1", 1] == 1
    assert len(rig.replies.results) == 1


async def test_lc05_duplicates_at_the_same_time_are_one_run_and_one_result(rig: Rig) -> None:
    rig.workshop.hold()
    await rig.start()
    await rig.send(rig.directive(), times=5)
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.advance(5)
    rig.workshop.let_go()
    await rig.settled()
    assert rig.runs["job_1", 1] == 1
    assert len(rig.replies.results) == 1


async def test_lc05_nor_do_two_instances_run_the_same(rig: Rig) -> None:
    rig.workshop.hold()
    await rig.start(concurrency=1)
    await rig.start(concurrency=1)
    await rig.send(rig.directive(), times=2)
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.advance(3 * LOCK)
    rig.workshop.let_go()
    await rig.results()
    await rig.advance(10)
    await rig.settled()
    assert rig.runs["job_1", 1] == 1
    assert len(rig.replies.results) == 1


async def test_lc06_an_older_attempt_that_comes_late_is_not_run(rig: Rig) -> None:
    await rig.start()
    await rig.send(rig.directive(attempt_no=2))
    await rig.results()
    await rig.send(rig.directive(attempt_no=1))
    await rig.settled()
    assert rig.runs["job_1", 1] == 0
    assert [result.attempt_no for result in rig.replies.results] == [2]


async def test_lc06_a_newer_attempt_ends_the_older_one(rig: Rig) -> None:
    rig.workshop.hold()
    await rig.start()
    await rig.send(rig.directive(attempt_no=1))
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.send(rig.directive(attempt_no=2))
    await rig.until(lambda: rig.runs["job_1", 2] == 1)
    rig.workshop.let_go()
    await rig.settled()
    assert [result.attempt_no for result in rig.replies.results] == [2]


async def test_lc06_an_older_attempt_beside_a_newer_one_is_not_begun(rig: Rig) -> None:
    """The store does not know the newer one yet, and would let the older one begin."""
    await rig.start()
    rig.store.go_away()
    await rig.send(rig.directive(attempt_no=2))
    await rig.until(lambda: rig.locked() == 1)
    await turns(50)
    rig.store.come_back()
    await rig.send(rig.directive(attempt_no=1))
    await rig.until(lambda: rig.on_bus() == 1)
    await rig.advance(1)
    await rig.results()
    await rig.settled()
    assert rig.runs == {("job_1", 2): 1}
    assert {reply.attempt_no for reply in rig.replies.replies} == {2}


async def test_lc06_a_newer_attempt_ends_the_older_one_without_the_store(rig: Rig) -> None:
    rig.workshop.hold()
    await rig.start()
    await rig.send(rig.directive(attempt_no=1))
    await rig.until(lambda: rig.workshop.now == 1)
    rig.store.go_away()
    await rig.send(rig.directive(attempt_no=2))
    await rig.until(lambda: rig.workshop.now == 0)
    rig.store.come_back()
    rig.workshop.let_go()
    await rig.advance(1)
    await rig.results()
    await rig.settled()
    assert rig.runs == {("job_1", 1): 1, ("job_1", 2): 1}
    assert [result.attempt_no for result in rig.replies.results] == [2]


async def test_lc06_a_newer_attempt_elsewhere_ends_the_older_one(rig: Rig) -> None:
    """The first instance learns of it when it wants to store its result."""
    rig.workshop.hold()
    first = await rig.start(concurrency=1)
    await rig.send(rig.directive(attempt_no=1))
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.start(concurrency=1)
    await rig.send(rig.directive(attempt_no=2))
    await rig.until(lambda: rig.runs["job_1", 2] == 1)
    rig.workshop.let_go()
    await rig.settled()
    assert await rig.stop(first)
    assert [result.attempt_no for result in rig.replies.results] == [2]


async def test_lc07_an_expired_directive_is_neither_run_nor_answered(rig: Rig) -> None:
    late = rig.clock.now() - timedelta(seconds=3)
    directive = rig.directive(lease_expires_at=late.isoformat())
    message_lives = directive.model_copy(
        update={"lease_expires_at": rig.clock.now() + timedelta(minutes=1)}
    )
    await rig.start()
    await rig.send_raw(message_lives, directive.to_bytes())
    await rig.settled()
    assert not rig.runs
    assert not rig.replies.replies


async def test_lc07_within_the_skew_of_clocks_it_is_run(rig: Rig) -> None:
    late = rig.clock.now() - timedelta(seconds=1)
    directive = rig.directive(lease_expires_at=late.isoformat())
    living = directive.model_copy(
        update={"lease_expires_at": rig.clock.now() + timedelta(minutes=1)}
    )
    extended = Answer(Verdict.APPLIED, rig.clock.now() + timedelta(minutes=15))
    rig.replies.answering = lambda _: extended
    await rig.start()
    await rig.send_raw(living, directive.to_bytes())
    (result,) = await rig.results()
    assert result.status is ResultStatus.SUCCEEDED


async def test_lc07_work_that_outlives_its_lease_has_no_result(rig: Rig) -> None:
    rig.workshop.hold()
    rig.replies.answering = lambda reply: APPLIED if isinstance(reply, Ack) else away(reply)
    await rig.start()
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.advance(15 * 60 + 5, step=10)
    await rig.settled()
    await rig.until(lambda: rig.workshop.now == 0)
    rig.replies.answering = lambda _: APPLIED
    await rig.advance(120)
    assert not rig.replies.results


async def test_lc07_a_clock_that_is_set_back_gives_a_late_result_no_more_time(rig: Rig) -> None:
    """The handler ends between two looks at the deadline. By the wall clock, which is all that the
    store knows, there would be time left."""
    clock = WallClockSetLater(rig.clock)
    rig.workshop.hold()
    await rig.start(clock=clock)
    ends = rig.clock.now() + timedelta(seconds=900.05)
    await rig.send(rig.directive(lease_expires_at=ends.isoformat()))
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.advance(900, step=10)
    clock.set_by = timedelta(seconds=-10)
    await rig.advance(2)  # the skew of clocks
    assert rig.workshop.now == 1
    rig.clock.advance(0.08)
    rig.workshop.let_go()
    await rig.settled()
    stored = await rig.store.read(KEY)
    assert stored is not None
    assert stored.record.result is None
    await rig.advance(120)
    assert not rig.replies.results


class WallClockSetLater:
    """The clock of the others, until somebody sets its wall time."""

    def __init__(self, clock: FakeClock) -> None:
        self.set_by = timedelta(0)
        self._clock = clock
        self.monotonic = clock.monotonic
        self.call_later = clock.call_later
        self.sleep = clock.sleep

    def now(self) -> datetime:
        return self._clock.now() + self.set_by


async def test_lc08_a_stale_attempt_is_not_worked_on(rig: Rig) -> None:
    rig.replies.answering = stale
    await rig.start()
    await rig.send(rig.directive())
    await rig.settled()
    assert not rig.runs
    assert not rig.replies.results


async def test_lc08_an_ack_that_turns_out_stale_later_ends_the_work(rig: Rig) -> None:
    rig.workshop.hold()
    rig.replies.answering = away
    await rig.start(ack=1)
    await rig.send(rig.directive())
    await turns(50)
    await rig.advance(2)
    await rig.until(lambda: rig.workshop.now == 1)
    rig.replies.answering = stale
    await rig.advance(30)
    await rig.settled()
    await rig.until(lambda: rig.workshop.now == 0)
    assert not rig.replies.results


async def test_lc09_a_new_attempt_runs_anew_with_its_own_lease(rig: Rig) -> None:
    await rig.start()
    await rig.send(rig.directive(attempt_no=1))
    await rig.results(1)
    second = rig.directive(attempt_no=2)
    await rig.send(second)
    results = await rig.results(2)
    assert rig.runs == {("job_1", 1): 1, ("job_1", 2): 1}
    assert results[1].lease_id == second.lease_id
    assert results[0].artifacts[0].uri != results[1].artifacts[0].uri


async def test_lc10_artifacts_exist_as_the_result_says(rig: Rig) -> None:
    await rig.start()
    await rig.send(rig.directive())
    (result,) = await rig.results()
    (artifact,) = result.artifacts
    path = Path(artifact.uri.removeprefix("file://"))
    content = path.read_bytes()
    assert path.parent == rig.folder / "lucius/tenant/job_1/test/1"
    assert (artifact.size, artifact.sha256) == (
        len(content),
        hashlib.sha256(content).hexdigest(),
    )


async def test_lc11_nothing_is_written_elsewhere(rig: Rig) -> None:
    def act(ctx: StepContext[Payload]) -> None:
        ctx.publish(ctx.workspace.write("output.txt", "text"))
        for name in ("../escaped", "/tmp/escaped", "a/../../escaped"):  # noqa: S108
            with pytest.raises(Exception, match="name"):
                ctx.workspace.write(name, b"")

    rig.workshop.act = act
    await rig.start()
    await rig.send(rig.directive())
    (result,) = await rig.results()
    assert result.status is ResultStatus.SUCCEEDED, result.error
    assert result.output_ref is not None
    assert result.output_ref.uri == f"{rig.folder.as_uri()}/output"
    assert rig.files() == {"output", "lucius/tenant/job_1/test/1/output.txt"}


async def test_lc12_an_invalid_payload_fails_for_good_and_is_not_run(rig: Rig) -> None:
    await rig.start()
    await rig.send(rig.directive(payload={"pages": "many"}))
    (result,) = await rig.results()
    assert (result.status, result.failure_class) == (
        ResultStatus.FAILED_FINAL,
        FailureClass.NON_RETRYABLE,
    )
    assert result.error is not None
    assert result.error.code == "PAYLOAD_INVALID"
    assert "/payload/pages" in result.error.message
    assert not rig.runs


async def test_lc13_a_malformed_directive_is_set_aside_and_the_next_is_served(rig: Rig) -> None:
    await rig.start(concurrency=1)
    directive = rig.directive()
    for body in (b"no json", b"{}", b'{"schema_version": "2"}', b"\xff\x00"):
        await rig.send_raw(directive, body)
    await rig.send(directive)
    await rig.results()
    await rig.settled()
    topic, aside = directive_topic(directive.lane), dead_letters_of(NAME)
    dead = await rig.bus.receive(topic, aside, 10, timedelta(0))
    reasons = [delivery.message.properties["DeadLetterReason"] for delivery in dead]
    assert reasons == [
        "DIRECTIVE_INVALID",
        "DIRECTIVE_INVALID",
        "SCHEMA_VERSION_UNSUPPORTED",
        "DIRECTIVE_INVALID",
    ]


async def test_lc14_a_fault_of_storage_may_be_tried_again(rig: Rig) -> None:
    def act(ctx: StepContext[Payload]) -> None:
        away = rig.folder.with_name("away")
        rig.folder.rename(away)
        try:
            ctx.workspace.write("output.txt", "text")
        finally:
            away.rename(rig.folder)

    rig.workshop.act = act
    await rig.start()
    await rig.send(rig.directive())
    (result,) = await rig.results()
    assert (result.status, result.failure_class) == (
        ResultStatus.FAILED_RETRY,
        FailureClass.RETRYABLE,
    )
    assert result.error is not None
    assert result.error.code == "STORAGE_UNAVAILABLE"


async def test_lc15_a_result_waits_for_an_orchestrator_that_is_down(rig: Rig) -> None:
    """Also after the lease: whether it still counts is the orchestrator's to say. And it waits
    without a slot."""
    rig.replies.answering = lambda reply: APPLIED if isinstance(reply, Ack) else away(reply)
    await rig.start(concurrency=1)
    await rig.send(rig.directive("job_1"))
    await rig.until(lambda: rig.runs["job_1", 1] == 1)
    await rig.send(rig.directive("job_2"))
    await rig.until(lambda: rig.runs["job_2", 1] == 1)
    for job in ("job_1", "job_2"):
        await until_stored(rig, ClaimState.COMPLETED, StepKey(job, "step_01"))
    await rig.advance(20 * 60, step=10)
    assert not rig.replies.results
    rig.replies.answering = lambda _: APPLIED
    await rig.advance(60)
    results = await rig.results(2)
    await rig.settled()
    assert {result.job_id for result in results} == {"job_1", "job_2"}
    assert sum(rig.runs.values()) == 2


async def test_lc16_killed_in_mid_work_there_is_one_result_after_redelivery(rig: Rig) -> None:
    rig.workshop.hold()
    first = await rig.start()
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.kill(first)
    rig.workshop.let_go()
    await rig.start()
    await rig.advance(LOCK + 10)
    (result,) = await rig.results()
    await rig.settled()
    assert rig.runs["job_1", 1] == 2
    assert result.artifacts[0].uri.endswith("/test/1/~2/output.txt")
    assert len(rig.replies.results) == 1


async def test_lc17_killed_before_reporting_the_stored_result_is_reported(rig: Rig) -> None:
    rig.replies.answering = lambda reply: APPLIED if isinstance(reply, Ack) else away(reply)
    first = await rig.start()
    await rig.send(rig.directive())
    await until_stored(rig, ClaimState.COMPLETED)
    stored = await rig.store.read(KEY)
    await rig.kill(first)
    rig.replies.answering = lambda _: APPLIED
    await rig.start()
    await rig.advance(LOCK + 10)
    await rig.results()
    await rig.settled()
    assert rig.runs["job_1", 1] == 1
    assert stored is not None
    assert stored.record.result is not None
    assert rig.replies.bodies[-1] == stored.record.result.body
    assert len(rig.replies.results) == 1


async def until_stored(rig: Rig, state: ClaimState, key: StepKey = KEY) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            stored = await rig.store.read(key)
            if stored is not None and stored.record.state is state:
                return
            await turns(1)


async def test_lc18_on_the_way_out_work_is_finished(rig: Rig) -> None:
    rig.workshop.hold()
    runtime = await rig.start()
    await rig.send(rig.directive("job_1"))
    await rig.until(lambda: rig.workshop.now == 1)
    stopping = asyncio.create_task(runtime.stop(10))
    await turns(50)
    await rig.send(rig.directive("job_2"))
    rig.workshop.let_go()
    assert await stopping
    rig.instances.clear()
    assert [result.job_id for result in rig.replies.results] == ["job_1"]
    assert rig.on_bus() == 1


async def test_lc18_what_does_not_finish_is_released_to_another(rig: Rig) -> None:
    """At once: nobody waits for a lock to run out."""
    rig.workshop.hold()
    first = await rig.start()
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    assert await rig.stop(first, grace=10)
    before = rig.clock.monotonic()
    rig.workshop.let_go()
    await rig.start()
    (result,) = await rig.results()
    assert rig.clock.monotonic() == before
    assert result.artifacts[0].uri.endswith("/test/1/~2/output.txt")


async def test_lc18_work_is_given_back_before_the_grace_time_is_over(rig: Rig) -> None:
    """It has most of the time to finish, and there is some left to give it back."""
    rig.workshop.hold()
    runtime = await rig.start()
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    stopping = asyncio.create_task(runtime.stop(10))
    await turns(50)
    await rig.advance(7)
    assert rig.workshop.now == 1
    assert rig.locked() == 1
    await rig.advance(2)
    await rig.until(lambda: rig.locked() == 0)
    stored = await rig.store.read(KEY)
    assert stored is not None
    assert stored.record.owner is None
    await stopping
    rig.instances.clear()
    assert rig.on_bus() == 1


async def test_lc18_a_step_that_waits_for_another_instance_is_given_back_at_once(
    rig: Rig,
) -> None:
    """No time passes."""
    rig.workshop.hold()
    await rig.start(concurrency=1)
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    waiting = Waiting()
    second = await rig.start(concurrency=1, metrics=waiting)
    await rig.send(rig.directive())
    await rig.until(lambda: waiting.now == 1)
    async with asyncio.timeout(DEADLINE):
        assert await second.stop(10)
    rig.instances.remove(second)
    assert (rig.on_bus(), rig.locked()) == (2, 1)
    rig.workshop.let_go()
    await rig.settled()
    assert rig.runs == {("job_1", 1): 1}


async def test_lc18_a_step_that_waits_for_a_slot_is_given_back_at_once(rig: Rig) -> None:
    """It is not begun when work that is finished frees a slot."""
    rig.workshop.hold()
    doomed = await rig.start(concurrency=1)
    await rig.send(rig.directive("job_1"))
    await rig.until(lambda: rig.workshop.now == 1)
    waiting = Waiting()
    second = await rig.start(concurrency=1, metrics=waiting)
    await rig.send(rig.directive("job_1"))
    await rig.until(lambda: waiting.now == 1)
    await rig.send(rig.directive("job_2"))
    await rig.until(lambda: rig.workshop.now == 2)
    await rig.kill(doomed)
    await rig.advance(LOCK + 10)
    stored = await rig.store.read(KEY)
    assert stored is not None
    assert stored.record.epoch == 2
    assert waiting.now == 1
    stopping = asyncio.create_task(second.stop(10))
    rig.instances.remove(second)
    await rig.until(lambda: rig.locked() == 1)
    rig.workshop.let_go()
    async with asyncio.timeout(DEADLINE):
        await stopping
    assert rig.runs == {("job_1", 1): 1, ("job_2", 1): 1}
    assert waiting.now == 0


async def test_lc18_a_step_that_would_wait_is_given_back_as_soon_as_it_is_known(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop comes while the store is asked whether somebody has it."""
    rig.workshop.hold()
    await rig.start(concurrency=1)
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    read, asked, answers = rig.store.read, asyncio.Event(), asyncio.Event()

    async def slow(key: StepKey) -> Stored | None:
        asked.set()
        await answers.wait()
        return await read(key)

    monkeypatch.setattr(rig.store, "read", slow)
    second = await rig.start(concurrency=1)
    await rig.send(rig.directive())
    async with asyncio.timeout(DEADLINE):
        await asked.wait()
        stopping = asyncio.create_task(second.stop(10))
        rig.instances.remove(second)
        await turns(50)
        answers.set()
        await stopping
    assert (rig.on_bus(), rig.locked()) == (2, 1)


class Waiting(NoMetrics):
    def __init__(self) -> None:
        self.now = 0

    def waiting(self, delta: int) -> None:
        self.now += delta


async def test_lc18_a_result_is_tried_again_within_the_grace_time(rig: Rig) -> None:
    rig.replies.answering = lambda reply: APPLIED if isinstance(reply, Ack) else away(reply)
    runtime = await rig.start()
    await rig.send(rig.directive())
    await until_stored(rig, ClaimState.COMPLETED)
    stopping = asyncio.create_task(runtime.stop(10))
    rig.instances.remove(runtime)
    await turns(50)
    rig.replies.answering = lambda _: APPLIED
    await rig.advance(5)
    async with asyncio.timeout(DEADLINE):
        await stopping
    assert len(rig.replies.results) == 1
    assert rig.on_bus() == 0


async def test_lc18_a_result_that_could_not_be_sent_is_left_to_another(rig: Rig) -> None:
    rig.replies.answering = lambda reply: APPLIED if isinstance(reply, Ack) else away(reply)
    first = await rig.start()
    await rig.send(rig.directive())
    await until_stored(rig, ClaimState.COMPLETED)
    assert await rig.stop(first, grace=10)
    rig.replies.answering = lambda _: APPLIED
    await rig.start()
    await rig.results()
    await rig.settled()
    assert rig.runs["job_1", 1] == 1


async def test_lc19_unknown_fields_are_tolerated(rig: Rig) -> None:
    directive = rig.directive(not_known={"yet": 1}, schema_version="1.7")
    await rig.start()
    await rig.send(directive)
    (result,) = await rig.results()
    assert result.status is ResultStatus.SUCCEEDED


async def test_lc20_replies_continue_the_trace(rig: Rig) -> None:
    directive = rig.directive()
    await rig.start()
    await rig.send(directive)
    await rig.results()
    _, trace, parent, _ = directive.traceparent.split("-")
    for reply in rig.replies.replies:
        assert reply.traceparent is not None
        _, own_trace, own_span, _ = reply.traceparent.split("-")
        assert own_trace == trace
        assert own_span != parent
        assert reply.correlation_id == directive.correlation_id


async def test_lc21_it_is_known_when_the_bus_is_away(rig: Rig) -> None:
    runtime = await rig.start()
    await runtime.check_bus()
    rig.bus.go_away()
    with pytest.raises(BusUnavailable):
        await runtime.check_bus()
    rig.bus.come_back()
    await rig.advance(10)
    await rig.until(lambda: not runtime.failing_lanes)
    await runtime.check_bus()


@pytest.mark.parametrize("tenants", [1, 12])
async def test_lc22_as_many_at_once_as_stated_and_never_more(rig: Rig, tenants: int) -> None:
    rig.workshop.hold()
    await rig.start(concurrency=6)
    for number in range(24):
        await rig.send(rig.directive(f"job_{number}", tenant_id=f"tenant {number % tenants}"))
    await rig.until(lambda: rig.workshop.now == 6)
    await turns(200)
    assert rig.workshop.most == 6
    rig.workshop.let_go()
    await rig.results(24)
    assert rig.workshop.most == 6


async def test_lc22_nothing_is_locked_for_which_there_is_no_slot(rig: Rig) -> None:
    rig.workshop.hold()
    await rig.start(concurrency=2)
    for number in range(10):
        await rig.send(rig.directive(f"job_{number}", tenant_id=f"tenant {number}"))
    await rig.until(lambda: rig.workshop.now == 2)
    await turns(200)
    locked = [rig.bus.counts(directive_topic(lane), NAME).locked for lane in range(16)]
    assert sum(locked) == 2


async def test_lc23_a_step_type_that_it_does_not_own_is_not_run(rig: Rig) -> None:
    await rig.start()
    await rig.send(rig.directive(step_type="OTHER"))
    await rig.settled()
    assert rig.dead() == 1
    assert not rig.runs
    assert not rig.replies.replies


async def test_lc24_work_longer_than_the_lock_is_run_once(rig: Rig) -> None:
    rig.workshop.hold()
    await rig.start()
    await rig.start()
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.advance(5 * LOCK)
    rig.workshop.let_go()
    await rig.results()
    await rig.settled()
    assert rig.runs["job_1", 1] == 1
    assert len(rig.replies.results) == 1


async def test_lc25_over_http_replies_go_to_the_url_with_the_token(rig: Rig) -> None:
    await rig.start()
    await rig.send(rig.directive())
    await rig.results()
    for address in rig.replies.addresses:
        assert (address.ack_url, address.token) == ("http://127.0.0.1:9/ack", "secret-token")


async def test_lc25_without_urls_replies_go_to_the_lane_of_the_directive(rig: Rig) -> None:
    directive = rig.bus_directive(tenant_id="another tenant")
    await rig.start()
    await rig.send(directive)
    ack, result = await rig.bus_replies(directive, 2)
    assert (ack.type, result.type) == ("ACK", "RESULT")
    await rig.settled()
    assert not rig.replies.replies


async def test_lc26_long_work_sends_heartbeats_that_extend_its_lease(rig: Rig) -> None:
    def answer(_: Reply) -> Answer:
        return Answer(Verdict.APPLIED, rig.clock.now() + timedelta(minutes=15))

    rig.replies.answering = answer
    rig.workshop.hold()
    rig.workshop.act = lambda ctx: ctx.progress(0.5, "half")
    await rig.start()
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.advance(60 * 60 + 10, step=10)
    beats = len(rig.replies.heartbeats)
    assert beats == 60 // 5
    rig.workshop.let_go()
    (result,) = await rig.results()
    assert result.status is ResultStatus.SUCCEEDED


async def test_lc26_by_the_bus_a_heartbeat_that_was_sent_extends_the_lease(rig: Rig) -> None:
    rig.workshop.hold()
    directive = rig.bus_directive()
    await rig.start()
    await rig.send(directive)
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.advance(60 * 60 + 10, step=10)
    rig.workshop.let_go()
    replies = await rig.bus_replies(directive, 14)
    assert [reply.type for reply in replies] == ["ACK", *["HEARTBEAT"] * 12, "RESULT"]


async def test_lc26_a_cancelled_job_ends_the_work(rig: Rig) -> None:
    rig.replies.answering = lambda _: Answer(Verdict.APPLIED, cancel_requested=True)
    rig.workshop.hold()
    await rig.start()
    await rig.send(rig.directive())
    (result,) = await rig.results()
    assert (result.status, result.failure_class) == (
        ResultStatus.FAILED_FINAL,
        FailureClass.NON_RETRYABLE,
    )
    assert result.error is not None
    assert result.error.code == "CANCELLED"
