"""Publishes directives that were committed, and lets the ledger know.

Between the commit of a directive and its publish lies a claim: a lease on the OUTBOX row. A
dispatcher that dies leaves a lease behind, which runs out; then another one publishes, perhaps for
the second time, which services recognise. Nothing is lost and nobody has to clean up.

Before a directive goes out, the job is looked at: an attempt that is over, or that has somehow gone
out already, is not published again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pydantic_core

from lucius_bus.port import Bus, BusError, BusMessage, BusUnavailable, PublishRefused
from lucius_bus.waiting import until_set
from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import DIRECTIVE_LIMIT, directive_properties
from lucius_contract.routing import LANES
from lucius_contract.states import StepState
from lucius_orchestrator.domain.aggregate import ReplyVia, Step
from lucius_orchestrator.domain.decision import DirectiveRow, OutboxKind
from lucius_orchestrator.domain.directive import on_the_wire
from lucius_orchestrator.domain.events import (
    OutboxFailed,
    OutboxSent,
    OutboxSuperseded,
    PublishDelayed,
)
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.ports.ledger import ALL_LANES, Claim, LedgerError, Stored

ReplyAddress = Callable[[str, DirectiveRow], Mapping[str, Any]]
"""What a directive of a job carries so that it is answered over HTTP: addresses and a token."""

_LEADS_PER_LEASE = 3


@dataclass(frozen=True, slots=True)
class DispatcherSettings:
    """`concurrency` batches of up to `batch_size` directives are under way at a time. A publish
    ends before the lease does, so that no other dispatcher publishes the same beside it."""

    batch_size: int = 100
    concurrency: int = 4
    lease: timedelta = timedelta(seconds=30)
    publish_timeout: timedelta = timedelta(seconds=20)
    poll_interval: timedelta = timedelta(seconds=1)

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.concurrency < 1:
            raise ValueError("batch_size and concurrency must be at least 1")
        if not timedelta(0) < self.publish_timeout < self.lease:
            raise ValueError("publish_timeout must be above zero and below the lease")
        if self.poll_interval <= timedelta(0):
            raise ValueError("poll_interval must be above zero")


class _Ready(NamedTuple):
    """A directive that is to go out, and its message."""

    claim: Claim
    message: BusMessage


class Dispatcher:
    """Runs by `run()` until `stop()`, which returns when all that was claimed is settled."""

    def __init__(
        self,
        engine: LedgerEngine,
        bus: Bus,
        settings: DispatcherSettings | None = None,
        reply_address: ReplyAddress | None = None,
    ) -> None:
        engine.dispatches = True
        self._engine = engine
        self._bus = bus
        self._settings = settings or DispatcherSettings()
        self._reply_address = reply_address
        self._woken = asyncio.Event()
        self._stopping = False
        self._stopped = asyncio.Event()
        self._stopped.set()
        self._batches: set[asyncio.Task[None]] = set()
        self._adopted: deque[Claim] = deque()
        self._is_asked_to_look = False
        self._claim_at = 0.0
        self._lanes = frozenset[int]()
        self._lead_at = datetime.min.replace(tzinfo=UTC)

    def wants(self) -> bool:
        """As an adopter: no more than can be under way before a lease is over."""
        room = self._settings.batch_size * self._settings.concurrency
        return not self._stopping and len(self._adopted) < room

    def take(self, claims: Sequence[Claim]) -> None:
        self._adopted.extend(claims)
        self._woken.set()

    def wake(self) -> None:
        """Look for directives now."""
        self._is_asked_to_look = True
        self._woken.set()

    async def stop(self) -> None:
        self._stopping = True
        self.wake()
        await self._stopped.wait()

    async def run(self) -> None:
        self._stopped.clear()
        try:
            async with asyncio.TaskGroup() as tasks:
                listener = tasks.create_task(self._engine.ledger.listen(self.wake))
                await asyncio.sleep(0)  # it listens before the first claim looks
                end = self._engine.ledger.adopt(OutboxKind.DIRECTIVE, self._settings.lease, self)
                try:
                    await self._claim_until_stopped(tasks)
                finally:
                    end()
                    listener.cancel()
        finally:
            self._stopped.set()

    async def run_once(self) -> int:
        """Publish one batch; returns how many directives were claimed."""
        claims = await self._claim()
        await self._deliver(claims)
        return len(claims)

    async def _claim_until_stopped(self, tasks: asyncio.TaskGroup) -> None:
        while not self._stopping or self._adopted:
            self._woken.clear()  # before the claim: what is committed after it wakes us again
            is_full = len(self._batches) >= self._settings.concurrency
            claims = [] if is_full else self._given() or await self._claim_if_due()
            if claims:
                batch = tasks.create_task(self._deliver(claims))
                self._batches.add(batch)
                batch.add_done_callback(self._ended)
            else:
                await until_set(self._woken, self._settings.poll_interval)

    def _ended(self, batch: asyncio.Task[None]) -> None:
        self._batches.discard(batch)
        self._woken.set()

    def _given(self) -> list[Claim]:
        """Rows that were claimed at birth; now and then none, so that others have their turn."""
        loop_time = asyncio.get_running_loop().time()
        if not self._adopted or (loop_time >= self._claim_at and not self._stopping):
            return []
        count = min(len(self._adopted), self._settings.batch_size)
        return [self._adopted.popleft() for _ in range(count)]

    async def _claim_if_due(self) -> list[Claim]:
        """Looking costs: it is done when somebody says so, when there was more than could be taken,
        and now and then."""
        is_due = asyncio.get_running_loop().time() >= self._claim_at
        if not is_due and not self._is_asked_to_look:
            return []
        claims = await self._claim()
        self._is_asked_to_look |= len(claims) == self._settings.batch_size
        return claims

    async def _claim(self) -> list[Claim]:
        settings, loop = self._settings, asyncio.get_running_loop()
        self._claim_at = loop.time() + settings.poll_interval.total_seconds()
        self._is_asked_to_look = False  # before: what is committed meanwhile asks again
        if self._adopted:
            self._woken.set()
        try:
            lanes = await self._led_lanes()
            if not lanes:
                return []
            return await self._engine.ledger.claim(
                OutboxKind.DIRECTIVE, settings.batch_size, settings.lease, lanes
            )
        except LedgerError as error:
            self._engine.telemetry.dispatch_failed("claim", 0, error)
            return []

    async def _led_lanes(self) -> frozenset[int]:
        """Asked for again long before the lease on them is over, and as long as some are missing:
        another may have left them."""
        now, lease = self._engine.world.clock(), self._settings.lease
        if now >= self._lead_at or len(self._lanes) < LANES:
            self._lanes = await self._engine.ledger.lead(ALL_LANES, lease)
            self._lead_at = now + lease / _LEADS_PER_LEASE
        return self._lanes

    async def _deliver(self, claims: Sequence[Claim]) -> None:
        """Whatever happens here, what is not settled is claimed again when its lease is over."""
        for claim in claims:
            if claim.stored is not None:
                self._engine.remember(claim.stored)
        prepared = [self._quickly_prepared(claim) for claim in claims]
        others = [claim for claim, ready in zip(claims, prepared, strict=True) if ready is None]
        if others:
            prepared += await asyncio.gather(*map(self._guarded_prepare, others))
        lanes: dict[str, list[_Ready]] = {}
        for ready in prepared:
            if ready is not None:
                lanes.setdefault(ready.claim.row.topic, []).append(ready)
        await asyncio.gather(*(self._publish(topic, batch) for topic, batch in lanes.items()))

    def _quickly_prepared(self, claim: Claim) -> _Ready | None:
        """From memory, for a job that has not moved since this process committed it, as is usual;
        None: it must be looked at."""
        with suppress(Exception):  # whatever is wrong is met again, and told, when it is looked at
            return self._prepare_from_memory(claim)
        return None

    def _prepare_from_memory(self, claim: Claim) -> _Ready | None:
        stored = self._engine.recall(claim.job_id)
        if stored is None or stored.version != claim.version:
            return None
        step = _wanted(stored, claim.row)
        if step is None or self._is_late(step):
            return None
        message = self._message(claim, step)
        return _Ready(claim, message) if len(message.body) <= DIRECTIVE_LIMIT else None

    async def _guarded_prepare(self, claim: Claim) -> _Ready | None:
        """One directive that cannot be prepared must not hold up the others: it waits."""
        try:
            return await self._prepare(claim)
        except (LedgerError, ContractError) as error:
            self._engine.telemetry.dispatch_failed(claim.row.topic, 1, error)
        except Exception as error:
            await self._postpone(claim.row.topic, [claim], error)
        return None

    async def _prepare(self, claim: Claim) -> _Ready | None:
        """The message to publish; None if there is nothing to publish, and the row has ended."""
        stored = await self._engine.ledger.load(claim.job_id)
        if stored is None:
            await self._engine.ledger.discard([claim])
            return None
        stored = await self._with_a_whole_lease(stored, claim)
        step = _wanted(stored, claim.row)
        if step is None:
            await self._end_unwanted(stored, claim)
            return None
        message = self._message(claim, step)
        if len(message.body) > DIRECTIVE_LIMIT:
            await self._fail(claim, ErrorCode.DIRECTIVE_TOO_LARGE, f"{len(message.body)} bytes")
            return None
        return _Ready(claim, message)

    async def _end_unwanted(self, stored: Stored, claim: Claim) -> None:
        row = claim.row
        step = stored.aggregate.step(row.step_id)
        attempt = step.attempt(row.attempt_no) if step else None
        is_out = attempt is not None and (attempt.sent_at or attempt.acknowledged_at)
        event = OutboxSent if is_out else OutboxSuperseded
        await self._engine.apply(claim.job_id, event(*_identity(row)), claim)

    async def _with_a_whole_lease(self, stored: Stored, claim: Claim) -> Stored:
        step = _wanted(stored, claim.row)
        if step is None or not self._is_late(step):
            return stored
        event = PublishDelayed(*_identity(claim.row))
        return (await self._engine.apply(claim.job_id, event))[1]

    def _is_late(self, step: Step) -> bool:
        """Whether the directive would reach its service with less than a whole lease."""
        now, policy, ends = self._engine.world.clock(), step.policy, step.lease_expires_at
        return ends is not None and now + policy.ack_timeout + policy.lease > ends

    def _message(self, claim: Claim, step: Step) -> BusMessage:
        row, body = claim.row, claim.row.body
        if step.lease_expires_at is not None and step.lease_expires_at != row.expires_at:
            body = {**body, "lease_expires_at": on_the_wire(step.lease_expires_at)}
        if row.reply_via is ReplyVia.HTTP and self._reply_address is not None:
            body = {**body, **self._reply_address(claim.job_id, row)}
        return BusMessage(
            row.message_id,
            pydantic_core.to_json(body),
            directive_properties(body, row.service),
            row.partition_key,
            expires_at=step.lease_expires_at,
        )

    async def _publish(self, topic: str, batch: Sequence[_Ready]) -> None:
        failed = await self._unpublished(topic, [ready.message for ready in batch])
        sent, away = [], []
        for ready in batch:
            error = failed.get(ready.message.message_id)
            if error is None:
                sent.append(self._sent(ready.claim))
            elif isinstance(error, PublishRefused):
                sent.append(self._guarded_fail(ready.claim, str(error)))
            else:
                away.append(ready.claim)
        if away:
            await self._postpone(topic, away, failed[away[0].row.message_id])
        await asyncio.gather(*sent)

    async def _unpublished(self, topic: str, messages: Sequence[BusMessage]) -> dict[str, BusError]:
        try:
            async with asyncio.timeout(self._settings.publish_timeout.total_seconds()):
                unpublished = await self._bus.publish(topic, messages)
        except (BusError, TimeoutError) as error:
            away = error if isinstance(error, BusError) else BusUnavailable("publish timed out")
            return {message.message_id: away for message in messages}
        return {message.message_id: error for message, error in unpublished}

    async def _postpone(self, topic: str, claims: Sequence[Claim], error: Exception) -> None:
        self._engine.telemetry.dispatch_failed(topic, len(claims), error)
        try:
            await self._engine.ledger.postpone(claims, str(error))
        except LedgerError as failure:
            self._engine.telemetry.dispatch_failed(topic, len(claims), failure)

    async def _sent(self, claim: Claim) -> None:
        row = claim.row
        try:
            await self._engine.apply(claim.job_id, OutboxSent(*_identity(row)), claim)
        except (LedgerError, ContractError) as error:
            self._engine.telemetry.dispatch_failed(row.topic, 1, error)
            return
        self._engine.telemetry.dispatched(row.topic, self._engine.world.clock() - row.created_at)

    async def _guarded_fail(self, claim: Claim, message: str) -> None:
        try:
            await self._fail(claim, ErrorCode.DISPATCH_FAILED, message)
        except (LedgerError, ContractError) as error:
            self._engine.telemetry.dispatch_failed(claim.row.topic, 1, error)

    async def _fail(self, claim: Claim, code: ErrorCode, message: str) -> None:
        event = OutboxFailed(*_identity(claim.row), code=code, message=message)
        await self._engine.apply(claim.job_id, event, claim)


def _identity(row: DirectiveRow) -> tuple[str, int, str]:
    return row.step_id, row.attempt_no, row.lease_id


def _wanted(stored: Stored, row: DirectiveRow) -> Step | None:
    """The step, if the row is its current attempt's and that has not gone out."""
    step = stored.aggregate.active
    current = (step.step_id, step.attempt_no, step.lease_id)
    if step.state is StepState.DISPATCHING and current == _identity(row):
        return step
    return None
