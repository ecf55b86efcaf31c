"""Takes ACK, RESULT and HEARTBEAT from the reply topics, one receiver per lane.

A message is settled only after the engine has judged it and the ledger has it: a consumer that dies
gets it again, and the verdict is the same. What cannot be read is dead-lettered, on the bus and in
the ledger. While the ledger is away a message is held and tried again, so that an outage does not
use up its deliveries. Replies of different jobs are handled side by side: a bad one holds up no
other.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from lucius_contract.audit import DeadLetterKind
from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import Reply, parse_reply
from lucius_contract.routing import LANES, reply_topic
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.ports.bus import Bus, BusError, Delivery
from lucius_orchestrator.ports.ledger import DeadLetterRow, LedgerError

SUBSCRIPTION = "lucius-invoker"


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """Up to `at_once` messages of a lane are handled at a time. `wait` is how long one receive
    lasts when nothing comes; `pause` how long to wait when the bus or the ledger is away."""

    at_once: int = 64
    wait: timedelta = timedelta(seconds=10)
    pause: timedelta = timedelta(seconds=1)
    lanes: tuple[int, ...] = tuple(range(LANES))


class _OfJob(NamedTuple):
    """Replies of one job that were received together, or one message that is none."""

    deliveries: list[Delivery]
    replies: list[Reply]
    error: ContractError | None = None


class ReplyConsumer:
    """Runs by `run()` until `stop()`, which returns when no message is held any more."""

    def __init__(
        self, engine: LedgerEngine, bus: Bus, settings: ConsumerSettings | None = None
    ) -> None:
        self._engine = engine
        self._bus = bus
        self._settings = settings or ConsumerSettings()
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def stop(self) -> None:
        self._stopping.set()
        await self._stopped.wait()

    async def run(self) -> None:
        self._stopped.clear()
        try:
            async with asyncio.TaskGroup() as tasks:
                for lane in self._settings.lanes:
                    tasks.create_task(self._consume(reply_topic(lane)))
        finally:
            self._stopped.set()

    async def _consume(self, topic: str) -> None:
        """What was received is always handled; a receive that waits is given up at a stop."""
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            async with asyncio.TaskGroup() as handling:
                held: set[asyncio.Task[None]] = set()
                while not self._stopping.is_set():
                    receiving = asyncio.create_task(self._receive(topic, len(held)))
                    await asyncio.wait({receiving, stopping}, return_when=asyncio.FIRST_COMPLETED)
                    for replies in _by_job(await self._received(receiving)):
                        task = handling.create_task(self._handle(replies))
                        held.add(task)
                        task.add_done_callback(held.discard)
                    while len(held) >= self._settings.at_once:
                        await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _receive(self, topic: str, held: int) -> list[Delivery]:
        settings = self._settings
        try:
            return await self._bus.receive(
                topic, SUBSCRIPTION, settings.at_once - held, settings.wait
            )
        except BusError:
            await self._pause()
            return []

    async def _received(self, receiving: asyncio.Task[list[Delivery]]) -> list[Delivery]:
        if not receiving.done():
            receiving.cancel()
        try:
            return await receiving
        except asyncio.CancelledError:
            if self._stopping.is_set():
                return []
            raise

    async def _handle(self, received: _OfJob) -> None:
        deliveries, replies, error = received
        try:
            if error is not None:
                await self._refuse(deliveries[0], error)
                return
            for judged in await self._judge(replies, deliveries):
                await self._complete(judged)
        except Exception as failure:
            place = (deliveries[0].topic, deliveries[0].message.message_id)
            self._engine.telemetry.reply_failed(*place, failure)
            for delivery in deliveries:
                await self._give_back(delivery)

    async def _judge(
        self, replies: Sequence[Reply], deliveries: Sequence[Delivery]
    ) -> Sequence[Delivery]:
        """The messages once they were judged; none if the consumer stops while the ledger is
        away."""
        while True:
            try:
                await self._engine.judge(replies[0].job_id, replies)
            except LedgerError:
                pass
            except ContractError as error:
                if error.code is not ErrorCode.UNAVAILABLE:
                    return deliveries  # the job is gone
            else:
                return deliveries
            await self._pause()
            if self._stopping.is_set():
                for delivery in deliveries:
                    await self._give_back(delivery)
                return ()
            deliveries = [await self._bus.renew(delivery) for delivery in deliveries]

    async def _complete(self, delivery: Delivery) -> None:
        try:
            await self._bus.complete(delivery)
        except BusError:
            return  # it comes again, and is recognised

    async def _refuse(self, delivery: Delivery, error: ContractError) -> None:
        message, now = delivery.message, self._engine.world.clock()
        letter = DeadLetterRow(
            id=f"reply.{hashlib.sha256(message.body).hexdigest()}",
            kind=DeadLetterKind.REPLY,
            tenant_id=None,
            job_id=None,
            step_id=None,
            attempt_no=None,
            code=error.code,
            message=str(error)[:1024],
            first_at=now,
            last_at=now,
        )
        await self._engine.ledger.bury(letter)
        self._engine.telemetry.unreadable(delivery.topic, message.message_id, error.code, error)
        await self._bus.dead_letter(delivery, error.code, str(error)[:1024])

    async def _give_back(self, delivery: Delivery) -> None:
        try:
            await self._bus.abandon(delivery)
        except BusError:
            return  # its lock runs out

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._settings.pause.total_seconds()):
                await self._stopping.wait()
        except TimeoutError:
            pass


def _by_job(deliveries: Sequence[Delivery]) -> list[_OfJob]:
    jobs: dict[str, _OfJob] = {}
    unreadable: list[_OfJob] = []
    for delivery in deliveries:
        try:
            reply = parse_reply(delivery.message.body)
        except ContractError as error:
            unreadable.append(_OfJob([delivery], [], error))
            continue
        of_job = jobs.setdefault(reply.job_id, _OfJob([], []))
        of_job.deliveries.append(delivery)
        of_job.replies.append(reply)
    return [*jobs.values(), *unreadable]
