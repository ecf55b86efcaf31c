"""One attempt of one step, from its message to the settlement of it.

    claim ─┬─ run: ACK, work ── RESULT stored ─┬─ RESULT sent until answered ── REPORTED ── settled
           ├─ crash loop: a failure ───────────┘                 │
           ├─ resend: the RESULT that is stored ─────────────────┘
           ├─ held by another: wait, claim again
           └─ finished, superseded, expired ── settled

The claim in the dedup store is what makes it exactly one RESULT; the message is what makes somebody
come back to it. So the message is kept locked until the store says REPORTED, and whoever dies in
between leaves both to the next one.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from lucius_bus.port import Delivery
from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import Directive, FailureClass, Result, ResultStatus
from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.context import StopReason
from lucius_sdk.error_model import Failure
from lucius_sdk.idempotency_store import (
    Claimed,
    ClaimKind,
    ClaimLost,
    DeadlinePassed,
    Expired,
    Finished,
    Held,
    HeldClaim,
    RecordUnreadable,
    Refused,
    StepKey,
    StoredResult,
    StoreError,
    Superseded,
)
from lucius_sdk.logs import step_logs
from lucius_sdk.metrics import StepOutcome
from lucius_sdk.replies.outgoing import outgoing
from lucius_sdk.runtime import messages
from lucius_sdk.runtime.deadline import Deadline
from lucius_sdk.runtime.interruption import Interruption, StepStopped
from lucius_sdk.runtime.locks import MessageLocks
from lucius_sdk.runtime.parts import Parts, Slot
from lucius_sdk.runtime.reporting import report, trying
from lucius_sdk.runtime.work import Work

_log = logging.getLogger("lucius_sdk")

_SHORTEST_WAIT = 0.2
_LONGEST_WAIT = 5.0
_CRASH_LOOP = Failure.of(
    FailureClass.RETRYABLE, ErrorCode.CRASH_LOOP, "the service died too often at this attempt"
)
_STOPPED = {
    StopReason.SUPERSEDED: StepOutcome.SUPERSEDED,
    StopReason.LEASE_LOST: StepOutcome.LEASE_LOST,
    StopReason.DEADLINE_PASSED: StepOutcome.LEASE_LOST,
    StopReason.SHUTTING_DOWN: StepOutcome.RELEASED,
}
_REPORTED = {
    ResultStatus.SUCCEEDED: StepOutcome.SUCCEEDED,
    ResultStatus.FAILED_RETRY: StepOutcome.FAILED_RETRY,
    ResultStatus.FAILED_FINAL: StepOutcome.FAILED_FINAL,
}


class Step:
    """Its messages are added; `live` ends when they are settled."""

    def __init__(self, parts: Parts, directive: Directive, slot: Slot) -> None:
        self.directive = directive
        self.key = StepKey(directive.job_id, directive.step_id)
        self._parts = parts
        self._clock = parts.clock
        self._slot = slot
        self._locks = MessageLocks(parts.bus, parts.clock, parts.metrics, self._renew_claim)
        self._deadline = Deadline(parts.clock, directive.lease_expires_at, parts.skew)
        self._interruption = Interruption()
        self._is_waiting = False
        self._must_not_wait: StopReason | None = None
        self._claim: HeldClaim | None = None
        self._work: Work | None = None
        self._code: str | None = None

    def is_same(self, directive: Directive) -> bool:
        """Whether it is the same attempt."""
        return (self.directive.attempt_no, self.directive.lease_id) == (
            directive.attempt_no,
            directive.lease_id,
        )

    def add(self, delivery: Delivery) -> None:
        """A message of this attempt: it is kept, and settled with the step."""
        self._locks.add(delivery)

    def stop(self, reason: StopReason) -> None:
        if self._work is None:
            self._interruption.stop(reason)
        else:
            self._work.stop(reason)

    def stop_waiting(self, reason: StopReason) -> None:
        """Stop if it waits for another instance or for a slot, or as soon as it would."""
        self._must_not_wait = reason
        if self._is_waiting:
            self.stop(reason)

    def visit(self, now: float) -> None:
        self._locks.visit(now)
        if self._work is not None:
            self._work.visit(now)

    async def live(self) -> None:
        """Until it is settled. It does not raise: what goes wrong is logged, and the message is
        made available again."""
        try:
            outcome = await self._live()
        except StepStopped as stopped:
            outcome = await self._leave(stopped.reason)
        except ClaimLost:
            outcome = await self._leave(StopReason.SUPERSEDED)
        except DeadlinePassed:
            outcome = await self._leave(StopReason.DEADLINE_PASSED)
        except RecordUnreadable as error:
            outcome = StepOutcome.DEAD_LETTERED
            await self._locks.dead_letter("DEDUP_RECORD_UNREADABLE", str(error))
        except Exception:
            _log.exception("step.broken", extra=self._said())
            outcome = await self._break()
        finally:
            self._free_slot()
            await self._locks.close()
        self._tell(outcome)

    async def _live(self) -> StepOutcome:
        self._interruption.check()
        claimed = await self._claimed()
        if not isinstance(claimed, Claimed):
            await self._locks.complete()
            return _refusal(claimed)
        self._claim = claim = claimed.claim
        self._deadline.extend_to(claim.record.deadline)
        outcome = StepOutcome.DUPLICATE
        if claimed.kind is not ClaimKind.RESEND:
            result = await self._result(claim, claimed.kind)
            await self._store(claim, result)
            outcome = _REPORTED[result.status]
            self._code = None if result.error is None else result.error.code
        self._free_slot()
        await report(self._parts, claim, self._interruption, self._deadline.at)
        await self._locks.complete()
        return outcome

    async def _claimed(self) -> Claimed | Finished | Superseded | Expired:
        """As soon as nobody else has it."""
        while True:
            found = await trying(self._parts, self._interruption, self._try_to_claim)
            if not isinstance(found, Held):
                return found
            self._slot.free()
            await self._wait(found.until)

    async def _try_to_claim(self) -> Claimed | Refused:
        return await self._parts.claims.claim(
            self.key,
            attempt_no=self.directive.attempt_no,
            lease_id=self.directive.lease_id,
            until=self._locks.until,
            deadline=self._deadline.at,
        )

    async def _wait(self, until: datetime) -> None:
        """Whoever has it may be done long before its claim lapses, or may renew it."""
        left = (until - self._clock.now()).total_seconds() + self._parts.skew
        with self._waiting():
            await self._clock.sleep(min(max(left, _SHORTEST_WAIT), _LONGEST_WAIT))

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """There is nothing yet that could be finished."""
        if self._must_not_wait is not None:
            raise StepStopped(self._must_not_wait)
        self._is_waiting = True
        self._parts.metrics.waiting(1)
        try:
            with self._interruption:
                yield
        finally:
            self._is_waiting = False
            self._parts.metrics.waiting(-1)

    async def _result(self, claim: HeldClaim, kind: ClaimKind) -> Result:
        directive = self.directive
        with step_logs(directive), self._parts.tracing.step_span(directive) as span:
            if kind is ClaimKind.CRASH_LOOP:
                now = self._clock.now()
                return messages.failed(directive, now, span.traceparent, _CRASH_LOOP)
            self._interruption.check()
            if not self._slot.is_held:
                with self._waiting():
                    await self._slot.take()
            if self._deadline.has_passed:
                raise StepStopped(StopReason.DEADLINE_PASSED)
            stop, slot, trace = self._interruption, self._slot, span.traceparent
            work = Work(self._parts, directive, claim, self._deadline, stop, slot, trace)
            self._work = work
            try:
                return await work.perform()
            finally:
                await work.close()

    async def _store(self, claim: HeldClaim, result: Result) -> None:
        """Before it is sent, so that it is sent even if we are not there any more."""
        stored = StoredResult(self._body(result), ReplyAddress.of(self.directive))

        async def complete() -> None:
            await claim.complete(stored, self._clock.now(), self._deadline.at)

        await trying(self._parts, self._interruption, complete)

    def _body(self, result: Result) -> bytes:
        try:
            return outgoing(result).body
        except ContractError as error:
            failure = Failure.of(FailureClass.NON_RETRYABLE, ErrorCode.INTERNAL, str(error))
            trace = result.traceparent or self.directive.traceparent
            return messages.failed(self.directive, self._clock.now(), trace, failure).to_bytes()

    async def _renew_claim(self, until: datetime) -> None:
        if self._claim is None:
            return
        try:
            await self._claim.renew(until, self._deadline.at)
        except ClaimLost:
            self.stop(StopReason.SUPERSEDED)
        except StoreError as error:
            _log.warning("store.unavailable", extra={"error": str(error)})

    async def _leave(self, reason: StopReason) -> StepOutcome:
        """Stopped work is done with, unless another instance shall go on with it: then the claim is
        free before the message is."""
        if reason is not StopReason.SHUTTING_DOWN:
            await self._locks.complete()
            return _STOPPED[reason]
        await self._release()
        await self._locks.abandon()
        return _STOPPED[reason]

    async def _break(self) -> StepOutcome:
        """A defect of ours: the message comes again when its lock has run out, not at once, since
        it would be dead-lettered within a moment."""
        await self._release()
        return StepOutcome.RELEASED

    async def _release(self) -> None:
        await self._locks.close()
        if self._claim is not None:
            try:
                await self._claim.release()
            except StoreError as error:  # it lapses with the lock
                _log.warning("store.unavailable", extra={"error": str(error)})

    def _free_slot(self) -> None:
        """Unless the handler still has it."""
        if self._work is None or not self._work.is_running:
            self._slot.free()

    def _tell(self, outcome: StepOutcome) -> None:
        seconds = None if self._work is None else self._work.seconds
        self._parts.metrics.finished(self.directive.step_type, outcome, seconds)
        told = {"outcome": outcome, "code": self._code, "seconds": seconds}
        _log.info("step.ended", extra=self._said() | told)

    def _said(self) -> dict[str, object]:
        directive = self.directive
        return {
            "jobId": directive.job_id,
            "stepId": directive.step_id,
            "tenant_id": directive.tenant_id,
            "step_type": directive.step_type,
            "attempt_no": directive.attempt_no,
            "lease_id": directive.lease_id,
            "correlation_id": directive.correlation_id,
        }


def _refusal(found: Finished | Superseded | Expired) -> StepOutcome:
    match found:
        case Finished():
            return StepOutcome.DUPLICATE
        case Superseded():
            return StepOutcome.SUPERSEDED
        case Expired():
            return StepOutcome.EXPIRED
