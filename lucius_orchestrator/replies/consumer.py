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
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from lucius_bus.port import Bus, BusError, Delivery
from lucius_bus.waiting import until_set
from lucius_contract.audit import DeadLetterKind
from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import parse_reply
from lucius_contract.routing import LANES, REPLY_SUBSCRIPTION, reply_topic
from lucius_orchestrator.domain.events import ERROR_MESSAGE_LIMIT, ReplyEvent, from_reply
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.ports.ledger import DeadLetterRow, LedgerError, LedgerUnavailable
from lucius_outbox.publishing import is_cancelled


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """Up to `at_once` messages of a lane are held at a time. `wait` is how long one receive
    lasts when nothing comes; `pause` how long to wait when the bus or the ledger is away."""

    at_once: int = 64
    wait: timedelta = timedelta(seconds=10)
    pause: timedelta = timedelta(seconds=1)
    lanes: tuple[int, ...] = tuple(range(LANES))


class _Received(NamedTuple):
    """Replies of one job that were received together, or one message that is none."""

    job_id: str
    deliveries: list[Delivery]
    events: list[ReplyEvent]
    error: ContractError | None = None


class _Room:
    """How many messages of a lane are held, and may be."""

    def __init__(self, size: int) -> None:
        self.free = size
        self._left = asyncio.Event()

    def enter(self, count: int, task: asyncio.Task[None]) -> None:
        self.free -= count

        def leave(_: asyncio.Task[None]) -> None:
            self.free += count
            self._left.set()

        task.add_done_callback(leave)

    async def wait(self) -> None:
        while self.free < 1:
            self._left.clear()
            await self._left.wait()


class ReplyConsumer:
    """Runs by `run()` until `stop()`, which returns when no message is held any more."""

    def __init__(
        self, engine: LedgerEngine, bus: Bus, settings: ConsumerSettings | None = None
    ) -> None:
        self._engine = engine
        self._bus = bus
        self._settings = settings or ConsumerSettings()
        self._stopping = asyncio.Event()
        self._receiving: set[asyncio.Task[list[Delivery]]] = set()
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def stop(self) -> None:
        self._stopping.set()
        for receiving in self._receiving:
            receiving.cancel()
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
        room = _Room(self._settings.at_once)
        async with asyncio.TaskGroup() as handling:
            while not self._stopping.is_set():
                for received in _by_job(await self._receive(topic, room.free)):
                    task = handling.create_task(self._handle(received))
                    room.enter(len(received.deliveries), task)
                await room.wait()

    async def _receive(self, topic: str, limit: int) -> list[Delivery]:
        wait = self._settings.wait
        receiving = asyncio.create_task(self._bus.receive(topic, REPLY_SUBSCRIPTION, limit, wait))
        self._receiving.add(receiving)
        try:
            return await receiving
        except BusError:
            await until_set(self._stopping, self._settings.pause)
            return []
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            return []  # by `stop`
        finally:
            receiving.cancel()
            self._receiving.discard(receiving)

    async def _handle(self, received: _Received) -> None:
        try:
            held = await self._judged(received)
            for delivery in held:
                await self._settle(delivery, received.error)
        except Exception as failure:
            self._engine.telemetry.reply_failed(received.deliveries[0].topic, failure)
            await self._abandon(received.deliveries)

    async def _judged(self, received: _Received) -> Sequence[Delivery]:
        """The messages that are still held once the ledger has what they say; none if the consumer
        stops while the ledger is away, or if all locks were lost: then they come again."""
        held: Sequence[Delivery] = received.deliveries
        while held:
            try:
                await self._record(received)
            except LedgerError:
                await until_set(self._stopping, self._settings.pause)
            else:
                return held
            if self._stopping.is_set():
                await self._abandon(held)
                return ()
            held = await self._renewed(held)
        return ()

    async def _record(self, received: _Received) -> None:
        if received.error is not None:
            await self._bury(received.deliveries[0], received.error)
            return
        try:
            await self._engine.judge(received.job_id, received.events)
        except ContractError as error:
            if error.code is ErrorCode.UNAVAILABLE:
                raise LedgerUnavailable(str(error)) from error
            # The job is gone. Nothing is left that the reply could be recorded with.

    async def _bury(self, delivery: Delivery, error: ContractError) -> None:
        now = self._engine.world.clock()
        digest = hashlib.sha256(delivery.message.body).hexdigest()
        letter = DeadLetterRow(
            id=f"reply.{digest}",
            kind=DeadLetterKind.REPLY,
            tenant_id=None,
            job_id=None,
            step_id=None,
            attempt_no=None,
            code=error.code,
            message=str(error)[:ERROR_MESSAGE_LIMIT],
            first_at=now,
            last_at=now,
        )
        is_new = await self._engine.ledger.bury(letter)
        self._engine.telemetry.unreadable(delivery.topic, digest, error, is_new=is_new)

    async def _renewed(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Those whose locks could be prolonged; the others come again."""
        renewed = []
        for delivery in deliveries:
            try:
                renewed.append(await self._bus.renew(delivery))
            except BusError:
                continue
        return renewed

    async def _settle(self, delivery: Delivery, error: ContractError | None) -> None:
        """What cannot be settled comes again, and is recognised."""
        with suppress(BusError):
            if error is None:
                await self._bus.complete(delivery)
            else:
                reason = str(error)[:ERROR_MESSAGE_LIMIT]
                await self._bus.dead_letter(delivery, error.code, reason)

    async def _abandon(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            with suppress(BusError):
                await self._bus.abandon(delivery)


def _by_job(deliveries: Sequence[Delivery]) -> list[_Received]:
    jobs: dict[str, _Received] = {}
    unreadable: list[_Received] = []
    for delivery in deliveries:
        try:
            reply = parse_reply(delivery.message.body)
            event = from_reply(reply)
        except ContractError as error:
            unreadable.append(_Received("", [delivery], [], error))
            continue
        received = jobs.setdefault(reply.job_id, _Received(reply.job_id, [], []))
        received.deliveries.append(delivery)
        received.events.append(event)
    return [*jobs.values(), *unreadable]
