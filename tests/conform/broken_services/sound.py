"""A service that keeps every rule. Each broken one is this one with a few lines changed, so what it
does is cut into small methods.

A directive is read, claimed in the store, acknowledged, worked on, and its RESULT is stored, sent
until it is answered, and marked as reported; only then its message is completed.
"""

import asyncio
import time
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime
from typing import Any

from tests.conform.broken_services.attempts import Attempt, Stop
from tests.conform.broken_services.directives import (
    Directive,
    Malformed,
    check_version,
    directive_of,
    json_object,
)
from tests.conform.broken_services.lanes import BusAway, Delivery
from tests.conform.broken_services.program import Program
from tests.conform.broken_services.replies import Answer, NotDelivered
from tests.conform.broken_services.store import Claim, Verdict
from tests.conform.broken_services.wording import FAILED_FINAL, Outcome, Wording, encoded
from tests.conform.broken_services.work import Work

STEP_TYPE = "GREETING"
_SKEW = 2.0
_GLANCE = 0.1
_LONGEST_PAUSE = 2.0


class Service(Program, Work, Wording):
    """`process` is the way of a directive."""

    async def serve(self, delivery: Delivery) -> None:
        try:
            await self.attend(delivery)
        finally:
            delivery.make_room()

    async def attend(self, delivery: Delivery) -> None:
        if self.is_closed_for_new_work():
            await delivery.abandon()
            return
        try:
            directive = self.read(delivery.body)
        except Malformed as error:
            await self.refuse_malformed(delivery, str(error))
            return
        if not self.owns(directive):
            await self.refuse(delivery, "STEP_TYPE_NOT_OWNED", directive.step_type)
            return
        await self.keep_while(Attempt(directive, delivery))

    def is_closed_for_new_work(self) -> bool:
        return self.stopping.is_set()

    def read(self, raw: bytes) -> Directive:
        """`Malformed`."""
        body = json_object(raw)
        check_version(body)
        return directive_of(body)

    async def refuse_malformed(self, delivery: Delivery, why: str) -> None:
        await self.refuse(delivery, "MALFORMED", why)

    async def refuse(self, delivery: Delivery, reason: str, description: str) -> None:
        with suppress(BusAway):
            await delivery.dead_letter(reason, description)

    def owns(self, directive: Directive) -> bool:
        return directive.step_type == STEP_TYPE

    async def keep_while(self, attempt: Attempt) -> None:
        """Its message and its claim are kept while it is processed. Whoever cancels this wants both
        back."""
        task = asyncio.current_task()
        assert task is not None
        self.attempts[task] = attempt
        keeping = asyncio.create_task(self.keep(attempt))
        try:
            await self.process(attempt)
        except asyncio.CancelledError:
            await self.give_back(attempt)
        finally:
            keeping.cancel()
            del self.attempts[task]

    async def keep(self, attempt: Attempt) -> None:
        while True:
            await asyncio.sleep(attempt.delivery.lock_seconds / 3)
            await self.renew_lock(attempt)
            self.renew_claim(attempt)

    async def renew_lock(self, attempt: Attempt) -> None:
        """A lock that is lost is no loss: who gets the message finds the claim."""
        with suppress(BusAway):
            await attempt.delivery.renew()

    def renew_claim(self, attempt: Attempt) -> None:
        if attempt.row is None:
            return
        until = time.time() + attempt.delivery.lock_seconds
        if not self.store.extend(attempt.row, until, attempt.deadline):
            attempt.stop(Stop.LOST)

    async def give_back(self, attempt: Attempt) -> None:
        if attempt.row is not None:
            self.store.release(attempt.row)
        with suppress(BusAway):
            await attempt.delivery.abandon()

    async def process(self, attempt: Attempt) -> None:
        claim = await self.own(attempt)
        if claim.is_mine:
            attempt.row = claim.row
            attempt.extend(claim.row.deadline)
            result = self.stored_result(claim) or await self.perform(attempt)
            if result is not None:
                await self.report(attempt, result)
        await self.settle(attempt)

    async def own(self, attempt: Attempt) -> Claim:
        """Waits while somebody else is alive who owns it."""
        while (claim := await self.claim(attempt)).verdict is Verdict.BUSY:
            attempt.delivery.make_room()
            await asyncio.sleep(_GLANCE)
        return claim

    async def claim(self, attempt: Attempt) -> Claim:
        now = time.time()
        return self.store.claim(attempt.directive, now, now + attempt.delivery.lock_seconds)

    def stored_result(self, claim: Claim) -> bytes | None:
        return claim.row.result

    async def perform(self, attempt: Attempt) -> bytes | None:
        """The RESULT as it is stored; None if there is nothing to report."""
        if self.is_expired(attempt, _SKEW):
            return None
        async with self.slot(attempt):
            attempt.is_at_work = True
            if self.is_expired(attempt, _SKEW):
                return None
            outcome = await self.run(attempt)
            result = self.finish(attempt, outcome)
        attempt.delivery.make_room()
        return result

    def is_expired(self, attempt: Attempt, skew: float) -> bool:
        return time.time() > attempt.deadline + skew

    def slot(self, _attempt: Attempt) -> AbstractAsyncContextManager[Any]:
        return self.slots

    async def run(self, attempt: Attempt) -> Outcome | None:
        beating = asyncio.create_task(self.beat(attempt))
        try:
            return await self.acknowledge_and_work(attempt)
        finally:
            beating.cancel()

    async def acknowledge_and_work(self, attempt: Attempt) -> Outcome | None:
        """The ACK goes first. If it is not answered in time the work begins, and the ACK is tried
        again beside it."""
        acknowledging = asyncio.create_task(self.acknowledge(attempt))
        try:
            await asyncio.wait({acknowledging}, timeout=self.settings.ack_seconds)
            return await self.work_unless_stopped(attempt)
        finally:
            acknowledging.cancel()

    async def acknowledge(self, attempt: Attempt) -> None:
        began = time.time()
        raw = encoded(self.ack(attempt.directive))
        self.heed(attempt, await self.send_until_answered(attempt, "ACK", raw), began)

    async def beat(self, attempt: Attempt) -> None:
        while True:
            await asyncio.sleep(self.beats_every(attempt.directive))
            began = time.time()
            raw = encoded(self.heartbeat(attempt.directive))
            with suppress(NotDelivered):
                answer = await self.replies.send(attempt.directive, "HEARTBEAT", raw)
                self.heed(attempt, answer, began)

    def beats_every(self, directive: Directive) -> float:
        return directive.heartbeat_seconds

    def heed(self, attempt: Attempt, answer: Answer, sent_at: float) -> None:
        """What the orchestrator says to an ACK or a HEARTBEAT. The bus says nothing; there the
        lease counts from when it was sent."""
        if answer.is_stale:
            attempt.stop(Stop.STALE)
        if answer.body.get("cancel_requested"):
            attempt.stop(Stop.CANCELLED)
        ends = answer.body.get("lease_expires_at")
        if ends is not None:
            attempt.extend(datetime.fromisoformat(ends).timestamp())
        elif attempt.directive.callback_urls is None:
            attempt.extend(sent_at + attempt.directive.lease_seconds)

    async def work_unless_stopped(self, attempt: Attempt) -> Outcome | None:
        working = asyncio.create_task(self.work(attempt.directive, attempt.claimed.epoch))
        stopped = asyncio.create_task(attempt.stopped.wait())
        try:
            await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if attempt.stop_reason is not None:
                return self.stopped_outcome(attempt.stop_reason)
            return working.result()
        finally:
            working.cancel()
            stopped.cancel()

    def stopped_outcome(self, reason: Stop) -> Outcome | None:
        if reason is Stop.CANCELLED:
            return Outcome(FAILED_FINAL, code="CANCELLED", message=reason)
        return None

    def finish(self, attempt: Attempt, outcome: Outcome | None) -> bytes | None:
        """Stored before it is sent. What ended after its lease, or after a newer attempt came, does
        not count."""
        if outcome is None or self.is_expired(attempt, 0.0):
            return None
        raw = encoded(self.result(attempt.directive, outcome))
        return raw if self.store.complete(attempt.claimed, raw) else None

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        await self.send_until_answered(attempt, "RESULT", raw)
        self.store.report(attempt.claimed)

    async def send_until_answered(self, attempt: Attempt, type: str, raw: bytes) -> Answer:
        """A refused token is tried until the lease ends, everything else until it is answered."""
        pause = _GLANCE
        while True:
            pause = min(2 * pause, _LONGEST_PAUSE)
            wait = pause
            with suppress(NotDelivered):
                answer = await self.replies.send(attempt.directive, type, raw)
                if answer.is_final or (answer.is_refused and self.is_expired(attempt, 0.0)):
                    return answer
                wait = max(pause, answer.retry_after)
            await self.pause(wait)

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def settle(self, attempt: Attempt) -> None:
        """If that fails it comes again, and is found to be done."""
        with suppress(BusAway):
            await attempt.delivery.complete()
