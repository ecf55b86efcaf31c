"""From the end of a job to its receivers: at least once, and recognisably the same each time."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from lucius_contract.audit import DeadLetterKind
from lucius_orchestrator.ports.ledger import DeadLetterQuery
from lucius_orchestrator.ports.webhooks import RETRIES
from lucius_orchestrator.webhooks import WebhookDelivery, WebhookSender
from lucius_outbox import DispatchSettings, Store
from lucius_outbox.telemetry import DEAD, DELIVERED
from tests.runner.deadlines import DEADLINE
from tests.webhooks.receiver import HOST, Answer, Receiver, hang_up, never, status
from tests.webhooks.stage import AT_ONCE, LEASE, Stage, claims

QUICK = DispatchSettings(
    batch_size=1,
    concurrency=4,
    lease=timedelta(hours=1),
    poll_interval=timedelta(milliseconds=10),
    grace=timedelta(0),
)


class Counts:
    """Metrics that a test can wait for."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self._changed = asyncio.Event()

    def increment(self, name: str, amount: int, **_: str) -> None:
        self.counts[name] += amount
        self._changed.set()

    def observe(self, name: str, values: Sequence[float], **_: str) -> None: ...

    def set(self, name: str, value: float, **_: str) -> None: ...

    async def reached(self, name: str, count: int) -> None:
        async with asyncio.timeout(DEADLINE):
            while self.counts[name] < count:
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def delivering(store: Store, sender: WebhookSender) -> AsyncIterator[Counts]:
    counts = Counts()
    delivery = WebhookDelivery(store, sender, QUICK, counts)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(delivery.run())
        try:
            yield counts
        finally:
            await delivery.stop()


async def ended(stage: Stage, *urls: str) -> str:
    """A job that has succeeded."""
    return (await (await stage.world.create(callback_urls=urls)).succeeds()).job_id


async def test_a_job_that_ends_while_webhooks_are_delivered_is_told(
    stage: Stage, receiver: Receiver, sender: WebhookSender
) -> None:
    async with stage.webhooks() as store, delivering(store, sender) as counts:
        job_id = await ended(stage, receiver.url())
        await counts.reached(DELIVERED, 1)
    (event,) = receiver.events.values()
    assert (event["jobId"], event["type"]) == (job_id, "job.succeeded")


@pytest.mark.parametrize("answers", [[status(500), status(503)], [hang_up], [hang_up, status(429)]])
async def test_retries_carry_the_same_event(
    stage: Stage, receiver: Receiver, sender: WebhookSender, answers: list[Answer]
) -> None:
    receiver.answers.extend(answers)
    await ended(stage, receiver.url())
    async with stage.webhooks(AT_ONCE) as store, delivering(store, sender) as counts:
        await counts.reached(DELIVERED, 1)
    assert len(receiver.tries) == len(answers) + 1
    assert len(set(receiver.bodies)) == len(receiver.events) == 1


async def test_a_dispatcher_that_dies_before_it_says_so_has_another_tell_it_again(
    stage: Stage, receiver: Receiver, sender: WebhookSender
) -> None:
    await ended(stage, receiver.url())
    async with stage.webhooks() as dying:
        assert await WebhookDelivery(dying, sender).publish(await claims(dying)) == []
    stage.clock.now += LEASE + timedelta(seconds=1)
    async with stage.webhooks() as store, delivering(store, sender) as counts:
        await counts.reached(DELIVERED, 1)
    assert (len(receiver.tries), len(receiver.events)) == (2, 1)


async def test_delivered_once_it_is_not_sent_again(
    stage: Stage, receiver: Receiver, sender: WebhookSender
) -> None:
    await ended(stage, receiver.url())
    async with stage.webhooks() as store, delivering(store, sender) as counts:
        await counts.reached(DELIVERED, 1)
    stage.clock.advance(days=2)
    async with stage.webhooks() as store:
        assert await claims(store) == []


async def test_tries_are_spread_over_a_day(
    stage: Stage, receiver: Receiver, sender: WebhookSender
) -> None:
    receiver.answers.extend([status(503)] * RETRIES.max_attempts)
    await ended(stage, receiver.url())
    waits = []
    async with stage.webhooks() as store:
        delivery = WebhookDelivery(store, sender)
        failures = await delivery.publish(await claims(store))
        while not (await store.nack(failures)).dead:
            wait = RETRIES.delay_after(len(receiver.tries), 0)
            assert wait is not None
            stage.clock.now += wait - timedelta(microseconds=1)
            assert await claims(store) == []
            stage.clock.now += timedelta(microseconds=1)
            waits.append(wait)
            failures = await delivery.publish(await claims(store))
    assert waits[:3] == [timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=5)]
    assert waits == sorted(waits)
    assert timedelta(hours=20) < sum(waits, timedelta()) < timedelta(hours=30)
    assert len(receiver.tries) == RETRIES.max_attempts
    assert len(receiver.events) == 1


async def test_what_a_receiver_does_not_want_is_a_dead_letter(
    stage: Stage, receiver: Receiver, sender: WebhookSender
) -> None:
    receiver.answers.append(status(410))
    job_id = await ended(stage, receiver.url("/secret-path?code=secret-code"))
    async with stage.webhooks() as store:
        async with delivering(store, sender) as counts:
            await counts.reached(DEAD, 1)
        (dead,) = await store.dead()
    (letter,) = (await stage.backend.ledger.dead_letters(DeadLetterQuery())).items
    assert letter.id == f"webhook.{dead.dedupe_key}"
    assert letter.kind is DeadLetterKind.OUTBOX
    assert (letter.tenant_id, letter.job_id, letter.step_id) == ("acme", job_id, None)
    assert letter.code == "webhook.UNDELIVERED"
    assert f"{HOST} answered 410" in letter.message
    assert "secret" not in letter.message
    assert letter.first_at == letter.last_at == stage.clock()


async def test_a_receiver_that_does_not_answer_keeps_nobody_else_waiting(
    stage: Stage, receiver: Receiver, sender: WebhookSender
) -> None:
    receiver.answers.append(never)
    first = await ended(stage, receiver.url())
    async with stage.webhooks() as store, delivering(store, sender) as counts:
        await receiver.saw(1)
        others = [await ended(stage, receiver.url()) for _ in range(3)]
        await counts.reached(DELIVERED, 3)
    told = [json.loads(body)["jobId"] for body in receiver.bodies]
    assert told[0] == first
    assert sorted(told[1:]) == sorted(others)


async def test_the_ledger_and_its_webhooks_write_side_by_side(
    stage: Stage, receiver: Receiver, sender: WebhookSender
) -> None:
    async with stage.webhooks() as store, delivering(store, sender) as counts:
        stories = await stage.world.create_many(30, callback_urls=(receiver.url(),))
        await asyncio.gather(*(story.succeeds() for story in stories))
        await counts.reached(DELIVERED, 30)
    told = {event["jobId"] for event in receiver.events.values()}
    assert told == {story.job_id for story in stories}
    assert len(receiver.tries) == 30


async def test_it_can_be_woken_between_two_polls(
    stage: Stage, receiver: Receiver, sender: WebhookSender
) -> None:
    slow = DispatchSettings(lease=timedelta(hours=1), poll_interval=timedelta(minutes=10))
    async with stage.webhooks() as store:
        delivery = WebhookDelivery(store, sender, slow)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(delivery.run())
            for number in range(1, 4):
                await ended(stage, receiver.url())
                delivery.wake()
                await receiver.saw(number)
            await delivery.stop()
