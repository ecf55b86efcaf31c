"""One attempt at work: the ACK before, the team's handler, heartbeats and the deadline beside it.

Nothing here waits in the handler's thread or loop: timers, replies and renewals run in the
runtime's own loop, whatever the team's code does.
"""

import asyncio
import logging
import math
from collections.abc import Coroutine, Sequence
from typing import Any

from lucius_contract.documents import Artifact
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Directive, MessageType, Result
from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.context import StepContext, StopReason, WorkState
from lucius_sdk.directive_model import read_payload
from lucius_sdk.error_model import NonRetryableError, StepError, classify
from lucius_sdk.handlers import HandlerReturn
from lucius_sdk.idempotency_store import ClaimLost, HeldClaim, StoreError
from lucius_sdk.replies.answers import Answer, Verdict
from lucius_sdk.replies.outgoing import outgoing
from lucius_sdk.runtime import messages
from lucius_sdk.runtime.contexts import make_context
from lucius_sdk.runtime.deadline import Deadline
from lucius_sdk.runtime.interruption import Interruption, StepStopped
from lucius_sdk.runtime.parts import Parts, Slot
from lucius_sdk.service import StepHandler

_log = logging.getLogger("lucius_sdk")

_FOREIGN = "the handler returned an artifact that it did not write to its workspace"
_ACKED_AFTER = 0.1  # shorter work goes from CLAIMED to COMPLETED, which saves a write


