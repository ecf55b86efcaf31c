"""Mistakes that show when storage, the orchestrator or the process itself fails."""

import asyncio
import json
import os
import signal
from contextlib import suppress

import aiohttp

from tests.conform.broken_services.attempts import Attempt, Stop
from tests.conform.broken_services.directives import Directive
from tests.conform.broken_services.flaws.flaw import Flaw
from tests.conform.broken_services.lanes import BusAway
from tests.conform.broken_services.replies import Answer, NotDelivered, Replies
from tests.conform.broken_services.sound import Service
from tests.conform.broken_services.store import Claim, Row, State, Store, Verdict
from tests.conform.broken_services.wording import (
    FAILED_FINAL,
    FAILED_RETRY,
    Body,
    Outcome,
    encoded,
)
from tests.conform.broken_services.work import StepFailed

_ALL_LANES = 1.0
"""Seconds in which each lane is looked at."""


class FailsForGood(Service):
    """Every exception of the work is a failure for good."""

    def failed(self, error: Exception) -> Outcome:
        if isinstance(error, StepFailed):
            return error.outcome
        return Outcome(FAILED_FINAL, code="INTERNAL", message=repr(error))


class TakesUnavailableForMissing(Service):
    """An input that is not answered with 200 is said not to be there."""

    def failed(self, error: Exception) -> Outcome:
        if isinstance(error, aiohttp.ClientResponseError):
            return Outcome(FAILED_FINAL, code="INPUT_NOT_FOUND", message="there is no input")
        return super().failed(error)


class TakesBrokenOffForInvalid(Service):
    """An input that breaks off is said to be damaged."""

    def failed(self, error: Exception) -> Outcome:
        if isinstance(error, aiohttp.ClientPayloadError):
            return Outcome(FAILED_FINAL, code="INPUT_INVALID", message="the input is damaged")
        return super().failed(error)


class CallsEveryFailureFinal(Service):
    """The status says that it is worth another try, the class that it is not."""

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = super().result(directive, outcome)
        if outcome.status == FAILED_RETRY:
            body["failure_class"] = "NON_RETRYABLE"
        return body


class CallsEveryRetryFinal(Service):
    """The class says that it is worth another try, the status that it is not."""

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = super().result(directive, outcome)
        return {**body, "status": FAILED_FINAL} if outcome.status == FAILED_RETRY else body


class CallsTheOldSpellingFinal(Service):
    """A failure is FAILED, and its class says that another try is no use."""

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = super().result(directive, outcome)
        if outcome.status == FAILED_RETRY:
            body |= {"status": "FAILED", "failure_class": "NON_RETRYABLE"}
        return body


class RetriesWithoutAClass(Service):
    """The status says that it is worth another try, and there is no class."""

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = super().result(directive, outcome)
        body.pop("failure_class", None)
        return body


class TakesWhatItGets(Service):
    """What came before the connection broke off is taken for the whole."""

    async def content_of(self, response: aiohttp.ClientResponse) -> bytes:
        parts = []
        with suppress(aiohttp.ClientError):
            async for part in response.content.iter_any():
                parts.append(part)  # noqa: PERF401 - what came before the failure is kept
        return b"".join(parts)


class GivesTheResultUp(Service):
    """A RESULT is tried three times."""

    tries = 3

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        for _ in range(self.tries):
            with suppress(NotDelivered):
                answer = await self.replies.send(attempt.directive, "RESULT", raw)
                if answer.is_final:
                    break
        self.store.report(attempt.claimed)


class GivesTheResultUpLater(GivesTheResultUp):
    """A RESULT is tried five times."""

    tries = 5


class DropsWhatIsNotAcknowledged(Service):
    """Without an answer to its ACK the work is not begun."""

    async def acknowledge_and_work(self, attempt: Attempt) -> Outcome | None:
        acknowledging = asyncio.create_task(self.acknowledge(attempt))
        await asyncio.wait({acknowledging}, timeout=self.settings.ack_seconds)
        if not acknowledging.done():
            acknowledging.cancel()
            return None
        return await self.work_unless_stopped(attempt)


