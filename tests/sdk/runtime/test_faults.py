"""What a running service does when something around it fails."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lucius_bus.port import Delivery, LockLost
from lucius_contract.documents import Artifact
from lucius_contract.messages import Ack, Reply, ResultStatus
from lucius_contract.routing import directive_topic, lane_of
from lucius_sdk import Service, StepContext
from lucius_sdk.clock import SystemClock
from lucius_sdk.idempotency_store import ClaimState, Record, StepKey, StoreUnusable
from lucius_sdk.metrics import NoMetrics
from lucius_sdk.replies.answers import Answer, ReplyUnavailable, Verdict
from lucius_sdk.testing import FakeClock
from lucius_sdk.testing.replies import APPLIED
from tests.runner.deadlines import DEADLINE
from tests.sdk.runtime.rig import NAME, Payload, Rig, turns
from tests.sdk.runtime.test_rules import LOCK, away, until_stored

KEY = StepKey("job_1", "step_01")


async def test_the_third_take_over_of_an_attempt_is_answered_and_not_run(rig: Rig) -> None:
    rig.workshop.hold()
    await rig.send(rig.directive())
    for deaths in range(1, 4):
        doomed = await rig.start()
        await rig.advance(LOCK + 5)
        await rig.until(lambda so_far=deaths: rig.runs["job_1", 1] == so_far)  # type: ignore[misc]
        await rig.kill(doomed)
    await rig.start()
    await rig.advance(LOCK + 5)
    (result,) = await rig.results()
    assert result.status is ResultStatus.FAILED_RETRY
    assert result.error is not None
    assert result.error.code == "CRASH_LOOP"
    assert rig.runs["job_1", 1] == 3


async def test_a_result_whose_message_has_expired_is_found_in_the_store(rig: Rig) -> None:
    await kill_before_it_reports(rig)
    assert rig.on_bus() == 0
    rig.replies.answering = lambda _: APPLIED
    await rig.start()
    (result,) = await rig.results()
    assert result.status is ResultStatus.SUCCEEDED
    assert rig.runs["job_1", 1] == 1
    await until_stored(rig, ClaimState.REPORTED)


async def test_a_result_that_nobody_ever_answers_holds_up_no_other(rig: Rig) -> None:
    await kill_before_it_reports(rig)
    rig.replies.answering = lambda reply: away(reply) if reply.job_id == "job_1" else APPLIED
    await rig.start()
    await rig.advance(1)
    await leave(rig, "job_2")
    await rig.advance(60)
    (result,) = await rig.results()
    assert result.job_id == "job_2"


async def test_an_adopted_result_stays_with_one_instance_for_as_long_as_it_takes(
    rig: Rig,
) -> None:
    await kill_before_it_reports(rig)
    await rig.start()
    await rig.start()
    await turns(50)
    await stays_claimed(rig)


async def test_so_does_a_result_that_was_stored_by_another_and_came_with_its_message(
    rig: Rig,
) -> None:
    rig.replies.answering = lambda reply: APPLIED if isinstance(reply, Ack) else away(reply)
    doomed = await rig.start()
    await rig.send(rig.directive())
    await until_stored(rig, ClaimState.COMPLETED)
    await rig.kill(doomed)
    await rig.start()
    await rig.start()
    await rig.advance(LOCK + 5)
    await stays_claimed(rig)


async def test_an_adopted_result_is_released_at_the_stop_also_if_the_store_is_slow(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop waits for it, so that another instance takes the result over at once."""
    write, asked, answers = rig.store.write, asyncio.Event(), asyncio.Event()

    async def slow(key: StepKey, record: Record, expected: str | None) -> str:
        asked.set()
        await answers.wait()
        return await write(key, record, expected)

    await kill_before_it_reports(rig)
    runtime = await rig.start()
    await turns(50)
    monkeypatch.setattr(rig.store, "write", slow)
    stopping = asyncio.create_task(runtime.stop(10))
    rig.instances.remove(runtime)
    async with asyncio.timeout(DEADLINE):
        await asked.wait()
        await turns(50)
        answers.set()
        await stopping
    stored = await rig.store.read(KEY)
    assert stored is not None
    assert (stored.record.epoch, stored.record.owner) == (2, None)