class Work:
    """The slot is freed when the handler has really ended, which may be after the step."""

    def __init__(
        self,
        parts: Parts,
        directive: Directive,
        claim: HeldClaim,
        deadline: Deadline,
        interruption: Interruption,
        slot: Slot,
        traceparent: str,
    ) -> None:
        self.seconds: float | None = None
        self._parts = parts
        self._clock = parts.clock
        self._directive = directive
        self._address = ReplyAddress.of(directive)
        self._claim = claim
        self._deadline = deadline
        self._interruption = interruption
        self._slot = slot
        self._traceparent = traceparent
        self._state = WorkState(deadline.at)
        self._running: asyncio.Future[HandlerReturn] | None = None
        self._answered: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False
        self._work_by = self._store_ack_at = self._beat_at = math.inf

    @property
    def is_running(self) -> bool:
        """Whether the team's code is at it."""
        return self._running is not None and not self._running.done()

    async def perform(self) -> Result:
        """The RESULT of the attempt. `StepStopped` if there must not be one."""
        await self._acknowledge()
        now = self._clock.monotonic()
        self._store_ack_at = now + _ACKED_AFTER
        self._beat_at = now + self._directive.heartbeat_seconds
        result = await self._handle()
        if self._deadline.has_passed:
            raise StepStopped(StopReason.DEADLINE_PASSED)
        return result

    def visit(self, now: float) -> None:
        """Do what is due."""
        if self._is_over:
            return
        if now >= self._work_by:
            self._work_by = math.inf
            self._set_answered()
        if now >= self._store_ack_at:
            self._store_ack_at = math.inf
            self._begin(self._store_ack())
        if now >= self._beat_at:
            self._beat_at += self._directive.heartbeat_seconds
            self._begin(self._send_heartbeat())
        if now > self._deadline.monotonic:
            self.stop(StopReason.DEADLINE_PASSED)

    def stop(self, reason: StopReason) -> None:
        """The handler is told, and not waited for."""
        self._state.stop(reason)
        self._interruption.stop(reason)

    async def close(self) -> None:
        """Nothing is sent beside any more."""
        self._is_over = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _acknowledge(self) -> None:
        """Work begins when the first ACK is answered, or when that takes too long."""
        self._answered = asyncio.get_running_loop().create_future()
        self._work_by = self._clock.monotonic() + self._parts.ack_seconds
        self._begin(self._send_ack())
        with self._interruption:
            await self._answered
        self._work_by = math.inf

    async def _send_ack(self) -> None:
        capacity, now = self._parts.capacity, self._clock.now()
        reply = outgoing(messages.ack(self._directive, now, self._traceparent, capacity))
        sent, deadline = self._clock.monotonic(), self._deadline
        try:
            answer = await self._parts.acks.ack(self._address, reply, lambda: deadline.monotonic)
            self._heed(MessageType.ACK, answer, sent)
        finally:
            self._set_answered()

    def _set_answered(self) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(None)

    async def _store_ack(self) -> None:
        """For whoever takes over: that it was acknowledged, and until when there is time."""
        try:
            await self._claim.acked(self._deadline.at)
        except ClaimLost:
            self.stop(StopReason.SUPERSEDED)
        except StoreError as error:  # the deadline is stored again with the next renewal
            _log.warning("store.unavailable", extra={"error": str(error)})

    async def _send_heartbeat(self) -> None:
        """Until the next one is due, which says more."""
        sent, progress = self._clock.monotonic(), self._state.latest_progress()
        due = sent + self._directive.heartbeat_seconds
        capacity, now, trace = self._parts.capacity, self._clock.now(), self._traceparent
        reply = outgoing(messages.heartbeat(self._directive, now, trace, capacity, progress))
        answer = await self._parts.acks.heartbeat(
            self._address, reply, lambda: min(due, self._deadline.monotonic)
        )
        self._heed(MessageType.HEARTBEAT, answer, sent)

    def _heed(self, kind: MessageType, answer: Answer | None, sent: float) -> None:
        """What the orchestrator answered, if it did in time."""
        if answer is None:
            return
        self._parts.metrics.reply(kind, answer.verdict)
        if answer.verdict is Verdict.STALE:
            self.stop(StopReason.LEASE_LOST)
        elif answer.verdict is Verdict.SENT:
            self._deadline.extend_from(sent, self._directive.lease_seconds)
        elif answer.lease_expires_at is not None:
            self._deadline.extend_to(answer.lease_expires_at)
        self._state.set_deadline(self._deadline.at)
        if answer.cancel_requested:
            self._state.request_cancel()

    async def _handle(self) -> Result:
        handler = self._parts.service.handler_of(self._directive)
        try:
            context = self._context(handler)
        except StepError as error:
            return self._failed(error)
        try:
            chosen = await self._run(handler, context)
            artifacts = _to_report(chosen, context.workspace.artifacts)
        except StepStopped:
            raise
        except Exception as error:
            return self._failed(error)
        now, published = self._clock.now(), context.published
        return messages.succeeded(self._directive, now, self._traceparent, artifacts, published)

    def _context(self, handler: StepHandler[Any]) -> StepContext[Any]:
        directive, epoch = self._directive, self._claim.record.epoch
        is_plain = handler.payload is None
        payload = directive.payload if is_plain else read_payload(handler.payload, directive)
        storages, clock = self._parts.storages, self._clock
        return make_context(storages, directive, payload, epoch, self._state, clock)

    async def _run(self, handler: StepHandler[Any], context: StepContext[Any]) -> HandlerReturn:
        began = self._clock.monotonic()
        self._parts.metrics.running(1)
        running = self._running = self._parts.pool.submit(handler, context)
        running.add_done_callback(lambda _: self._ended(began))
        with self._interruption:
            return await asyncio.shield(running)

    def _ended(self, began: float) -> None:
        assert self._running is not None
        if not self._running.cancelled():
            self._running.exception()  # asked for, whether or not somebody still waits for it
        self.seconds = self._clock.monotonic() - began
        self._parts.metrics.running(-1)
        self._slot.free(self.seconds)

    def _failed(self, error: Exception) -> Result:
        failure = classify(error, self._parts.name)
        if not isinstance(error, StepError):
            _log.warning("handler.raised", exc_info=error, extra={"code": failure.code})
        return messages.failed(self._directive, self._clock.now(), self._traceparent, failure)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("reply.broken", exc_info=error)


def _to_report(chosen: HandlerReturn, written: Sequence[Artifact]) -> Sequence[Artifact]:
    """What the handler returned, or all that it has written."""
    if chosen is None:
        return written
    if not {each.uri for each in chosen} <= {each.uri for each in written}:
        raise NonRetryableError(ErrorCode.INTERNAL, _FOREIGN)
    return chosen
