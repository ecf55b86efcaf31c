"""Directives on their way to the bus, and what the ledger learns of it."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from lucius_bus.memory import MemoryBus
from lucius_bus.port import BusMessage, BusUnavailable
from lucius_contract.audit import DeadLetterKind, EventType
from lucius_contract.messages import parse_directive
from lucius_contract.states import JobState, OutboxState, StepState
from lucius_orchestrator.bootstrap import running
from lucius_orchestrator.domain.aggregate import ReplyVia
from lucius_orchestrator.domain.decision import DirectiveRow, OutboxKind
from lucius_orchestrator.engine.telemetry import DISPATCH_LAG
from lucius_orchestrator.outbox.dispatcher import DispatcherSettings
from tests.engine.plane import (
    AT_ONCE,
    MANY,
    MOMENT,
    PIPELINE,
    SKEW,
    TENANT,
    TOPIC,
    TRACE,
    Plane,
    ack,
    heartbeat,
    once,
    one_step,
    request,
    result,
    turns,
)
from tests.ledger.backends import Clock, MemoryBackend
from tests.runner.deadlines import DEADLINE

LEASE = DispatcherSettings().lease
DISPATCH_LEASE = timedelta(seconds=30 + 120 + 600 + 30, minutes=15)
SLOW_POLL = DispatcherSettings(poll_interval=timedelta(hours=1))
QUICK_POLL = DispatcherSettings(poll_interval=timedelta(milliseconds=5))
AWAITING = (JobState.DISPATCHING, StepState.AWAITING_ACK)
UNSENT = (JobState.DISPATCHING, StepState.DISPATCHING)


async def state_of_row(plane: Plane, job_id: str, attempt_no: int = 1) -> OutboxState:
    row = await plane.row(job_id, attempt_no)
    assert row is not None
    return row.state


async def published_but_not_marked(plane: Plane) -> str:
    """A job whose dispatcher died between the publish and the mark."""
    job_id = await plane.submit()
    plane.detour.fail("commit")
    assert await plane.dispatch() == 1
    plane.detour.heal()
    assert await plane.states(job_id) == UNSENT
    assert await state_of_row(plane, job_id) is OutboxState.PENDING
    return job_id


@asynccontextmanager
async def listening(plane: Plane) -> AsyncIterator[None]:
    """Inside, a dispatcher waits for wake-ups: its first claim is over."""
    heard = asyncio.Event()

    async def hear(*_: Any) -> None:
        heard.set()

    plane.detour.before["listen"] = hear
    async with running([plane.another_dispatcher(SLOW_POLL)]):
        await plane.detour.called("claim")
        async with asyncio.timeout(DEADLINE):
            await heard.wait()
        yield


async def test_a_directive_is_published_in_the_lane_of_its_job(plane: Plane) -> None:
    job_id = await plane.submit()
    await plane.dispatch()
    (delivery,) = await plane.bus.receive(TOPIC, "ocr", MANY, AT_ONCE)
    step, message = await plane.step(job_id), delivery.message
    assert message.message_id == f"{job_id}.step_01.1.{step.lease_id}.DIRECTIVE"
    assert message.partition_key == TENANT
    assert message.expires_at == step.lease_expires_at == plane.clock.now + DISPATCH_LEASE
    assert message.properties == {
        "type": "DIRECTIVE",
        "step_type": "OCR",
        "service": "ocr",
        "mode": "DEFAULT",
        "lane": int(TOPIC.removeprefix("global-bus-p")),
        "tenant_id": TENANT,
        "jobId": job_id,
        "stepId": "step_01",
        "attempt_no": 1,
        "traceparent": TRACE,
    }


async def test_a_directive_says_what_to_do_and_for_how_long(plane: Plane) -> None:
    job_id = await plane.submit()
    directive, step = await plane.directive(), await plane.step(job_id)
    assert directive.lease_expires_at == step.lease_expires_at
    assert (directive.lease_seconds, directive.heartbeat_seconds) == (900, 300)
    assert directive.input_ref.uri == "az://inbox/a.pdf"
    assert directive.workspace_ref.uri == f"az://workspace/lucius/acme/{job_id}/"
    assert (directive.correlation_id, directive.traceparent) == ("c-0", TRACE)


async def test_in_mode_burst_documents_go_out_in_lanes_of_their_own(plane: Plane) -> None:
    for document in ("one", "two", "three"):
        await plane.submit(request(mode="BURST", doc_id=document, idempotency_key=document))
    await plane.dispatch()
    found = await plane.deliveries()
    keys = {delivery.message.partition_key for delivery in found}
    assert keys == {"acmeone", "acmetwo", "acmethree"}
    assert len({delivery.topic for delivery in found}) > 1


async def test_step_and_row_move_in_one_commit(plane: Plane) -> None:
    job_id = await plane.submit()
    plane.later(seconds=3)
    assert await plane.dispatch() == 1
    assert plane.detour.calls["commit"] == 1
    assert await plane.states(job_id) == AWAITING
    assert await state_of_row(plane, job_id) is OutboxState.SENT
    step = await plane.step(job_id)
    assert step.attempts[0].sent_at == plane.clock.now
    assert step.ack_deadline == plane.clock.now + timedelta(seconds=30)
    lane = TOPIC.removeprefix("global-bus-p")
    assert (DISPATCH_LAG, {"lane": lane}, 3.0) in plane.metrics.observed


async def test_what_was_published_is_not_published_again(plane: Plane) -> None:
    await plane.submit()
    await plane.directive()
    plane.later(hours=1)
    assert await plane.dispatch() == 0
    assert await plane.directives() == []


async def test_while_the_bus_is_away_a_directive_is_tried_again_and_again(plane: Plane) -> None:
    job_id = await plane.submit()
    plane.bus.go_away()
    for seconds in (30, 120, 600, 600, 600):
        assert await plane.dispatch() == 1
        plane.later(seconds=seconds - 1)
        assert await plane.dispatch() == 0
        plane.later(seconds=1)
    plane.bus.come_back()
    directive = await plane.directive()
    assert (directive.job_id, directive.attempt_no) == (job_id, 1)
    assert await plane.letters() == []


async def test_a_bus_that_cannot_say_whether_it_published_is_asked_again(plane: Plane) -> None:
    await plane.submit()
    plane.bus_detour.after["publish"] = once(_cut)
    assert await plane.dispatch() == 1
    plane.later(seconds=30)
    assert await plane.dispatch() == 1
    first, second = await plane.directives()
    assert first == second


async def _cut(*_: Any) -> None:
    raise BusUnavailable("the connection was cut")


async def test_a_publish_that_takes_too_long_is_postponed(plane: Plane) -> None:
    job_id = await plane.submit()
    plane.bus_detour.before["publish"] = _never
    settings = DispatcherSettings(publish_timeout=timedelta(milliseconds=10))
    async with asyncio.timeout(DEADLINE):
        assert await plane.another_dispatcher(settings).run_once() == 1
    assert await plane.states(job_id) == UNSENT
    row = await plane.row(job_id)
    assert row == (OutboxState.PENDING, False)
    del plane.bus_detour.before["publish"]
    plane.later(seconds=30)
    assert (await plane.directive()).job_id == job_id


async def _never(*_: Any) -> None:
    await asyncio.Event().wait()


async def test_a_directive_that_waited_for_hours_goes_out_with_a_whole_lease(
    plane: Plane,
) -> None:
    job_id = await plane.submit()
    plane.bus.go_away()
    await plane.dispatch()
    plane.later(hours=5)
    plane.bus.come_back()
    await plane.dispatch()
    (delivery,) = await plane.deliveries()
    step, directive = await plane.step(job_id), parse_directive(delivery.message.body)
    assert directive.lease_expires_at == step.lease_expires_at == delivery.message.expires_at
    assert directive.lease_expires_at == plane.clock.now + DISPATCH_LEASE
    assert (step.state, step.attempt_no) == (StepState.AWAITING_ACK, 1)
    assert (await plane.reply(ack(directive))).verdict == "APPLIED"


async def first_published_after(plane: Plane, wait: timedelta) -> tuple[datetime, datetime]:
    """When the lease of a directive ended that the bus could not take before; and by now."""
    job_id = await plane.submit()
    given = (await plane.step(job_id)).lease_expires_at
    plane.bus.go_away()
    await plane.dispatch()
    plane.later(wait)
    plane.bus.come_back()
    directive = await plane.directive()
    assert given is not None
    return given, directive.lease_expires_at


TO_ACKNOWLEDGE_AND_WORK = timedelta(seconds=30, minutes=15)
TO_SPARE = DISPATCH_LEASE - TO_ACKNOWLEDGE_AND_WORK


@pytest.mark.parametrize(
    "wait",
    [TO_SPARE + MOMENT, TO_SPARE + timedelta(seconds=30), DISPATCH_LEASE - MOMENT, DISPATCH_LEASE],
)
async def test_a_directive_with_less_than_a_whole_lease_left_gets_a_new_one(
    plane: Plane, wait: timedelta
) -> None:
    given, expires_at = await first_published_after(plane, wait)
    assert expires_at == plane.clock.now + DISPATCH_LEASE
    assert expires_at == given + wait


@pytest.mark.parametrize("wait", [timedelta(seconds=30), TO_SPARE])
async def test_a_directive_with_a_whole_lease_left_keeps_it(plane: Plane, wait: timedelta) -> None:
    given, expires_at = await first_published_after(plane, wait)
    assert expires_at == given
    assert expires_at - plane.clock.now >= TO_ACKNOWLEDGE_AND_WORK


async def test_a_late_directive_whose_step_ends_while_it_gets_a_lease_is_not_published(
    plane: Plane,
) -> None:
    await plane.submit(request(**PIPELINE))
    plane.bus_detour.after["publish"] = once(_cut)
    directive = await plane.directive()
    other = await plane.replica()
    plane.later(minutes=20)

    async def succeed(*_: Any) -> None:
        await other.reply(result(directive))

    plane.detour.before["commit"] = once(succeed)
    assert await plane.dispatcher.run_once() == 1
    assert await plane.directives("ocr") == []


async def test_a_directive_that_the_bus_refuses_is_a_dead_letter_and_a_failed_attempt(
    plane: Plane,
) -> None:
    job_id = await plane.submit()
    plane.bus.refuse(TOPIC)
    await plane.dispatch()
    assert await plane.states(job_id) == (JobState.DISPATCHING, StepState.FAILED_RETRY)
    assert await state_of_row(plane, job_id) is OutboxState.FAILED_FINAL
    (letter,) = await plane.letters()
    assert (letter.kind, letter.code) == (DeadLetterKind.OUTBOX, "DISPATCH_FAILED")
    assert (letter.job_id, letter.attempt_no) == (job_id, 1)
    assert "nobody may publish" in letter.message


async def test_after_a_refusal_the_next_attempt_goes_out(plane: Plane) -> None:
    await plane.submit()
    plane.bus.refuse(TOPIC)
    await plane.dispatch()
    plane.bus.allow(TOPIC)
    plane.later(timedelta(minutes=1) + SKEW)
    assert await plane.sweep_all() == {"due_retries": 1}
    assert (await plane.directive()).attempt_no == 2


async def test_when_the_bus_refuses_every_attempt_the_job_has_failed(plane: Plane) -> None:
    job_id = await plane.submit()
    plane.bus.refuse(TOPIC)
    for _ in range(3):
        assert await plane.dispatch() == 1
        plane.later(minutes=6)
        await plane.sweep_all()
    job = await plane.job(job_id)
    assert (job.state, job.error_code) == (JobState.FAILED_FINAL, "DISPATCH_FAILED")
    kinds = sorted(letter.kind for letter in await plane.letters())
    assert kinds == [*[DeadLetterKind.OUTBOX] * 3, DeadLetterKind.STEP]
    plane.later(hours=1)
    assert await plane.dispatch() == 0


async def test_one_message_that_is_refused_does_not_hold_up_its_batch(plane: Plane) -> None:
    snapshot = one_step()
    heavy = await plane.submit(request(snapshot, payload={"text": "x" * 20_000}))
    light = await plane.submit(request(snapshot, payload={"text": "x"}))
    narrow = MemoryBus(plane.clock, max_message_bytes=10_000)
    other = Plane.new(plane.backend, narrow)
    assert await other.dispatcher.run_once() == 2
    assert [directive.job_id for directive in await other.directives()] == [light]
    assert (await plane.step(heavy)).last_error_code == "DISPATCH_FAILED"


async def test_a_directive_of_a_job_that_has_ended_is_not_published(plane: Plane) -> None:
    job_id = await plane.submit()
    plane.bus.go_away()
    await plane.dispatch()
    plane.later(timedelta(hours=24) + SKEW)
    assert (await plane.sweep_all())["job_sla"] == 1
    plane.bus.come_back()
    assert await plane.dispatch() == 1
    assert await plane.directives() == []
    assert await state_of_row(plane, job_id) is OutboxState.SUPERSEDED
    assert (await plane.job(job_id)).state is JobState.FAILED_FINAL
    (event,) = await plane.events(job_id, EventType.OUTBOX_RECORDED)
    assert event.cause == OutboxState.SUPERSEDED


async def test_a_directive_of_a_cancelling_job_goes_out_since_its_step_may_finish(
    plane: Plane,
) -> None:
    job_id = await plane.submit()
    await plane.engine.cancel(job_id)
    directive = await plane.directive()
    assert (await plane.reply(ack(directive))).cancel_requested


async def test_a_directive_that_was_acknowledged_meanwhile_is_marked_and_not_published_again(
    plane: Plane,
) -> None:
    job_id = await published_but_not_marked(plane)
    (directive,) = await plane.directives()
    await plane.reply(ack(directive))
    plane.later(LEASE + SKEW)
    other = await plane.replica()
    assert await other.dispatch() == 1
    assert await other.directives() == []
    assert await state_of_row(plane, job_id) is OutboxState.SENT
    assert await plane.states(job_id) == (JobState.IN_PROGRESS, StepState.IN_PROGRESS)
    assert (await plane.reply(heartbeat(directive))).verdict == "APPLIED"


async def test_a_directive_whose_step_has_succeeded_meanwhile_is_marked_and_not_published_again(
    plane: Plane,
) -> None:
    job_id = await published_but_not_marked(plane)
    (directive,) = await plane.directives()
    await plane.reply(result(directive))
    plane.later(LEASE + SKEW)
    assert await plane.dispatch() == 1
    assert await plane.directives() == []
    assert await state_of_row(plane, job_id) is OutboxState.SENT
    assert (await plane.job(job_id)).state is JobState.SUCCEEDED


@pytest.mark.parametrize("blind", [True, False])
async def test_a_directive_whose_step_another_process_has_moved_is_not_published_from_memory(
    plane: Plane, blind: bool
) -> None:
    """Whether the ledger says with a claim how the job is, which version it has, or nothing."""
    job_id = await published_but_not_marked(plane)
    (directive,) = await plane.directives()
    other = await plane.replica()
    await other.reply(result(directive))
    plane.later(LEASE + SKEW)
    plane.detour.claims_are_blind = blind
    assert await plane.dispatch() == 1
    assert await plane.directives() == []
    assert await state_of_row(plane, job_id) is OutboxState.SENT
    assert (await plane.job(job_id)).state is JobState.SUCCEEDED


async def test_after_a_dispatcher_has_died_another_publishes_the_same_attempt(
    plane: Plane,
) -> None:
    job_id = await published_but_not_marked(plane)
    other = await plane.replica()
    plane.later(LEASE - SKEW)
    assert await other.dispatch() == 0
    plane.later(2 * SKEW)
    assert await other.dispatch() == 1
    first, second = await plane.directives()
    assert first == second
    step = await plane.step(job_id)
    assert (step.state, step.attempt_no, len(step.attempts)) == (StepState.AWAITING_ACK, 1, 1)


async def test_dispatchers_that_run_at_once_publish_each_directive_once(plane: Plane) -> None:
    jobs = {await plane.submit(request(idempotency_key=f"k-{n}")) for n in range(20)}
    other = await plane.replica()
    claimed = await asyncio.gather(plane.dispatch(), other.dispatch())
    assert sum(claimed) == 20
    found = [directive.job_id for directive in await plane.directives()]
    assert sorted(found) == sorted(jobs)


async def test_a_directive_whose_job_was_removed_meanwhile_is_discarded(plane: Plane) -> None:
    other = await plane.replica()
    job_id = await other.submit()

    async def remove(*_: Any) -> None:
        await other.reply(result(await other.attempt(job_id)))
        await other.ledger.remove(await other.stored(job_id))

    plane.detour.claims_are_blind = True
    plane.detour.after["claim"] = once(remove)
    assert await plane.dispatcher.run_once() == 1
    assert plane.detour.calls["discard"] == 1
    plane.later(hours=1)
    assert await plane.dispatch() == 0
    assert await plane.directives() == []


async def test_rows_for_which_there_was_no_room_are_looked_for_at_once(plane: Plane) -> None:
    go_on = asyncio.Event()

    async def hold(*_: Any) -> None:
        await go_on.wait()

    plane.bus_detour.before["publish"] = hold
    settings = DispatcherSettings(batch_size=2, concurrency=1, poll_interval=timedelta(hours=1))
    async with running([plane.another_dispatcher(settings)]):
        await turns()
        jobs = [await plane.submit(request(idempotency_key=f"k-{number}")) for number in range(15)]
        go_on.set()
        found = [(await plane.directive_on_the_way()).job_id for _ in jobs]
    assert sorted(found) == sorted(jobs)


async def test_a_dispatcher_holds_no_more_rows_than_can_be_under_way_and_wait_for_that(
    plane: Plane,
) -> None:
    """What its own process commits beyond that is left to others."""
    go_on, batches = asyncio.Event(), list[int]()

    async def hold(_topic: str, messages: Sequence[BusMessage]) -> None:
        batches.append(len(messages))
        await go_on.wait()

    plane.bus_detour.before["publish"] = hold
    other = await plane.replica()
    settings = DispatcherSettings(batch_size=2, concurrency=2, poll_interval=timedelta(hours=1))
    async with running([plane.another_dispatcher(settings)]):
        await plane.detour.called("claim")
        jobs = []
        for number in range(15):
            jobs.append(await plane.submit(request(idempotency_key=f"k-{number}")))
            await turns()
        left = await other.ledger.claim(OutboxKind.DIRECTIVE, MANY, LEASE)
        go_on.set()
        held = [(await plane.directive_on_the_way()).job_id for _ in range(len(jobs) - len(left))]
    assert len(held) <= 2 * (2 * 2)
    assert sorted(held + [claim.job_id for claim in left]) == sorted(jobs)
    assert max(batches) <= 2


@asynccontextmanager
async def one_behind_another(
    plane: Plane, wait: timedelta
) -> AsyncIterator[tuple[asyncio.Event, list[str]]]:
    """Two jobs after a while in which a dispatcher publishes the first one, and will until the
    event is set; the second one, which is claimed too, waits behind it."""
    held, go_on = asyncio.Event(), asyncio.Event()

    async def hold(*_: Any) -> None:
        held.set()
        await go_on.wait()

    plane.bus_detour.before["publish"] = hold
    settings = DispatcherSettings(batch_size=1, concurrency=1, poll_interval=timedelta(hours=1))
    async with running([plane.another_dispatcher(settings)]):
        await plane.detour.called("claim")
        jobs = [await plane.submit(request(idempotency_key="k-1"))]
        async with asyncio.timeout(DEADLINE):
            await held.wait()
        jobs.append(await plane.submit(request(idempotency_key="k-2")))
        plane.later(wait)
        yield go_on, jobs


async def test_a_row_that_waited_for_longer_than_its_lease_is_left_to_who_has_claimed_it(
    plane: Plane,
) -> None:
    other = await plane.replica()
    async with one_behind_another(plane, LEASE + SKEW) as (go_on, jobs):
        assert await other.dispatch() == 2
        for directive in await other.directives():
            await other.reply(result(directive))
        go_on.set()
    assert [directive.job_id for directive in await plane.directives()] == jobs[:1]


async def test_a_row_that_waited_for_longer_than_its_lease_is_looked_for_again(
    plane: Plane,
) -> None:
    async with one_behind_another(plane, LEASE + SKEW) as (go_on, jobs):
        go_on.set()
        assert [(await plane.directive_on_the_way()).job_id for _ in jobs] == jobs


async def test_a_row_that_waited_within_its_lease_is_published_without_a_look(
    plane: Plane,
) -> None:
    async with one_behind_another(plane, LEASE - SKEW) as (go_on, jobs):
        go_on.set()
        assert [(await plane.directive_on_the_way()).job_id for _ in jobs] == jobs
    assert plane.detour.calls["claim"] == 1  # when it began


class LoopTime:
    """Lets time pass for the event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        real, self._passed = loop.time, 0.0
        monkeypatch.setattr(loop, "time", lambda: real() + self._passed)

    def later(self, duration: timedelta) -> None:
        self._passed += duration.total_seconds()


