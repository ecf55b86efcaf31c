"""Mistakes in what replies say, when they are sent, and where they go."""

import asyncio
import json
import os
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from tests.conform.broken_services.attempts import Attempt
from tests.conform.broken_services.directives import Directive
from tests.conform.broken_services.flaws.flaw import Flaw
from tests.conform.broken_services.lanes import LANES
from tests.conform.broken_services.replies import Answer, Replies
from tests.conform.broken_services.sound import Service
from tests.conform.broken_services.wording import SUCCEEDED, Body, Outcome, encoded

_BATCH_SECONDS = 3.5
_LONG_SECONDS = 0.5
_GLANCE = 0.1


class AcksAfterTheWork(Service):
    """The ACK is sent when the work is done, together with its result."""

    async def acknowledge_and_work(self, attempt: Attempt) -> Outcome | None:
        outcome = await self.work_unless_stopped(attempt)
        await self.acknowledge(attempt)
        reason = attempt.stop_reason
        return outcome if reason is None else self.stopped_outcome(reason)


class AcksOnlyLongWork(Service):
    """Work that ends at once is not acknowledged: its RESULT says it all."""

    async def acknowledge_and_work(self, attempt: Attempt) -> Outcome | None:
        working = asyncio.create_task(self.work_unless_stopped(attempt))
        await asyncio.wait({working}, timeout=_LONG_SECONDS)
        acknowledging = None if working.done() else asyncio.create_task(self.acknowledge(attempt))
        try:
            return await working
        finally:
            if acknowledging is not None:
                acknowledging.cancel()


class AcksInTurn(Service):
    """An ACK waits until no other directive is being worked on."""

    async def acknowledge(self, attempt: Attempt) -> None:
        while any(each.is_at_work for each in self.attempts.values() if each is not attempt):
            await asyncio.sleep(_GLANCE)
        await super().acknowledge(attempt)


class AcksInBatches(Service):
    """ACKs are collected for some seconds to save requests, and the work waits for them."""

    async def acknowledge_and_work(self, attempt: Attempt) -> Outcome | None:
        await asyncio.sleep(_BATCH_SECONDS)
        return await super().acknowledge_and_work(attempt)


class AcksWithoutTheTenant(Service):
    """The ACK is put together by hand, and its tenant was forgotten."""

    def ack(self, directive: Directive) -> Body:
        body = super().ack(directive)
        del body["tenant_id"]
        return body


class WritesTheAttemptAsText(Service):
    """The attempt number of the ACK is taken from a text property of the message."""

    def ack(self, directive: Directive) -> Body:
        return {**super().ack(directive), "attempt_no": str(directive.attempt_no)}


class StampsWithoutOffset(Service):
    """The time of the ACK is in UTC, but does not say so."""

    def ack(self, directive: Directive) -> Body:
        now = datetime.now(UTC).replace(tzinfo=None)
        return {**super().ack(directive), "timestamp": now.isoformat()}


class StampsLocalTime(Service):
    """The clock on the wall, two hours ahead of UTC, is written with a Z behind it."""

    def timestamp(self) -> str:
        local = datetime.now(UTC) + timedelta(hours=2)
        return local.isoformat().replace("+00:00", "Z")


class CorrelatesFailuresByJob(Service):
    """A failure is built in another place than a success, with the job for its correlation."""

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = super().result(directive, outcome)
        if outcome.status == SUCCEEDED:
            return body
        return {**body, "correlation_id": directive.job_id}


class _Restamping(Replies):
    async def send(self, directive: Directive, type: str, raw: bytes) -> Answer:
        if type == "RESULT":
            now = datetime.now(UTC).isoformat()
            raw = encoded({**json.loads(raw), "timestamp": now})
        return await super().send(directive, type, raw)


class StampsEveryTry(Service):
    """The RESULT gets its timestamp when it is sent, anew for every try."""

    replies_type = _Restamping


