"""Replies on the reply topic of a lane."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from lucius_bus.memory import MemoryBus
from lucius_bus.port import BusMessage, BusUnavailable, Delivery, Unpublished
from lucius_contract.routing import REPLY_SUBSCRIPTION, reply_topic
from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.replies.answers import Answer, ReplyUnavailable, Verdict
from lucius_sdk.replies.bus import BusReplies
from lucius_sdk.replies.outgoing import outgoing
from lucius_sdk.testing.clock import FakeClock
from tests.runner.deadlines import DEADLINE
from tests.sdk.replies.samples import LEASE, ON_THE_BUS, TRACE, ack, heartbeat, result

SENT = Answer(Verdict.SENT)


class SlowBus(MemoryBus):
    """Says when a batch has come, and takes it when it may."""

    def __init__(self, bus_clock: FakeClock) -> None:
        super().__init__(bus_clock.now)
        self.batches: list[list[str]] = []
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.defect: BaseException | None = None

    async def publish(self, topic: str, messages: Sequence[BusMessage]) -> list[Unpublished]:
        self.batches.append([message.properties["jobId"] for message in messages])  # type: ignore[misc]
        self.begun.set()
        await self.may_end.wait()
        if self.defect is not None:
            raise self.defect
        return await super().publish(topic, messages)


async def taken(bus: MemoryBus, lane: int = 3) -> list[Delivery]:
    return await bus.receive(reply_topic(lane), REPLY_SUBSCRIPTION, 100, timedelta(0))


@pytest.fixture
def slow(clock: FakeClock) -> SlowBus:
    slow = SlowBus(clock)
    for lane in range(16):
        slow.create_topic(reply_topic(lane))
    return slow


async def test_a_reply_is_published_on_its_lane_as_it_is(bus: MemoryBus) -> None:
    answer = await BusReplies(bus).send(ON_THE_BUS, outgoing(result()))
    [delivery] = await taken(bus)
    assert answer == SENT
    assert delivery.message == BusMessage(
        f"job_1.step_01.2.{LEASE}.RESULT",
        result().to_bytes(),
        {
            "type": "RESULT",
            "jobId": "job_1",
            "traceparent": TRACE,
        },
        partition_key="acme",
    )


async def test_lanes_are_kept_apart(bus: MemoryBus) -> None:
    replies = BusReplies(bus)
    for lane in (0, 15):
        await replies.send(ReplyAddress(lane, "acme"), outgoing(ack(job_id=f"job_{lane}")))
    for lane in (0, 15):
        [delivery] = await taken(bus, lane)
        assert delivery.message.properties["jobId"] == f"job_{lane}"


async def test_what_waits_for_a_lane_leaves_together(slow: SlowBus) -> None:
    replies = BusReplies(slow)
    slow.may_end.clear()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(replies.send(ON_THE_BUS, outgoing(ack(job_id="0"))))
        await slow.begun.wait()
        rest = [
            tasks.create_task(replies.send(ON_THE_BUS, outgoing(ack(job_id=str(number)))))
            for number in range(1, 6)
        ]
        await asyncio.sleep(0)
        slow.may_end.set()
    assert slow.batches == [["0"], ["1", "2", "3", "4", "5"]]
    assert [task.result() for task in [first, *rest]] == [SENT] * 6


async def test_a_lane_that_is_slow_holds_up_no_other(slow: SlowBus) -> None:
    replies = BusReplies(slow)
    slow.may_end.clear()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        for lane in range(16):
            tasks.create_task(replies.send(ReplyAddress(lane, "acme"), outgoing(ack())))
        while len(slow.batches) < 16:
            slow.begun.clear()
            await slow.begun.wait()
        slow.may_end.set()


async def test_a_bus_that_is_away_can_be_tried_again(bus: MemoryBus) -> None:
    replies = BusReplies(bus)
    bus.go_away()
    with pytest.raises(ReplyUnavailable, match="the bus is away"):
        await replies.send(ON_THE_BUS, outgoing(ack()))
    bus.come_back()
    assert await replies.send(ON_THE_BUS, outgoing(ack())) == SENT


async def test_a_bus_that_will_never_take_it_has_refused(bus: MemoryBus) -> None:
    bus.refuse(reply_topic(3))
    answer = await BusReplies(bus).send(ON_THE_BUS, outgoing(ack()))
    assert answer.verdict is Verdict.REFUSED
    assert "nobody may publish" in answer.detail


async def test_one_that_is_refused_takes_no_other_with_it(bus: MemoryBus) -> None:
    replies = BusReplies(bus)
    long, short = outgoing(ack(job_id="x" * 128)), outgoing(heartbeat())
    answers = await asyncio.gather(
        *(replies.send(ON_THE_BUS, reply) for reply in (short, long, short))
    )
    assert [answer.verdict for answer in answers] == [Verdict.SENT, Verdict.REFUSED, Verdict.SENT]
    assert len(await taken(bus)) == 2


async def test_a_reply_that_was_given_up_before_it_left_does_not_leave(slow: SlowBus) -> None:
    replies = BusReplies(slow)
    slow.may_end.clear()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(replies.send(ON_THE_BUS, outgoing(ack(job_id="0"))))
        await slow.begun.wait()
        given_up = tasks.create_task(replies.send(ON_THE_BUS, outgoing(ack(job_id="1"))))
        tasks.create_task(replies.send(ON_THE_BUS, outgoing(ack(job_id="2"))))
        await asyncio.sleep(0)
        given_up.cancel()
        slow.may_end.set()
    assert slow.batches == [["0"], ["2"]]


async def test_a_bus_that_raises_is_away(slow: SlowBus) -> None:
    slow.defect = BusUnavailable("gone")
    with pytest.raises(ReplyUnavailable, match="gone"):
        await BusReplies(slow).send(ON_THE_BUS, outgoing(ack()))


async def test_a_defect_of_the_bus_is_seen_by_the_sender_and_the_lane_goes_on(
    slow: SlowBus,
) -> None:
    replies = BusReplies(slow)
    slow.defect = KeyError("x")
    with pytest.raises(KeyError):
        await replies.send(ON_THE_BUS, outgoing(ack()))
    slow.defect = None
    assert await replies.send(ON_THE_BUS, outgoing(ack())) == SENT


async def test_nobody_waits_for_ever_when_sending_is_cancelled(slow: SlowBus) -> None:
    replies = BusReplies(slow)
    slow.may_end.clear()
    before = asyncio.all_tasks()
    sending = asyncio.create_task(replies.send(ON_THE_BUS, outgoing(ack(job_id="0"))))
    await slow.begun.wait()
    waiting = asyncio.create_task(replies.send(ON_THE_BUS, outgoing(ack(job_id="1"))))
    await asyncio.sleep(0)
    [lane] = asyncio.all_tasks() - before - {sending, waiting}
    lane.cancel()
    async with asyncio.timeout(DEADLINE):
        for task in (sending, waiting):
            with pytest.raises(ReplyUnavailable, match="sending was stopped"):
                await task


async def test_closing_waits_for_what_is_under_way(slow: SlowBus) -> None:
    replies = BusReplies(slow)
    slow.may_end.clear()
    async with asyncio.timeout(DEADLINE):
        sending = asyncio.create_task(replies.send(ON_THE_BUS, outgoing(ack())))
        await slow.begun.wait()
        closing = asyncio.create_task(replies.close())
        await asyncio.sleep(0)
        assert not closing.done()
        slow.may_end.set()
        await closing
        assert await sending == SENT


async def test_whether_the_bus_is_there(bus: MemoryBus) -> None:
    replies = BusReplies(bus)
    await replies.check()
    bus.go_away()
    with pytest.raises(ReplyUnavailable):
        await replies.check()
