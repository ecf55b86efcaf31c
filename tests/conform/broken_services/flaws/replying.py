"""Mistakes in what replies say, when they are sent, and where they go."""

import asyncio
import json
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

from tests.conform.broken_services.attempts import Attempt
from tests.conform.broken_services.directives import Directive
from tests.conform.broken_services.flaws.flaw import Flaw
from tests.conform.broken_services.lanes import LANES
from tests.conform.broken_services.replies import Answer, NotDelivered, Replies
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


class AcksBehindTheResult(Service):
    """What need not wait for its input is answered first and acknowledged then."""

    async def acknowledge_and_work(self, attempt: Attempt) -> Outcome | None:
        return await self.work_unless_stopped(attempt)

    async def work(self, directive: Directive, _epoch: int) -> Outcome:
        self.begin(self.look_at_input(directive))
        return Outcome(SUCCEEDED)

    async def look_at_input(self, directive: Directive) -> None:
        await self.read_input(directive)

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        await super().report(attempt, raw)
        await self.acknowledge(attempt)


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


class AcksWithoutStatus(Service):
    """The ACK says by its type alone that it is one."""

    def ack(self, directive: Directive) -> Body:
        body = super().ack(directive)
        del body["status"]
        return body


class AcksWithoutType(Service):
    """The address of the ACK says what it is, so the body does not."""

    def ack(self, directive: Directive) -> Body:
        body = super().ack(directive)
        del body["type"]
        return body


class AcksForTheJob(Service):
    """The ACK on the bus has the id of the job where that of the step belongs."""

    def ack(self, directive: Directive) -> Body:
        body = super().ack(directive)
        return body if directive.callback_urls else {**body, "stepId": directive.job_id}


class AcksWithALeaseOfItsOwn(Service):
    """The ACK on the bus has the id of the service's own claim where the lease belongs."""

    def ack(self, directive: Directive) -> Body:
        body = super().ack(directive)
        return body if directive.callback_urls else {**body, "lease_id": "claim-1"}


class CorrelatesAcksByJob(Service):
    """The ACK is correlated with the job, which is known when the request is forgotten."""

    def ack(self, directive: Directive) -> Body:
        return {**super().ack(directive), "correlation_id": directive.job_id}


class ForgetsTheCorrelationOfAcks(CorrelatesAcksByJob):
    """The trace is continued in the ACK, its correlation is not."""


class BeatsOfTheJob(Service):
    """A heartbeat goes ahead of the ACK, correlated with the job."""

    async def acknowledge_and_work(self, attempt: Attempt) -> Outcome | None:
        raw = encoded(self.heartbeat(attempt.directive))
        await self.replies.send(attempt.directive, "HEARTBEAT", raw)
        return await super().acknowledge_and_work(attempt)

    def heartbeat(self, directive: Directive) -> Body:
        return {**super().heartbeat(directive), "correlation_id": directive.job_id}


class CorrelatesSuccessesByJob(Service):
    """A success is built in another place than a failure, with the job for its correlation."""

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = super().result(directive, outcome)
        if outcome.status != SUCCEEDED:
            return body
        return {**body, "correlation_id": directive.job_id}


class AcksWithoutTime(Service):
    """Only what has an end is given a time."""

    def ack(self, directive: Directive) -> Body:
        body = super().ack(directive)
        del body["timestamp"]
        return body


class StampsWithItsOwnOffset(Service):
    """The time of the ACK is right, and not in UTC."""

    def ack(self, directive: Directive) -> Body:
        now = datetime.now(timezone(timedelta(hours=2)))
        return {**super().ack(directive), "timestamp": now.isoformat()}


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


class SendsTheResultAgainAtTheEnd(Service):
    """When the message is settled the RESULT is sent once more, to be sure."""

    async def process(self, attempt: Attempt) -> None:
        await super().process(attempt)
        row = self.store.find(attempt.directive)
        if row is not None and row.result is not None:
            await self.send_until_answered(attempt, "RESULT", row.result)


class TakesALostAnswerForAnAnswer(Service):
    """A RESULT whose connection ends is taken for delivered."""

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        with suppress(NotDelivered):
            await self.replies.send(attempt.directive, "RESULT", raw)
        self.store.report(attempt.claimed)


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


class _TracesInHeadersAlone(Replies):
    given = ""

    def headers(self, _raw: bytes) -> dict[str, str]:
        return {"traceparent": self.given}

    async def send(self, directive: Directive, type: str, raw: bytes) -> Answer:
        self.given = directive.traceparent
        if type == "RESULT":
            own = f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01"
            raw = encoded({**json.loads(raw), "traceparent": own})
        return await super().send(directive, type, raw)


class NamesAnotherTraceInTheBody(Service):
    """The library that sends a RESULT continues the trace; what is stored has one of its own."""

    replies_type = _TracesInHeadersAlone


class _OverHttp(Replies):
    known: Mapping[str, str] | None = None

    def url(self, directive: Directive, type: str) -> str | None:
        self.known = directive.callback_urls or self.known
        return None if self.known is None else self.known[type.lower()]


class AnswersAlwaysOverHttp(Service):
    """The addresses for replies are taken from the first directive that has some."""

    replies_type = _OverHttp


class _AcksOverHttp(_OverHttp):
    type = "ACK"

    def url(self, directive: Directive, type: str) -> str | None:
        known = super().url(directive, type)
        return known if type == self.type or directive.callback_urls else None


class AcksAlwaysOverHttp(Service):
    """The address for ACKs is taken from the first directive that has one."""

    replies_type = _AcksOverHttp


class _BeatsOverHttp(_AcksOverHttp):
    type = "HEARTBEAT"