async def test_a_look_that_takes_longer_than_their_interval_holds_up_no_row_of_this_process(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, looks = LoopTime(monkeypatch), itertools.count(1)

    async def take_long(*_: Any) -> None:
        assert next(looks) < 10, "one look follows the other"
        time.later(2 * SLOW_POLL.poll_interval)

    plane.detour.after["claim"] = take_long
    async with running([plane.another_dispatcher(SLOW_POLL)]):
        await plane.detour.called("claim")
        job_id = await plane.submit()
        assert (await plane.directive_on_the_way()).job_id == job_id


async def test_a_dispatcher_that_stops_delivers_what_it_holds_and_claims_no_more(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long ago it has looked."""
    other, time = await plane.replica(), LoopTime(monkeypatch)
    held, go_on = asyncio.Event(), asyncio.Event()

    async def hold(*_: Any) -> None:
        held.set()
        await go_on.wait()

    plane.bus_detour.before["publish"] = hold
    day = timedelta(days=1)
    dispatcher = plane.another_dispatcher(
        DispatcherSettings(batch_size=1, concurrency=1, lease=2 * day, publish_timeout=day)
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(dispatcher.run())
        await plane.detour.called("claim")
        jobs = [await plane.submit(request(idempotency_key="k-1"))]
        async with asyncio.timeout(DEADLINE):
            await held.wait()
        jobs.append(await plane.submit(request(idempotency_key="k-2")))
        theirs = await other.submit(request(idempotency_key="theirs"))
        stopping = tasks.create_task(dispatcher.stop())
        await turns()
        time.later(timedelta(hours=1))
        go_on.set()
        async with asyncio.timeout(DEADLINE):
            await stopping
    assert [directive.job_id for directive in await plane.directives()] == jobs
    assert (await plane.directive()).job_id == theirs


async def test_rows_of_other_processes_have_their_turn_however_many_this_one_brings(
    plane: Plane,
) -> None:
    """Each publish brings another directive, so one is always waiting."""
    other = await plane.replica()
    theirs, is_out = list[str](), asyncio.Event()

    async def bring_another(_topic: str, messages: Sequence[BusMessage]) -> None:
        (message,) = messages
        if not theirs:
            theirs.append(await other.submit(request(idempotency_key="theirs")))
        if message.properties["jobId"] in theirs:
            is_out.set()
        if not is_out.is_set():
            await plane.submit(request(idempotency_key=message.message_id))

    plane.bus_detour.before["publish"] = bring_another
    settings = replace(QUICK_POLL, batch_size=1, concurrency=1)
    async with running([plane.another_dispatcher(settings)]):
        await plane.submit()
        async with asyncio.timeout(DEADLINE):
            await is_out.wait()


async def test_a_row_of_this_process_waits_for_its_turn_behind_a_backlog_of_others(
    plane: Plane,
) -> None:
    other = await plane.replica()
    backlog = [await other.submit(request(idempotency_key=f"k-{number}")) for number in range(6)]
    published, mine = list[str](), list[str]()

    async def bring_one(_topic: str, messages: Sequence[BusMessage]) -> None:
        published.extend(str(message.properties["jobId"]) for message in messages)
        if not mine:
            mine.append(await plane.submit())

    plane.bus_detour.before["publish"] = bring_one
    settings = DispatcherSettings(batch_size=1, concurrency=1, poll_interval=timedelta(hours=1))
    async with running([plane.another_dispatcher(settings)]):
        for _ in range(7):
            await plane.directive_on_the_way()
    assert published == backlog + mine


@pytest.fixture
async def on_tables() -> AsyncIterator[Plane]:
    """Where dispatchers lead lanes."""
    clock = Clock()
    backend, bus = MemoryBackend(clock), MemoryBus(clock)
    await backend.start()
    yield Plane.new(backend, bus)
    await bus.close()
    await backend.stop()


async def test_a_dispatcher_that_looks_keeps_its_lanes_at_three_requests_a_lease(
    on_tables: Plane,
) -> None:
    other = await on_tables.replica()
    for _ in range(int(4 * LEASE.total_seconds())):
        await on_tables.dispatcher.run_once()
        await other.dispatcher.run_once()
        on_tables.later(seconds=1)
    assert on_tables.detour.calls["lead"] == 4 * 3
    assert other.detour.calls["claim"] == 0


async def test_a_dispatcher_that_was_held_up_leaves_its_lanes_to_who_has_taken_them(
    on_tables: Plane,
) -> None:
    other = await on_tables.replica()
    await on_tables.dispatcher.run_once()
    on_tables.later(LEASE + SKEW)
    await other.dispatcher.run_once()
    job_id = await on_tables.submit()
    assert await on_tables.dispatcher.run_once() == 0
    assert await other.dispatcher.run_once() == 1
    assert (await on_tables.step(job_id)).state is StepState.AWAITING_ACK


async def test_lanes_that_another_leaves_are_taken_at_the_next_look(on_tables: Plane) -> None:
    other = await on_tables.replica()
    await other.dispatcher.run_once()
    job_id = await on_tables.submit()
    assert await on_tables.dispatcher.run_once() == 0
    await other.ledger.close()
    assert await on_tables.dispatcher.run_once() == 1
    assert (await on_tables.step(job_id)).state is StepState.AWAITING_ACK


async def test_a_dispatcher_survives_a_ledger_that_is_away(plane: Plane) -> None:
    plane.detour.fail("claim")
    async with running([plane.another_dispatcher(QUICK_POLL)]):
        await plane.detour.called("claim", times=3)
        plane.detour.heal()
        job_id = await plane.submit()
        assert (await plane.directive_on_the_way()).job_id == job_id


async def test_a_directive_that_could_not_be_looked_at_is_claimed_again(plane: Plane) -> None:
    other = await plane.replica()
    job_id = await other.submit()
    plane.detour.claims_are_blind = True
    plane.detour.fail("load")
    assert await plane.dispatcher.run_once() == 1
    assert await plane.directives() == []
    plane.detour.heal()
    plane.later(LEASE + SKEW)
    assert (await plane.directive()).job_id == job_id


async def test_a_row_that_could_not_be_postponed_is_claimed_again(plane: Plane) -> None:
    job_id = await plane.submit()
    plane.bus.go_away()
    plane.detour.fail("postpone")
    assert await plane.dispatch() == 1
    plane.bus.come_back()
    plane.later(LEASE + SKEW)
    assert (await plane.directive()).job_id == job_id


async def test_a_refusal_that_could_not_be_stored_is_met_again(plane: Plane) -> None:
    job_id = await plane.submit()
    plane.bus.refuse(TOPIC)
    plane.detour.fail("commit")
    assert await plane.dispatch() == 1
    plane.detour.heal()
    assert await plane.states(job_id) == UNSENT
    plane.later(LEASE + SKEW)
    assert await plane.dispatch() == 1
    assert (await plane.step(job_id)).state is StepState.FAILED_RETRY


async def test_a_commit_wakes_the_dispatcher(plane: Plane) -> None:
    async with listening(plane):
        for key in ("k-1", "k-2"):
            job_id = await plane.submit(request(idempotency_key=key))
            assert (await plane.directive_on_the_way()).job_id == job_id


async def test_what_was_committed_before_the_start_is_published(plane: Plane) -> None:
    job_id = await plane.submit()
    async with running([plane.another_dispatcher(SLOW_POLL)]):
        assert (await plane.directive_on_the_way()).job_id == job_id


async def test_polling_finds_what_no_commit_announced(plane: Plane) -> None:
    other = await plane.replica()
    async with running([plane.another_dispatcher(QUICK_POLL)]):
        await plane.detour.called("claim")
        job_id = await other.submit()
        assert (await plane.directive_on_the_way()).job_id == job_id


async def test_stop_returns_when_all_that_was_claimed_is_settled(plane: Plane) -> None:
    job_id, held, go_on = await plane.submit(), asyncio.Event(), asyncio.Event()

    async def hold(*_: Any) -> None:
        held.set()
        await go_on.wait()

    plane.bus_detour.before["publish"] = hold
    dispatcher = plane.another_dispatcher(SLOW_POLL)
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(dispatcher.run())
        await held.wait()
        stopping = tasks.create_task(dispatcher.stop())
        await turns()
        assert not stopping.done()
        go_on.set()
        await stopping
        assert await plane.states(job_id) == AWAITING


async def test_stop_is_nothing_where_nothing_runs(plane: Plane) -> None:
    dispatcher = plane.another_dispatcher(SLOW_POLL)
    async with asyncio.timeout(DEADLINE):
        await dispatcher.stop()
        await dispatcher.run()


async def test_no_more_batches_are_claimed_than_may_be_under_way(plane: Plane) -> None:
    for number in range(3):
        await plane.submit(request(idempotency_key=f"k-{number}"))
    held, go_on = asyncio.Queue[None](), asyncio.Event()

    async def hold(*_: Any) -> None:
        held.put_nowait(None)
        await go_on.wait()

    plane.bus_detour.before["publish"] = hold
    settings = DispatcherSettings(batch_size=1, concurrency=2, poll_interval=timedelta(hours=1))
    dispatcher = plane.another_dispatcher(settings)
    async with asyncio.timeout(DEADLINE), running([dispatcher]):
        for _ in range(2):
            await held.get()
        dispatcher.wake()
        await turns()
        assert plane.detour.calls["claim"] == 2
        go_on.set()
        for _ in range(3):
            await plane.directive_on_the_way()


def address(job_id: str, row: DirectiveRow) -> Mapping[str, Any]:
    urls = {name: f"https://lucius.test/v1/callbacks/{name}" for name in ("ack", "result")}
    urls["heartbeat"] = "https://lucius.test/v1/callbacks/heartbeat"
    return {"callback_urls": urls, "callback_token": f"{job_id}/{row.step_id}/{row.lease_id}"}


async def test_a_step_that_replies_over_http_is_told_where(plane: Plane) -> None:
    job_id = await plane.submit(request(one_step(reply_via=ReplyVia.HTTP)))
    await plane.another_dispatcher(reply_address=address).run_once()
    (directive,) = await plane.directives()
    assert directive.callback_urls is not None
    assert directive.callback_urls.ack == "https://lucius.test/v1/callbacks/ack"
    assert directive.callback_token == f"{job_id}/step_01/{directive.lease_id}"


async def test_a_step_that_replies_over_the_bus_gets_no_address(plane: Plane) -> None:
    await plane.submit(request(one_step(reply_via=ReplyVia.BUS)))
    await plane.another_dispatcher(reply_address=address).run_once()
    (directive,) = await plane.directives()
    assert (directive.callback_urls, directive.callback_token) == (None, None)


def proof(job_id: str, row: DirectiveRow) -> str:
    return f"{row.body['tenant_id']}/{job_id}/{row.step_id}/{row.attempt_no}"


@pytest.mark.parametrize("way", [ReplyVia.HTTP, ReplyVia.BUS])
async def test_a_step_that_may_publish_an_artifact_can_prove_it_whichever_way_it_replies(
    plane: Plane, way: ReplyVia
) -> None:
    plan = request(one_step(reply_via=way), output_ref={"uri": "artifact://answers"})
    job_id = await plane.submit(plan)
    await plane.another_dispatcher(artifact_token=proof).run_once()
    (directive,) = await plane.directives()
    assert directive.artifact_token == f"{directive.tenant_id}/{job_id}/step_01/1"
    assert "artifact_token" not in repr(await plane.stored(job_id))


async def test_a_step_that_publishes_elsewhere_has_no_proof(plane: Plane) -> None:
    await plane.submit()
    await plane.another_dispatcher(artifact_token=proof).run_once()
    (directive,) = await plane.directives()
    assert directive.artifact_token is None


async def test_a_token_is_not_kept_in_the_ledger(plane: Plane) -> None:
    job_id = await plane.submit()
    await plane.another_dispatcher(reply_address=address).run_once()
    assert "callback_token" not in repr(await plane.stored(job_id))
    other = await plane.submit(request(idempotency_key="k-1"))
    (claim,) = await plane.ledger.claim(OutboxKind.DIRECTIVE, 1, LEASE)
    assert (claim.job_id, "callback_token" in claim.row.body) == (other, False)


async def test_a_directive_that_its_address_makes_too_large_fails_for_good(plane: Plane) -> None:
    job_id = await plane.submit()

    def endless(_job_id: str, _row: DirectiveRow) -> Mapping[str, Any]:
        return {"callback_token": "x" * 200_000}

    await plane.another_dispatcher(reply_address=endless).run_once()
    job = await plane.job(job_id)
    assert (job.state, job.error_code) == (JobState.FAILED_FINAL, "DIRECTIVE_TOO_LARGE")
    assert await plane.directives() == []


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 0},
        {"concurrency": 0},
        {"publish_timeout": timedelta(0)},
        {"publish_timeout": timedelta(seconds=30), "lease": timedelta(seconds=30)},
        {"poll_interval": timedelta(0)},
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        DispatcherSettings(**settings)


async def test_a_directive_that_cannot_be_prepared_waits_and_holds_up_no_other(
    plane: Plane,
) -> None:
    """A defect of ours in one of two: the other goes out, the dispatcher lives on."""
    first = await plane.submit(request(idempotency_key="first"))
    second = await plane.submit(request(idempotency_key="second"))

    def broken_for_the_first(job_id: str, _row: object) -> dict[str, str]:
        if job_id == first:
            raise TypeError("a defect")
        return {}

    dispatcher = plane.another_dispatcher(reply_address=broken_for_the_first)
    assert await dispatcher.run_once() == 2
    assert [directive.job_id for directive in await plane.directives("ocr")] == [second]
    assert await dispatcher.run_once() == 0
    plane.later(seconds=31)
    assert await dispatcher.run_once() == 1