class TakesAnyAnswerForFinal(Service):
    """Whatever is answered over HTTP means that the RESULT has arrived."""

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        while True:
            with suppress(NotDelivered):
                await self.replies.send(attempt.directive, "RESULT", raw)
                break
        self.store.report(attempt.claimed)


class SettlesBeforeReporting(Service):
    """The message is completed as soon as the RESULT is stored."""

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        await self.settle(attempt)
        await super().report(attempt, raw)


class SettlesAfterTheFirstTry(Service):
    """The message is completed when the RESULT was tried once, and it is sent on from the store."""

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        try:
            await self.replies.send(attempt.directive, "RESULT", raw)
        except NotDelivered:
            await self.settle(attempt)
            await super().report(attempt, raw)
        else:
            self.store.report(attempt.claimed)


class BuildsItAnewAfterAnOutage(Service):
    """What was not delivered is sent by the one who waits for it and by the one who looks after
    what was left, and each builds the RESULT anew."""

    seconds = 10.0

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        try:
            async with asyncio.timeout(self.seconds):
                await self.replies.send(attempt.directive, "RESULT", raw)
        except (NotDelivered, TimeoutError):
            for number in (1, 2):
                again = encoded({**json.loads(raw), "x_sender": number})
                await self.send_until_answered(attempt, "RESULT", again)
        self.store.report(attempt.claimed)


class BuildsItAnewWhileItWaits(BuildsItAnewAfterAnOutage):
    """A RESULT that is not answered soon is built and sent anew."""

    seconds = 0.2


class _Careless(Replies):
    async def publish(self, lane: int, raw: bytes, properties: dict[str, str]) -> Answer:
        with suppress(NotDelivered):
            return await super().publish(lane, raw, properties)
        return Answer()


class ForgetsWhatTheBusRefused(Service):
    """Replies are put on the bus without looking whether it took them."""

    replies_type = _Careless


class CompletesOnReceipt(Service):
    """The message is completed when it is received, so that it cannot come again."""

    async def process(self, attempt: Attempt) -> None:
        await self.settle(attempt)
        await super().process(attempt)


class _ClaimsAreForEver(Store):
    def verdict(self, found: Row | None, directive: Directive, now: float) -> Verdict:
        verdict = super().verdict(found, directive, now)
        is_unfinished = found is not None and found.state is State.CLAIMED
        return Verdict.BUSY if verdict is Verdict.TAKEN_OVER and is_unfinished else verdict


class RespectsTheDead(Service):
    """A claim has no end: what a dead instance was working on waits for it."""

    store_type = _ClaimsAreForEver


class _ClaimsOfOthersAreTheirs(Store):
    def verdict(self, found: Row | None, directive: Directive, now: float) -> Verdict:
        verdict = super().verdict(found, directive, now)
        is_foreign = found is not None and found.owner != self.owner
        is_free = verdict in (Verdict.BUSY, Verdict.TAKEN_OVER) and is_foreign
        is_unfinished = found is not None and found.state is State.CLAIMED
        return Verdict.DONE if is_free and is_unfinished else verdict


class LeavesItToTheOther(Service):
    """What another instance has claimed is completed: that one will see to it."""

    store_type = _ClaimsOfOthersAreTheirs


class FailsWhatWasInterrupted(Service):
    """Work that another instance has left is a failure for good."""

    async def run(self, attempt: Attempt) -> Outcome | None:
        if attempt.claimed.epoch > 1:
            return Outcome(FAILED_FINAL, code="INTERNAL", message="an instance has died")
        return await super().run(attempt)


class ReportsTakenOverWorkTwice(Service):
    """What was taken over is reported for the old owner and for the new one."""

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        if attempt.claimed.epoch > 1:
            old = encoded({**json.loads(raw), "x_owner": "the old one"})
            await self.send_until_answered(attempt, "RESULT", old)
        await super().report(attempt, raw)