class _Counting(Replies):
    tries = 0

    async def send(self, directive: Directive, type: str, raw: bytes) -> Answer:
        if type == "RESULT":
            self.tries += 1
            raw = encoded({**json.loads(raw), "x_try": self.tries})
        return await super().send(directive, type, raw)


class CountsItsTries(Service):
    """The RESULT says at which try it was sent."""

    replies_type = _Counting


class SendsTheResultTwice(Service):
    """The end of the work and the end of the message both send the RESULT."""

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        await super().report(attempt, raw)
        await self.send_until_answered(attempt, "RESULT", raw)


class BeginsANewTrace(Service):
    """Every reply is the root of a trace of its own."""

    def traceparent(self, _directive: Directive) -> str:
        return f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01"


class KeepsTheFirstTrace(Service):
    """The trace context is set when the client is made, and never again."""

    first = ""

    def traceparent(self, directive: Directive) -> str:
        self.first = self.first or super().traceparent(directive)
        return self.first


class _WithoutTrace(Replies):
    def headers(self, _raw: bytes) -> dict[str, str]:
        return {}


class LeavesOutTheTraceHeader(Service):
    """The trace is in the body alone, where no proxy and no library looks for it."""

    replies_type = _WithoutTrace


class _OverHttp(Replies):
    known: Mapping[str, str] | None = None

    def url(self, directive: Directive, type: str) -> str | None:
        self.known = directive.callback_urls or self.known
        return None if self.known is None else self.known[type.lower()]


class AnswersAlwaysOverHttp(Service):
    """The addresses for replies are taken from the first directive that has some."""

    replies_type = _OverHttp


class _OnLaneZero(Replies):
    def lane(self, _directive: Directive) -> int:
        return 0


class AnswersOnLaneZero(Service):
    """One sender, made at the start, serves all lanes."""

    replies_type = _OnLaneZero


class _OnComputedLane(Replies):
    def lane(self, directive: Directive) -> int:
        return zlib.crc32(directive.job_id.encode()) % LANES


class ComputesTheLane(Service):
    """The lane of a reply is computed from the job instead of read from the directive."""

    replies_type = _OnComputedLane


class _WithFirstToken(Replies):
    first = ""

    def token(self, directive: Directive, type: str) -> str:
        self.first = self.first or directive.callback_token
        return self.first if type == "ACK" else super().token(directive, type)


class KeepsTheFirstToken(Service):
    """The client for ACKs is made with the token of the first directive, and kept."""

    replies_type = _WithFirstToken


FLAWS = (
    Flaw("LC-01", AcksAfterTheWork, ("before-work-http",)),
    Flaw("LC-01", AcksInBatches, ("before-work-http",)),
    Flaw("LC-01", AcksOnlyLongWork, ("before-result-http",)),
    Flaw("LC-01", AcksInTurn, ("beside-work",)),
    Flaw("LC-02", AcksWithoutTheTenant, ("identity-http",)),
    Flaw("LC-02", WritesTheAttemptAsText, ("identity-http",)),
    Flaw("LC-02", StampsWithoutOffset, ("identity-http",)),
    Flaw("LC-02", StampsLocalTime, ("identity-bus",)),
    Flaw("LC-02", CorrelatesFailuresByJob, ("identity-http",)),
    Flaw("LC-03", StampsEveryTry, ("same-again",)),
    Flaw("LC-03", CountsItsTries, ("same-again",)),
    Flaw("LC-03", SendsTheResultTwice, ("one-bus",)),
    Flaw("LC-20", BeginsANewTrace, ("trace-http",)),
    Flaw("LC-20", KeepsTheFirstTrace, ("trace-http",)),
    Flaw("LC-20", LeavesOutTheTraceHeader, ("trace-bus",)),
    Flaw("LC-25", AnswersAlwaysOverHttp, ("address-bus",)),
    Flaw("LC-25", AnswersOnLaneZero, ("address-bus",)),
    Flaw("LC-25", ComputesTheLane, ("address-bus",)),
    Flaw("LC-25", KeepsTheFirstToken, ("address-http",)),
)
