"""Replies that come over the bus."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import pytest

from lucius_bus.memory import Counts
from lucius_bus.port import Bus, BusMessage, Delivery
from lucius_contract.audit import DeadLetterKind, EventType
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import REPLY_LIMIT, Reply
from lucius_contract.routing import REPLY_SUBSCRIPTION
from lucius_contract.states import JobState
from lucius_orchestrator.bootstrap import running
from lucius_orchestrator.engine.telemetry import REPLIES as REPLIES_TOTAL
from lucius_orchestrator.engine.telemetry import UNREADABLE
from lucius_orchestrator.ports.ledger import Stored
from lucius_orchestrator.replies.consumer import ConsumerSettings, ReplyConsumer
from tests.engine.plane import (
    AWAY,
    REPLIES,
    Plane,
    ack,
    heartbeat,
    on_the_bus,
    once,
    request,
    result,
    turns,
)
from tests.ledger.view import job_ids
from tests.runner.deadlines import DEADLINE

EMPTY = Counts(0, 0, 0)
HELD = Counts(active=0, locked=1, dead=0)
QUICK = ConsumerSettings(pause=timedelta(milliseconds=1))


def consumer(plane: Plane, settings: ConsumerSettings = QUICK) -> ReplyConsumer:
    return ReplyConsumer(plane.engine, cast(Bus, plane.bus_detour), settings)


def consuming(
    plane: Plane, settings: ConsumerSettings = QUICK
) -> AbstractAsyncContextManager[None]:
    return running([consumer(plane, settings)])


def waiting(plane: Plane) -> Counts:
    return plane.bus.counts(REPLIES, REPLY_SUBSCRIPTION)


async def publish(plane: Plane, *messages: BusMessage) -> None:
    assert await plane.bus.publish(REPLIES, messages) == []


async def completed(plane: Plane, times: int = 1) -> None:
    await plane.bus_detour.called("complete", times=times)


async def settled(plane: Plane, times: int = 1) -> None:
    await plane.bus_detour.called("complete", "dead_letter", times=times)


async def test_ack_and_result_on_the_reply_topic_are_applied_and_completed(plane: Plane) -> None:
    await plane.submit()
    directive = await plane.directive()
    async with consuming(plane):
        await publish(plane, on_the_bus(ack(directive)))
        await completed(plane, 1)
        assert (await plane.job(directive.job_id)).state is JobState.IN_PROGRESS
        await publish(plane, on_the_bus(result(directive)))
        await completed(plane, 2)
    assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED
    assert waiting(plane) == EMPTY


async def test_a_message_is_completed_only_after_the_ledger_has_it(plane: Plane) -> None:
    directive = await plane.working()

    async def look(*_: Any) -> None:
        assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED
        seen.set()

    seen = asyncio.Event()
    plane.bus_detour.before["complete"] = look
    async with consuming(plane):
        await publish(plane, on_the_bus(result(directive)))
        await completed(plane)
    assert seen.is_set()


async def test_every_lane_is_read(plane: Plane) -> None:
    directives = []
    for tenant in ("acme", "bolt", "cord"):
        await plane.submit(request(tenant_id=tenant))
        directives.append(await plane.directive())
    assert len({directive.lane for directive in directives}) == 3
    async with consuming(plane):
        for directive in directives:
            topic = f"global-bus-replies-p{directive.lane}"
            assert await plane.bus.publish(topic, [on_the_bus(result(directive))]) == []
        await completed(plane, 3)
    states = [(await plane.job(directive.job_id)).state for directive in directives]
    assert states == [JobState.SUCCEEDED] * 3


async def test_a_reply_that_is_delivered_again_changes_nothing(plane: Plane) -> None:
    directive = await plane.working()

    async def lose_the_lock(*_: Any) -> None:
        plane.later(seconds=61)

    plane.bus_detour.before["complete"] = once(lose_the_lock)
    async with consuming(plane):
        await publish(plane, on_the_bus(result(directive)))
        await completed(plane, 2)
    assert plane.metrics.count(REPLIES_TOTAL, type="RESULT", verdict="APPLIED") == 1
    assert plane.metrics.count(REPLIES_TOTAL, type="RESULT", verdict="DUPLICATE") == 1
    assert waiting(plane) == EMPTY


UNREADABLE_BODIES = {
    "no JSON": (b"{", ErrorCode.ENVELOPE_INVALID),
    "no object": (b"[]", ErrorCode.ENVELOPE_INVALID),
    "no UTF-8": (b'{"type": "\xff"}', ErrorCode.ENVELOPE_INVALID),
    "no reply": (b'{"type": "DIRECTIVE"}', ErrorCode.ENVELOPE_INVALID),
    "members are missing": (b'{"type": "ACK"}', ErrorCode.ENVELOPE_INVALID),
    "another major version": (
        b'{"type": "ACK", "schema_version": "2"}',
        ErrorCode.SCHEMA_VERSION_UNSUPPORTED,
    ),
    "too large": (b" " * (REPLY_LIMIT + 1), ErrorCode.TOO_LARGE),
}


@pytest.mark.parametrize("what", UNREADABLE_BODIES)
async def test_what_cannot_be_read_is_dead_lettered_with_the_reason(
    plane: Plane, what: str
) -> None:
    body, code = UNREADABLE_BODIES[what]
    async with consuming(plane):
        await publish(plane, BusMessage("m-1", body))
        await plane.bus_detour.called("dead_letter")
    (message,) = await plane.bus_letters()
    assert (message.message_id, message.body) == ("m-1", body)
    assert message.properties["DeadLetterReason"] == code
    (letter,) = await plane.letters()
    assert (letter.kind, letter.code, letter.job_id) == (DeadLetterKind.REPLY, code, None)
    assert letter.message
    assert plane.metrics.count(UNREADABLE) == 1


async def test_after_what_cannot_be_read_the_next_message_is_served(plane: Plane) -> None:
    directive = await plane.working()
    async with consuming(plane):
        await publish(plane, BusMessage("m-1", b"{"), on_the_bus(result(directive)))
        await completed(plane)
    assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED


async def test_the_same_unreadable_bytes_are_one_dead_letter(plane: Plane) -> None:
    first_at = plane.clock.now
    async with consuming(plane):
        await publish(plane, BusMessage("m-1", b"{"))
        await plane.bus_detour.called("dead_letter", times=1)
        plane.later(minutes=5)
        await publish(plane, BusMessage("m-2", b"{"))
        await plane.bus_detour.called("dead_letter", times=2)
    (letter,) = await plane.letters()
    assert (letter.first_at, letter.last_at) == (first_at, plane.clock.now)
    assert len(await plane.bus_letters()) == 2


async def test_a_result_that_has_no_canonical_form_is_dead_lettered(plane: Plane) -> None:
    """It could not be told from another one of its attempt, so it cannot be applied."""
    directive = await plane.working()
    async with consuming(plane):
        await publish(plane, on_the_bus(result(directive), pages_read=2**53))
        await settled(plane)
    assert [letter.kind for letter in await plane.letters()] == [DeadLetterKind.REPLY]
    assert len(await plane.bus_letters()) == 1


async def test_a_reply_to_no_job_is_completed_and_creates_nothing(plane: Plane) -> None:
    directive = await plane.working()
    stranger = directive.model_copy(update={"job_id": "job_unknown"})
    async with consuming(plane):
        await publish(plane, on_the_bus(ack(stranger)))
        await completed(plane)
    assert waiting(plane) == EMPTY
    assert await job_ids(plane.ledger) == [directive.job_id]
    assert await plane.letters() == []


async def test_a_reply_in_the_name_of_another_tenant_is_completed_and_recorded(
    plane: Plane,
) -> None:
    directive = await plane.working()
    stranger = directive.model_copy(update={"tenant_id": "other"})
    async with consuming(plane):
        await publish(plane, on_the_bus(result(stranger)))
        await completed(plane)
    assert (await plane.job(directive.job_id)).state is JobState.IN_PROGRESS
    assert len(await plane.events(directive.job_id, EventType.REFUSED)) == 1


async def test_while_the_ledger_is_away_a_message_is_held_and_then_applied(plane: Plane) -> None:
    directive = await plane.working()
    plane.detour.fail(*AWAY)
    async with consuming(plane):
        await publish(plane, on_the_bus(result(directive)))
        await plane.bus_detour.called("renew", times=15)
        assert waiting(plane) == HELD
        assert plane.bus_detour.calls["abandon"] == 0
        plane.detour.heal()
        await completed(plane)
    assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED
    assert waiting(plane) == EMPTY


async def test_while_the_ledger_is_away_what_cannot_be_read_is_held_and_then_kept(
    plane: Plane,
) -> None:
    plane.detour.fail(*AWAY)
    async with consuming(plane):
        await publish(plane, BusMessage("m-1", b"{"))
        await plane.detour.called("bury", times=10)
        await turns()
        assert waiting(plane) == HELD
        plane.detour.heal()
        await settled(plane)
    (message,) = await plane.bus_letters()
    assert message.properties["DeadLetterReason"] == ErrorCode.ENVELOPE_INVALID
    assert [letter.kind for letter in await plane.letters()] == [DeadLetterKind.REPLY]


async def test_a_job_that_changes_too_fast_holds_its_message_too(plane: Plane) -> None:
    """The engine gives the event back after some conflicts; the consumer tries again."""
    directive = await plane.working()
    other = await plane.replica()

    async def move(*_: Any) -> None:
        if plane.detour.calls["commit"] < 25:
            await other.reply(heartbeat(directive))

    plane.detour.calls.clear()
    plane.detour.before["commit"] = move
    async with consuming(plane):
        await publish(plane, on_the_bus(result(directive)))
        await completed(plane)
    assert plane.bus_detour.calls["renew"] == 1
    assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED


async def test_a_message_whose_lock_was_lost_is_left_alone(
    plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    directive = await plane.working()
    plane.detour.fail(*AWAY)
    async with consuming(plane):
        await publish(plane, on_the_bus(result(directive)))
        await plane.bus_detour.called("renew")
        plane.later(seconds=61)
        await plane.bus_detour.called("renew", times=plane.bus_detour.calls["renew"] + 3)
        plane.detour.heal()
        await completed(plane)
    assert plane.bus_detour.calls["abandon"] == 0
    assert "reply.failed" not in caplog.messages
    assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED
    assert waiting(plane) == EMPTY


async def test_a_stop_while_the_ledger_is_away_gives_the_message_back(plane: Plane) -> None:
    directive = await plane.working()
    plane.detour.fail(*AWAY)
    plane.detour.calls.clear()
    async with asyncio.timeout(DEADLINE):
        async with consuming(plane, ConsumerSettings(pause=timedelta(hours=1))):
            await publish(plane, on_the_bus(result(directive)))
            await plane.detour.called("commit")
    assert waiting(plane) == Counts(active=1, locked=0, dead=0)


async def test_a_stop_does_not_wait_for_messages_that_never_come(plane: Plane) -> None:
    async with asyncio.timeout(DEADLINE):
        async with consuming(plane, ConsumerSettings(wait=timedelta(hours=1))):
            await turns()


async def test_a_stop_waits_for_the_message_that_is_handled(plane: Plane) -> None:
    directive, held, go_on = await plane.working(), asyncio.Event(), asyncio.Event()

    async def hold(*_: Any) -> None:
        held.set()
        await go_on.wait()

    plane.detour.before["commit"] = hold
    replies = consumer(plane)
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(replies.run())
        await publish(plane, on_the_bus(result(directive)))
        await held.wait()
        stopping = tasks.create_task(replies.stop())
        await turns()
        assert not stopping.done()
        go_on.set()
        await stopping
    assert waiting(plane) == EMPTY


async def test_a_consumer_that_is_cancelled_takes_no_more_messages(plane: Plane) -> None:
    task = asyncio.create_task(consumer(plane).run())
    await turns()
    task.cancel()
    await asyncio.wait([task])
    await publish(plane, BusMessage("m-1", b"{"))
    await turns()
    assert waiting(plane) == Counts(active=1, locked=0, dead=0)


async def test_a_fault_of_ours_gives_the_message_back_and_tells(
    plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    directive = await plane.working()

    async def break_down(*_: Any) -> None:
        raise RuntimeError("a defect")

    plane.detour.before["commit"] = once(break_down)
    async with consuming(plane):
        await publish(plane, on_the_bus(result(directive)))
        await completed(plane)
    assert plane.bus_detour.calls["abandon"] == 1
    assert "reply.failed" in caplog.messages
    assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED


async def test_a_message_that_cannot_be_given_back_is_left_to_its_lock(plane: Plane) -> None:
    directive = await plane.working()

    async def break_down(*_: Any) -> None:
        plane.later(seconds=61)
        raise RuntimeError("a defect")

    plane.detour.before["commit"] = once(break_down)
    async with consuming(plane):
        await publish(plane, on_the_bus(result(directive)))
        await completed(plane)
    assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED


async def test_a_consumer_survives_a_bus_that_is_away(plane: Plane) -> None:
    directive = await plane.working()
    plane.bus.go_away()
    async with consuming(plane):
        await plane.bus_detour.called("receive", times=3 * 16)
        plane.bus.come_back()
        await publish(plane, on_the_bus(result(directive)))
        await completed(plane)
    assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED


@asynccontextmanager
async def commits_held(plane: Plane) -> AsyncIterator[None]:
    """Inside, the ledger takes its time."""
    go_on = asyncio.Event()

    async def hold(*_: Any) -> None:
        await go_on.wait()

    plane.detour.before["commit"] = hold
    try:
        yield
    finally:
        go_on.set()


@pytest.mark.parametrize("jobs", [1, 8])
async def test_no_more_messages_are_held_than_may_be_handled_at_once(
    plane: Plane, jobs: int
) -> None:
    working = [await plane.working(request(idempotency_key=f"k-{n}")) for n in range(jobs)]
    beats = [on_the_bus(heartbeat(working[n % jobs], n / 10)) for n in range(8)]
    async with consuming(plane, ConsumerSettings(at_once=3, pause=QUICK.pause)):
        async with commits_held(plane):
            await publish(plane, *beats)
            await plane.bus_detour.called("receive")
            await turns()
            assert waiting(plane) == Counts(active=5, locked=3, dead=0)
        await completed(plane, 8)
    assert waiting(plane) == EMPTY


async def test_replies_of_a_job_that_come_together_are_judged_in_order(plane: Plane) -> None:
    await plane.submit()
    directive = await plane.directive()
    replies: list[Reply] = [ack(directive), heartbeat(directive, 0.5), result(directive)]
    await publish(plane, *map(on_the_bus, replies))
    plane.detour.calls.clear()
    async with consuming(plane):
        await completed(plane, 3)
    assert plane.metrics.count(REPLIES_TOTAL, verdict="APPLIED") == 3
    assert plane.detour.calls["commit"] == 1
    assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED
    assert waiting(plane) == EMPTY


async def test_a_result_without_a_canonical_form_takes_no_other_reply_with_it(
    plane: Plane,
) -> None:
    await plane.submit()
    directive = await plane.directive()
    await publish(plane, on_the_bus(result(directive), pages_read=2**53))
    await publish(plane, on_the_bus(ack(directive)))
    async with consuming(plane):
        await settled(plane, 2)
    assert (await plane.job(directive.job_id)).state is JobState.IN_PROGRESS


async def test_a_lock_that_was_lost_takes_no_other_message_with_it(plane: Plane) -> None:
    directive = await plane.working()
    beat, last = on_the_bus(heartbeat(directive)), on_the_bus(result(directive))
    given_back = []

    async def lose_one(delivery: Delivery) -> None:
        if delivery.message == beat:
            await plane.bus.abandon(delivery)

    async def note(delivery: Delivery) -> None:
        given_back.append(delivery.message)

    plane.detour.fail(*AWAY)
    plane.bus_detour.before |= {"renew": once(lose_one), "abandon": note}
    await publish(plane, beat, last)
    async with consuming(plane):
        await plane.bus_detour.called("renew", times=8)
        plane.detour.heal()
        await completed(plane, 2)
    assert last not in given_back
    assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED


async def test_a_message_that_waits_holds_up_no_other(plane: Plane) -> None:
    slow = await plane.working()
    quick = await plane.working(request(idempotency_key="k-1"))
    go_on = asyncio.Event()

    async def hold(stored: Stored, *_: Any) -> None:
        if stored.aggregate.job.job_id == slow.job_id:
            await go_on.wait()

    plane.detour.before["commit"] = hold
    async with consuming(plane):
        await publish(plane, on_the_bus(result(slow)), on_the_bus(result(quick)))
        await completed(plane)
        states = [(await plane.job(one.job_id)).state for one in (slow, quick)]
        go_on.set()
        await completed(plane, 2)
    assert states == [JobState.IN_PROGRESS, JobState.SUCCEEDED]


async def test_of_two_consumers_one_gets_a_message(plane: Plane) -> None:
    directive, other = await plane.working(), await plane.replica()
    second = ReplyConsumer(other.engine, cast(Bus, plane.bus_detour), QUICK)
    async with running([consumer(plane), second]):
        for number in range(20):
            await publish(plane, on_the_bus(heartbeat(directive, number / 20)))
        await publish(plane, on_the_bus(result(directive)))
        await completed(plane, 21)
    assert (await plane.job(directive.job_id)).state is JobState.SUCCEEDED
    assert waiting(plane) == EMPTY