class SendsBeforeStoring(Service):
    """The RESULT is stored when the orchestrator has taken it."""

    def finish(self, attempt: Attempt, outcome: Outcome | None) -> bytes | None:
        if outcome is None or self.is_expired(attempt, 0.0):
            return None
        until = attempt.claimed.until
        if not self.store.extend(attempt.claimed, until, attempt.deadline):
            return None
        return encoded(self.result(attempt.directive, outcome))

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        await self.send_until_answered(attempt, "RESULT", raw)
        self.store.complete(attempt.claimed, raw)
        self.store.report(attempt.claimed)


class WorksAgainAfterAKill(Service):
    """Whoever takes over begins from the beginning, also where a RESULT is stored."""

    def stored_result(self, _claim: Claim) -> bytes | None:
        return None


class RestampsWhatWasStored(Service):
    """A stored RESULT gets the time at which it is taken over."""

    def stored_result(self, claim: Claim) -> bytes | None:
        stored = super().stored_result(claim)
        if stored is None:
            return None
        return encoded({**json.loads(stored), "timestamp": self.timestamp()})


class DiesOfSigterm(Service):
    """SIGTERM is not handled."""

    def listen_for_sigterm(self) -> None:
        return


class LeavesAtOnce(Service):
    """SIGTERM ends the process, politely, whatever it is doing."""

    def listen_for_sigterm(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


class IgnoresSigterm(Service):
    """SIGTERM is taken by somebody who does nothing with it, as a shell around the service does."""

    def listen_for_sigterm(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


class FailsItsWorkAtTheEnd(Service):
    """What is being worked on at SIGTERM is reported as cancelled."""

    async def drain(self) -> None:
        for attempt in self.attempts.values():
            attempt.stop(Stop.CANCELLED)
        await super().drain()


class ReportsTwiceAtTheEnd(Service):
    """What ends after SIGTERM is reported by the work and by the shutdown."""

    async def report(self, attempt: Attempt, raw: bytes) -> None:
        if self.stopping.is_set():
            early = encoded({**json.loads(raw), "x_sender": "the shutdown"})
            await self.send_until_answered(attempt, "RESULT", early)
        await super().report(attempt, raw)


class ExitsWithAnError(Service):
    """The end that SIGTERM asks for is reported as a failure."""

    def exit_code(self) -> int:
        return 128 + signal.SIGTERM


class TakesWorkToTheEnd(Service):
    """The receivers are closed after the work has ended, and take more until then."""

    def is_closed_for_new_work(self) -> bool:
        return False

    async def drain(self) -> None:
        await asyncio.sleep(_ALL_LANES)
        while self.tasks:
            await asyncio.wait(self.tasks)
        await super().drain()


class FailsNewWorkAtTheEnd(TakesWorkToTheEnd):
    """What comes after SIGTERM is taken, and answered with a failure instead of being left."""

    async def work(self, directive: Directive, epoch: int) -> Outcome:
        if self.stopping.is_set():
            return Outcome(FAILED_RETRY, code="INTERNAL", message="the service is ending")
        return await super().work(directive, epoch)


class DropsWorkAtTheEnd(Service):
    """What is being worked on at SIGTERM is broken off, and its message completed."""

    async def drain(self) -> None:
        for task in self.tasks:
            task.cancel()
        await super().drain()

    async def give_back(self, attempt: Attempt) -> None:
        with suppress(BusAway):
            await attempt.delivery.complete()


FLAWS = (
    Flaw(
        "LC-14",
        FailsForGood,
        ("storage-breaks-off",),
        said="(storage-cut) was answered FAILED_FINAL, NON_RETRYABLE, INTERNAL",
    ),
    Flaw(
        "LC-14",
        TakesUnavailableForMissing,
        ("storage-refuses",),
        said="was answered FAILED_FINAL, NON_RETRYABLE, INPUT_NOT_FOUND",
    ),
    Flaw(
        "LC-14",
        TakesBrokenOffForInvalid,
        ("storage-breaks-off",),
        said="was answered FAILED_FINAL, NON_RETRYABLE, INPUT_INVALID",
    ),
    Flaw(
        "LC-14",
        CallsEveryFailureFinal,
        ("storage-refuses",),
        said="was answered FAILED_RETRY, NON_RETRYABLE",
    ),
    Flaw(
        "LC-14",
        TakesWhatItGets,
        ("storage-breaks-off",),
        said="it was answered SUCCEEDED although its input could not be read",
    ),
    Flaw(
        "LC-14",
        CallsEveryRetryFinal,
        ("storage-refuses", "storage-breaks-off"),
        said="was answered FAILED_FINAL, RETRYABLE",
    ),
    Flaw(
        "LC-14",
        CallsTheOldSpellingFinal,
        ("storage-refuses",),
        said="was answered FAILED, NON_RETRYABLE",
    ),
    Flaw(
        "LC-14", RetriesWithoutAClass, ("storage-refuses",), said="was answered FAILED_RETRY, None"
    ),
    Flaw("LC-15", GivesTheResultUp, ("down-http",), said="no RESULT of job"),
    Flaw("LC-15", GivesTheResultUpLater, ("down-http",), said="no RESULT of job"),
    Flaw("LC-15", DropsWhatIsNotAcknowledged, ("ack-refused",), said="no RESULT of job"),
    Flaw("LC-15", TakesAnyAnswerForFinal, ("down-http",), said="no RESULT of job"),
    Flaw(
        "LC-15", SettlesBeforeReporting, ("slow",), said="settled before the RESULT was delivered"
    ),
    Flaw("LC-15", ForgetsWhatTheBusRefused, ("down-bus",), said="no RESULT of job"),
    Flaw(
        "LC-15",
        SettlesAfterTheFirstTry,
        ("down-http", "down-bus"),
        said="settled before the RESULT was delivered",
    ),
    Flaw(
        "LC-15",
        BuildsItAnewAfterAnOutage,
        ("down-http", "down-bus"),
        said="RESULTs of one attempt differ in x_sender",
    ),
    Flaw(
        "LC-15",
        BuildsItAnewWhileItWaits,
        ("slow",),
        said="RESULTs of one attempt differ in x_sender",
    ),
    Flaw("LC-16", CompletesOnReceipt, ("killed-http",), said="no RESULT of job"),
    Flaw("LC-16", RespectsTheDead, ("killed-http",), said="no RESULT of job"),
    Flaw("LC-16", LeavesItToTheOther, ("killed-http",), said="no RESULT of job"),
    Flaw(
        "LC-16",
        FailsWhatWasInterrupted,
        ("killed-http", "killed-bus"),
        said="work that a kill interrupted was answered FAILED_FINAL, NON_RETRYABLE",
    ),
    Flaw(
        "LC-16",
        ReportsTakenOverWorkTwice,
        ("killed-http", "killed-bus"),
        said="RESULTs of one attempt differ in x_owner",
    ),
    Flaw(
        "LC-17",
        SendsBeforeStoring,
        ("killed-http",),
        said="the work was run again although it was finished before the kill",
    ),
    Flaw(
        "LC-17",
        WorksAgainAfterAKill,
        ("killed-bus",),
        said="the work was run again although it was finished before the kill",
    ),
    Flaw(
        "LC-17",
        RestampsWhatWasStored,
        ("killed-http",),
        said="RESULTs of one attempt differ in timestamp",
    ),
    Flaw("LC-18", DiesOfSigterm, ("idle",)),
    Flaw("LC-18", IgnoresSigterm, ("idle",)),
    Flaw("LC-18", LeavesAtOnce, ("drains",)),
    Flaw("LC-18", ExitsWithAnError, ("idle",), said="ended with exit code 143 after SIGTERM"),
    Flaw("LC-18", TakesWorkToTheEnd, ("drains",), said="new work was begun after SIGTERM"),
    Flaw("LC-18", DropsWorkAtTheEnd, ("drains",), said="no RESULT of job"),
    Flaw("LC-18", FailsNewWorkAtTheEnd, ("drains",), said="was answered FAILED_RETRY"),
    Flaw(
        "LC-18",
        FailsItsWorkAtTheEnd,
        ("drains",),
        said="work that SIGTERM interrupted was answered FAILED_FINAL",
    ),
    Flaw(
        "LC-18",
        ReportsTwiceAtTheEnd,
        ("drains",),
        said="RESULTs of one attempt differ in x_sender",
    ),
)