class BeatsAlwaysOverHttp(BeatsOfTheJob):
    """The address for heartbeats is taken from the first directive that has one."""

    replies_type = _BeatsOverHttp


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


class CopiesResultsToTheBus(Service):
    """A RESULT that went over HTTP is put on the bus too, for whoever may listen there."""

    async def process(self, attempt: Attempt) -> None:
        await super().process(attempt)
        row = self.store.find(attempt.directive)
        if row is not None and row.result is not None:
            lane = attempt.directive.lane
            await self.replies.publish(lane, row.result, self.replies.headers(row.result))


class _WithFirstToken(Replies):
    first = ""

    def token(self, directive: Directive, type: str) -> str:
        self.first = self.first or directive.callback_token
        return self.first if type == "ACK" else super().token(directive, type)


class _ResultsWithFirstToken(_WithFirstToken):
    def token(self, directive: Directive, type: str) -> str:
        return super().token(directive, "ACK" if type == "RESULT" else "RESULT")


class KeepsTheFirstTokenForResults(Service):
    """The client for RESULTs is made with the token of the first directive, and kept."""

    replies_type = _ResultsWithFirstToken


class KeepsTheFirstToken(Service):
    """The client for ACKs is made with the token of the first directive, and kept."""

    replies_type = _WithFirstToken


FLAWS = (
    Flaw(
        "LC-01",
        AcksAfterTheWork,
        ("before-work-http",),
        said="no ACK came within 3 s of the delivery",
    ),
    Flaw(
        "LC-01", AcksInBatches, ("before-work-http",), said="no ACK came within 3 s of the delivery"
    ),
    Flaw("LC-01", AcksOnlyLongWork, ("before-result-http",), said="no ACK came at all"),
    Flaw("LC-01", AcksInTurn, ("beside-work",), said="no ACK came within 3 s of the delivery"),
    Flaw(
        "LC-01",
        AcksBehindTheResult,
        ("before-work-http", "before-result-http"),
        said="the RESULT came before the ACK",
    ),
    Flaw("LC-02", AcksWithoutTheTenant, ("identity-http",), said="ACK has tenant_id None"),
    Flaw("LC-02", WritesTheAttemptAsText, ("identity-http",), said="ACK has attempt_no '1'"),
    Flaw("LC-02", StampsWithoutOffset, ("identity-http",), said="not a time in UTC"),
    Flaw("LC-02", StampsLocalTime, ("identity-bus",), said="which is not now"),
    Flaw("LC-02", CorrelatesFailuresByJob, ("identity-http",), said="RESULT has correlation_id"),
    Flaw("LC-02", AcksWithoutStatus, ("identity-http", "identity-bus"), said="ACK has status None"),
    Flaw("LC-02", AcksWithoutType, ("identity-http",), said="ACK has type None"),
    Flaw("LC-02", AcksForTheJob, ("identity-bus",), said="ACK has stepId"),
    Flaw("LC-02", AcksWithALeaseOfItsOwn, ("identity-bus",), said="ACK has lease_id"),
    Flaw("LC-02", CorrelatesAcksByJob, ("identity-http",), said="ACK has correlation_id"),
    Flaw("LC-02", CorrelatesSuccessesByJob, ("identity-bus",), said="RESULT has correlation_id"),
    Flaw("LC-02", BeatsOfTheJob, ("identity-bus",), said="HEARTBEAT has correlation_id"),
    Flaw("LC-02", AcksWithoutTime, ("identity-http",), said="ACK has timestamp None"),
    Flaw("LC-02", StampsWithItsOwnOffset, ("identity-http",), said="not a time in UTC"),
    Flaw(
        "LC-03", StampsEveryTry, ("same-again",), said="RESULTs of one attempt differ in timestamp"
    ),
    Flaw("LC-03", CountsItsTries, ("same-again",), said="RESULTs of one attempt differ in x_try"),
    Flaw("LC-03", SendsTheResultTwice, ("one-bus",), said="2 RESULTs came although"),
    Flaw("LC-03", SendsTheResultAgainAtTheEnd, ("one-http",), said="2 RESULTs came although"),
    Flaw("LC-03", TakesALostAnswerForAnAnswer, ("same-again",), said="was not sent again"),
    Flaw("LC-20", BeginsANewTrace, ("trace-http",), said="ACK has traceparent"),
    Flaw("LC-20", KeepsTheFirstTrace, ("trace-http",), said="ACK has traceparent"),
    Flaw(
        "LC-20",
        LeavesOutTheTraceHeader,
        ("trace-bus",),
        said="ACK came without the property traceparent",
    ),
    Flaw(
        "LC-20",
        NamesAnotherTraceInTheBody,
        ("trace-http", "trace-bus"),
        said="RESULT has traceparent",
    ),
    Flaw("LC-20", ForgetsTheCorrelationOfAcks, ("trace-bus",), said="ACK has correlation_id"),
    Flaw("LC-25", AnswersAlwaysOverHttp, ("address-bus",), said="ACK came over http"),
    Flaw("LC-25", AnswersOnLaneZero, ("address-bus",), said="ACK came over bus 0, not over bus 7"),
    Flaw("LC-25", ComputesTheLane, ("address-bus",), said="not over bus"),
    Flaw("LC-25", KeepsTheFirstToken, ("address-http",), said="ACK was answered 403"),
    Flaw(
        "LC-25",
        KeepsTheFirstTokenForResults,
        ("address-http",),
        said="RESULT was answered 403",
    ),
    Flaw("LC-25", AcksAlwaysOverHttp, ("address-bus",), said="ACK came over http"),
    Flaw("LC-25", BeatsAlwaysOverHttp, ("address-bus",), said="HEARTBEAT came over http"),
    Flaw("LC-25", CopiesResultsToTheBus, ("address-http",), said="RESULT came over bus 0"),
)
