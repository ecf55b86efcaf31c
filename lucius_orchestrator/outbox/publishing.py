"""Publishes directives that are claimed, and lets the ledger know.

Before a directive goes out, the job is looked at: an attempt that is over, or that has somehow gone
out already, is not published again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from lucius_bus.port import Bus, BusError, BusMessage, BusUnavailable, PublishRefused
from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import DIRECTIVE_LIMIT, directive_properties
from lucius_contract.refs import ARTIFACT
from lucius_contract.states import StepState
from lucius_orchestrator.domain.aggregate import ReplyVia, Step
from lucius_orchestrator.domain.decision import DirectiveRow
from lucius_orchestrator.domain.directive import on_the_wire, text_of_body
from lucius_orchestrator.domain.events import (
    OutboxFailed,
    OutboxSent,
    OutboxSuperseded,
    PublishDelayed,
)
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.ports.ledger import Claim, LedgerError, Stored

ReplyAddress = Callable[[str, DirectiveRow], Mapping[str, Any]]
"""What a directive of a job carries so that it is answered over HTTP: addresses and a token."""

ArtifactToken = Callable[[str, DirectiveRow], str]
"""With which the attempt of a directive proves that it publishes an artifact."""


class _Ready(NamedTuple):
    """A directive that is to go out, and its message."""

    claim: Claim
    message: BusMessage


class DirectivePublisher:
    def __init__(
        self,
        engine: LedgerEngine,
        bus: Bus,
        timeout: timedelta,
        reply_address: ReplyAddress | None = None,
        artifact_token: ArtifactToken | None = None,
    ) -> None:
        engine.dispatches = True
        self._engine = engine
        self._bus = bus
        self._timeout = timeout
        self._reply_address = reply_address
        self._artifact_token = artifact_token

    async def deliver(self, claims: Sequence[Claim]) -> None:
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
                lanes.setdefault(row_of(ready.claim).topic, []).append(ready)
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
        step = _wanted(stored, row_of(claim))
        if step is None or self._is_late(step):
            return None
        message = self._message(claim, step)
        return _Ready(claim, message) if len(message.body) <= DIRECTIVE_LIMIT else None

    async def _guarded_prepare(self, claim: Claim) -> _Ready | None:
        """One directive that cannot be prepared must not hold up the others: it waits."""
        try:
            return await self._prepare(claim)
        except (LedgerError, ContractError) as error:
            self._engine.telemetry.dispatch_failed(row_of(claim).topic, 1, error)
        except Exception as error:
            await self._postpone(row_of(claim).topic, [claim], error)
        return None

    async def _prepare(self, claim: Claim) -> _Ready | None:
        """The message to publish; None if there is nothing to publish, and the row has ended."""
        stored = await self._engine.ledger.load(claim.job_id)
        if stored is None:
            await self._engine.ledger.discard([claim])
            return None
        stored = await self._with_a_whole_lease(stored, claim)
        step = _wanted(stored, row_of(claim))
        if step is None:
            await self._end_unwanted(stored, claim)
            return None
        message = self._message(claim, step)
        if len(message.body) > DIRECTIVE_LIMIT:
            await self._fail(claim, ErrorCode.DIRECTIVE_TOO_LARGE, f"{len(message.body)} bytes")
            return None
        return _Ready(claim, message)

    async def _end_unwanted(self, stored: Stored, claim: Claim) -> None:
        row = row_of(claim)
        step = stored.aggregate.step(row.step_id)
        attempt = step.attempt(row.attempt_no) if step else None
        is_out = attempt is not None and (attempt.sent_at or attempt.acknowledged_at)
        event = OutboxSent if is_out else OutboxSuperseded
        await self._engine.apply(claim.job_id, event(*_identity(row)), claim)

    async def _with_a_whole_lease(self, stored: Stored, claim: Claim) -> Stored:
        step = _wanted(stored, row_of(claim))
        if step is None or not self._is_late(step):
            return stored
        event = PublishDelayed(*_identity(row_of(claim)))
        return (await self._engine.apply(claim.job_id, event))[1]

    def _is_late(self, step: Step) -> bool:
        """Whether the directive would reach its service with less than a whole lease."""
        now, policy, ends = self._engine.world.clock(), step.policy, step.lease_expires_at
        return ends is not None and now + policy.ack_timeout + policy.lease > ends

    def _message(self, claim: Claim, step: Step) -> BusMessage:
        row = row_of(claim)
        body = row.body
        if step.lease_expires_at is not None and step.lease_expires_at != row.expires_at:
            body = {**body, "lease_expires_at": on_the_wire(step.lease_expires_at)}
        if row.reply_via is ReplyVia.HTTP and self._reply_address is not None:
            body = {**body, **self._reply_address(claim.job_id, row)}
        if self._artifact_token is not None and _names_artifact(row):
            body = {**body, "artifact_token": self._artifact_token(claim.job_id, row)}
        return BusMessage(
            row.message_id,
            text_of_body(body).encode(),
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
            await self._postpone(topic, away, failed[row_of(away[0]).message_id])
        await asyncio.gather(*sent)

    async def _unpublished(self, topic: str, messages: Sequence[BusMessage]) -> dict[str, BusError]:
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
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
        row = row_of(claim)
        try:
            await self._engine.apply(claim.job_id, OutboxSent(*_identity(row)), claim)
        except (LedgerError, ContractError) as error:
            self._engine.telemetry.dispatch_failed(row.topic, 1, error)
            return
        self._engine.telemetry.dispatched(row.topic, row.created_at, self._engine.world.clock)

    async def _guarded_fail(self, claim: Claim, message: str) -> None:
        try:
            await self._fail(claim, ErrorCode.DISPATCH_FAILED, message)
        except (LedgerError, ContractError) as error:
            self._engine.telemetry.dispatch_failed(row_of(claim).topic, 1, error)

    async def _fail(self, claim: Claim, code: ErrorCode, message: str) -> None:
        event = OutboxFailed(*_identity(row_of(claim)), code=code, message=message)
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


def _names_artifact(row: DirectiveRow) -> bool:
    uri: str = row.body["output_ref"]["uri"]
    return urlsplit(uri).scheme == ARTIFACT


def row_of(claim: Claim) -> DirectiveRow:
    assert isinstance(claim.row, DirectiveRow), "directives alone are published"
    return claim.row