async def test_no_result_is_adopted_after_the_stop(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop comes while the store is looked through."""
    lapsed, asked, answers = rig.store.lapsed_results, asyncio.Event(), asyncio.Event()

    async def slow(before: datetime, limit: int) -> list[StepKey]:
        asked.set()
        await answers.wait()
        return await lapsed(before, limit)

    await kill_before_it_reports(rig)
    rig.replies.answering = lambda reply: away(reply) if reply.job_id == "job_1" else APPLIED
    rig.workshop.hold()
    monkeypatch.setattr(rig.store, "lapsed_results", slow)
    runtime = await rig.start()
    await rig.send(rig.directive("job_2"))
    await rig.until(lambda: rig.workshop.now == 1)
    stopping = asyncio.create_task(runtime.stop(10))
    rig.instances.remove(runtime)
    async with asyncio.timeout(DEADLINE):
        await asked.wait()
        await turns(50)
        answers.set()
        await turns(50)
        rig.workshop.let_go()
        await stopping
    stored = await rig.store.read(KEY)
    assert stored is not None
    assert stored.record.epoch == 1


async def test_a_store_that_does_not_answer_holds_up_the_stop_for_no_longer_than_the_grace_time(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(key: StepKey, record: Record, expected: str | None) -> str:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    await kill_before_it_reports(rig)
    runtime = await rig.start()
    await turns(50)
    monkeypatch.setattr(rig.store, "write", silent)
    stopping = asyncio.create_task(runtime.stop(10))
    rig.instances.remove(runtime)
    await turns(50)
    await rig.advance(10)
    async with asyncio.timeout(DEADLINE):
        await stopping


async def stays_claimed(rig: Rig) -> None:
    """By whoever has it now, while the orchestrator is away for minutes."""
    for _ in range(5 * LOCK):
        await rig.advance(1)
        stored = await rig.store.read(KEY)
        assert stored is not None
        assert stored.record.epoch == 2
        assert stored.record.until - rig.clock.now() > timedelta(seconds=LOCK / 4)
    rig.replies.answering = lambda _: APPLIED
    await rig.advance(60)
    await until_stored(rig, ClaimState.REPORTED)
    assert len(rig.replies.results) == 1


async def kill_before_it_reports(rig: Rig) -> None:
    """Its result is stored; its message expires."""
    rig.replies.answering = lambda reply: APPLIED if isinstance(reply, Ack) else away(reply)
    doomed = await rig.start()
    await rig.send(rig.directive())
    await until_stored(rig, ClaimState.COMPLETED)
    await rig.kill(doomed)
    await rig.advance(16 * 60, step=60)


async def leave(rig: Rig, job: str) -> None:
    """A result in the store, of an instance that died long ago."""
    stored = await rig.store.read(KEY)
    assert stored is not None
    assert stored.record.result is not None
    body = stored.record.result.body.replace(b"job_1", job.encode())
    result = replace(stored.record.result, body=body)
    record = stored.record._replace(result=result, until=rig.clock.now() - timedelta(hours=1))
    await rig.store.write(StepKey(job, "step_01"), record, None)


async def test_a_duplicate_that_comes_while_the_step_is_settled_is_settled_with_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    directive, complete = rig.directive(), rig.bus.complete
    topic = directive_topic(directive.lane)
    settled: list[Delivery] = []

    async def duplicated(delivery: Delivery) -> None:
        settled.append(delivery)
        if len(settled) == 1:
            await rig.send(directive)
            await rig.until(lambda: rig.bus.counts(topic, NAME).locked == 2)
            await turns(20)
        await complete(delivery)

    monkeypatch.setattr(rig.bus, "complete", duplicated)
    await rig.start()
    await rig.send(directive)
    await rig.settled()
    assert len(settled) == 2
    assert rig.runs["job_1", 1] == 1


async def test_work_whose_lease_ended_while_it_waited_for_a_slot_is_not_begun(rig: Rig) -> None:
    rig.replies.answering = lambda _: Answer(Verdict.APPLIED, rig.clock.now() + timedelta(hours=1))
    rig.workshop.hold()
    doomed = await rig.start(concurrency=1)
    directive = rig.bus_directive()
    await rig.send(directive)
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.start(concurrency=1)
    await rig.send(directive)
    await rig.until(lambda: rig.bus.counts(directive_topic(directive.lane), NAME).locked == 2)
    await rig.send(rig.directive("job_2"))
    await rig.until(lambda: rig.workshop.now == 2)
    await rig.kill(doomed)
    await rig.advance(16 * 60, step=5)
    rig.workshop.let_go()
    await rig.results()
    await rig.settled()
    assert rig.runs["job_1", 1] == 1
    assert [reply.type for reply in await rig.bus_replies(directive, 1)] == ["ACK"]


async def test_a_message_whose_settlement_was_lost_is_settled_when_it_comes_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = rig.bus.complete

    async def lose(delivery: Delivery) -> None:
        monkeypatch.setattr(rig.bus, "complete", complete)
        raise LockLost(delivery.message.message_id)

    monkeypatch.setattr(rig.bus, "complete", lose)
    await rig.start()
    await rig.send(rig.directive())
    await rig.results()
    await rig.advance(LOCK + 5)
    await rig.settled()
    assert rig.runs["job_1", 1] == 1
    assert len(rig.replies.results) == 1


async def test_work_goes_on_when_its_lock_is_lost_and_takes_the_message_again(rig: Rig) -> None:
    """The bus was away for longer than the lock; the message comes again, to the same instance."""
    rig.workshop.hold()
    await rig.start()
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    rig.bus.go_away()
    await rig.advance(LOCK + 5)
    rig.bus.come_back()
    await rig.advance(10)
    rig.workshop.let_go()
    await rig.results()
    await rig.settled()
    assert rig.runs["job_1", 1] == 1
    assert len(rig.replies.results) == 1


async def test_a_lock_that_ran_out_while_the_bus_was_away_is_lost_and_not_renewed_again(
    rig: Rig,
) -> None:
    renewals = Renewals()
    rig.workshop.hold()
    await rig.start(metrics=renewals)
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    rig.bus.go_away()
    await rig.advance(LOCK + 1)
    failed = renewals.counts["failed"]
    assert renewals.counts == {"failed": failed, "lost": 1}
    await rig.advance(LOCK)
    assert renewals.counts == {"failed": failed, "lost": 1}
    rig.bus.come_back()


class Renewals(NoMetrics):
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def renewal(self, outcome: str) -> None:
        self.counts[outcome] += 1


async def test_while_the_store_is_away_nothing_is_run_and_nothing_is_lost(rig: Rig) -> None:
    rig.store.go_away()
    await rig.start()
    await rig.send(rig.directive())
    await rig.advance(3 * LOCK)
    assert not rig.runs
    rig.store.come_back()
    await rig.advance(2)
    await rig.results()
    await rig.settled()
    assert rig.runs["job_1", 1] == 1


async def test_a_result_is_not_sent_before_it_is_stored(rig: Rig) -> None:
    rig.workshop.hold()
    await rig.start()
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    rig.store.go_away()
    rig.workshop.let_go()
    await rig.until(lambda: rig.workshop.now == 0)
    await rig.advance(10)
    assert not rig.replies.results
    rig.store.come_back()
    await rig.advance(2)
    await rig.results()
    await rig.settled()


async def test_a_message_is_not_settled_before_the_store_says_reported(rig: Rig) -> None:
    def answer(reply: Reply) -> Answer:
        if not isinstance(reply, Ack):
            rig.store.go_away()
        return APPLIED

    rig.replies.answering = answer
    await rig.start()
    await rig.send(rig.directive())
    await rig.results()
    await rig.advance(10)
    assert rig.on_bus() == 1
    rig.store.come_back()
    await rig.advance(2)
    await rig.settled()
    await until_stored(rig, ClaimState.REPORTED)


async def test_a_newer_attempt_ends_the_reporting_of_the_older_one(rig: Rig) -> None:
    def answer(reply: Reply) -> Answer:
        if reply.attempt_no == 1 and not isinstance(reply, Ack):
            raise ReplyUnavailable("busy")
        return APPLIED

    rig.replies.answering = answer
    await rig.start()
    await rig.send(rig.directive(attempt_no=1))
    await until_stored(rig, ClaimState.COMPLETED)
    await rig.send(rig.directive(attempt_no=2))
    await rig.results()
    rig.replies.answering = lambda _: APPLIED
    await rig.advance(120)
    assert [result.attempt_no for result in rig.replies.results] == [2]
    await rig.settled()


async def test_a_result_that_nobody_would_take_becomes_a_small_failure(rig: Rig) -> None:
    def act(ctx: StepContext[Payload]) -> None:
        for number in range(700):
            ctx.workspace.write(f"{number}.txt", b"")

    rig.workshop.act = act
    await rig.start()
    await rig.send(rig.directive())
    (result,) = await rig.results()
    assert result.status is ResultStatus.FAILED_FINAL
    assert result.error is not None
    assert "65536" in result.error.message


async def test_an_artifact_that_the_handler_did_not_write_is_not_reported(rig: Rig) -> None:
    service = Service(NAME)

    @service.step("TEST")
    def execute(ctx: StepContext[dict[str, object]]) -> Artifact:
        own = ctx.workspace.write("output.txt", b"")
        return own.model_copy(update={"uri": ctx.input.uri})

    await rig.start(service=service)
    await rig.send(rig.directive())
    (result,) = await rig.results()
    assert result.status is ResultStatus.FAILED_FINAL
    assert not result.artifacts


async def test_a_store_that_cannot_be_used_costs_no_deliveries(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = rig.store.write

    async def unusable(key: StepKey, record: Record, expected: str | None) -> str:
        raise StoreUnusable("not a database")

    monkeypatch.setattr(rig.store, "write", unusable)
    await rig.start()
    await rig.send(rig.directive())
    await rig.advance(10 * LOCK)
    assert (rig.on_bus(), rig.dead()) == (1, 0)
    monkeypatch.setattr(rig.store, "write", write)
    await rig.advance(2)
    await rig.results()


async def test_a_defect_of_ours_does_not_use_up_the_deliveries_at_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(_: StepContext[object]) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("lucius_sdk.runtime.step.Work.perform", defect)
    await rig.start()
    await rig.send(rig.directive())
    await rig.advance(LOCK / 2)
    assert (rig.on_bus(), rig.dead()) == (1, 0)


async def test_a_final_refusal_ends_the_reporting(rig: Rig) -> None:
    def answer(reply: Reply) -> Answer:
        return APPLIED if isinstance(reply, Ack) else Answer(Verdict.REFUSED, detail="no such job")

    rig.replies.answering = answer
    await rig.start()
    await rig.send(rig.directive())
    await rig.settled()
    assert len(rig.replies.results) == 1


async def test_work_much_longer_than_the_grace_time_does_not_hold_up_the_end(rig: Rig) -> None:
    def stubborn(_: StepContext[Payload]) -> None:
        rig.workshop.open.clear()
        rig.workshop.open.wait()

    rig.workshop.act = stubborn
    runtime = await rig.start()
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.until(lambda: not rig.workshop.open.is_set())
    assert not await rig.stop(runtime, grace=5)
    assert rig.on_bus() == 1
    stored = await rig.store.read(KEY)
    assert stored is not None
    assert stored.record.owner is None


async def test_hooks_are_called_before_and_after_the_work(rig: Rig) -> None:
    told: list[str] = []
    service = Service(NAME)

    @service.on_start
    def load() -> None:
        told.append("start")

    @service.on_stop
    async def unload() -> None:
        told.append("stop")

    @service.step("TEST")
    def execute(ctx: StepContext[dict[str, object]]) -> None:
        told.append(ctx.job_id)

    runtime = await rig.start(service=service)
    await rig.send(rig.directive())
    await rig.results()
    await rig.stop(runtime)
    assert told == ["start", "job_1", "stop"]


async def test_a_hook_that_raises_stops_the_start(rig: Rig) -> None:
    service = Service(NAME)

    @service.on_start
    def load() -> None:
        raise LookupError("no model")

    with pytest.raises(LookupError, match="no model"):
        await rig.start(service=service)


async def test_a_tenant_with_much_work_does_not_keep_another_waiting(tmp_path: Path) -> None:
    """A thousand directives of one tenant wait; another tenant's is served within a few handler
    times, of which each serves as many as there are slots."""
    rig = Rig(tmp_path, FakeClock(datetime.now(UTC)))
    busy, quiet, slots = "tenant", "another tenant", 4
    assert lane_of(busy) != lane_of(quiet)
    served: list[str] = []

    def act(ctx: StepContext[Payload]) -> None:
        ctx.wait(0.05)
        served.append(ctx.tenant_id)

    rig.workshop.act = act
    rig.workshop.hold()
    for number in range(1000):
        await rig.send(rig.directive(f"job_{number}", tenant_id=busy))
    runtime = await rig.start(concurrency=slots, clock=SystemClock())
    await rig.until(lambda: rig.workshop.now == slots)
    await rig.send(rig.directive("job_quiet", tenant_id=quiet))
    rig.workshop.let_go()
    await rig.until(lambda: quiet in served)
    assert served.index(quiet) < 8 * slots
    await rig.kill(runtime)


async def test_redelivery_of_what_is_worked_on_joins_it(rig: Rig) -> None:
    rig.workshop.hold()
    await rig.start()
    directive = rig.directive()
    await rig.send(directive)
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.send(directive)
    topic = directive_topic(directive.lane)
    await rig.until(lambda: rig.bus.counts(topic, NAME).locked == 2)
    rig.workshop.let_go()
    await rig.settled()
    assert rig.runs["job_1", 1] == 1


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_handler_that_raises_is_classified(rig: Rig, is_async: bool) -> None:
    service = Service(NAME)

    def fail() -> None:
        raise ConnectionResetError("the model server is gone")

    if is_async:

        @service.step("TEST")
        async def afail(_: StepContext[dict[str, object]]) -> None:
            fail()
    else:

        @service.step("TEST")
        def dofail(_: StepContext[dict[str, object]]) -> None:
            fail()

    await rig.start(service=service)
    await rig.send(rig.directive())
    (result,) = await rig.results()
    assert result.status is ResultStatus.FAILED_RETRY
    assert result.error is not None
    assert result.error.code == "DEPENDENCY_UNAVAILABLE"


async def test_an_async_handler_is_cancelled_when_the_job_is(rig: Rig) -> None:
    service = Service(NAME)

    @service.step("TEST")
    async def wait(_: StepContext[dict[str, object]]) -> None:
        await asyncio.Event().wait()

    rig.replies.answering = lambda _: Answer(Verdict.APPLIED, cancel_requested=True)
    await rig.start(service=service)
    await rig.send(rig.directive())
    (result,) = await rig.results()
    assert result.error is not None
    assert result.error.code == "CANCELLED"


async def test_a_deadline_moves_with_the_answers(rig: Rig) -> None:
    """By the clock of the answer, and not before the directive's own."""
    until = rig.clock.now() + timedelta(hours=1)
    seen: list[float] = []
    rig.workshop.act = lambda ctx: seen.append(ctx.seconds_left())
    rig.replies.answering = lambda _: Answer(Verdict.APPLIED, until)
    await rig.start()
    await rig.send(rig.directive())
    await rig.results()
    assert seen == [3600.0]
    await turns(1)
