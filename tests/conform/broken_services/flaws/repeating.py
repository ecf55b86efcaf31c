"""Mistakes with duplicates, attempts and leases."""

import asyncio
import json
import time

from tests.conform.broken_services.attempts import Attempt, Stop
from tests.conform.broken_services.directives import Directive
from tests.conform.broken_services.flaws.flaw import Flaw
from tests.conform.broken_services.program import Settings
from tests.conform.broken_services.replies import Answer
from tests.conform.broken_services.sound import Service
from tests.conform.broken_services.store import Claim, Row, State, Store, Verdict
from tests.conform.broken_services.wording import (
    FAILED_FINAL,
    FAILED_RETRY,
    Body,
    Outcome,
    encoded,
)

_FAR_AWAY = 0.3


class TakesFinishedForFree(Service):
    """On arrival it is looked whether somebody works on the step, not whether it is done."""

    async def own(self, attempt: Attempt) -> Claim:
        directive = attempt.directive
        found = self.store.find(directive)
        done = (directive.lease_id, State.REPORTED)
        if found is not None and (found.lease_id, found.state) == done:
            self.store.put(self.store.new_row(directive, until=0.0))
        return await super().own(attempt)


class ForgetsAtTheStart(Service):
    """A start clears away what the last instance has finished."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.store.forget_finished()


class _MemoryStore(Store):
    def __init__(self, _path: str, owner: str) -> None:
        super().__init__(":memory:", owner)


class RemembersInMemory(Service):
    """What is done is kept in the process."""

    store_type = _MemoryStore


class KnowsOnlyItself(RemembersInMemory):
    """Claims are kept in the process, so that another instance knows nothing of them."""


class ReadsThenWrites(Service):
    """The claim is a read, a decision and a write, each with its own trip to the store."""

    async def claim(self, attempt: Attempt) -> Claim:
        directive, now = attempt.directive, time.time()
        found = self.store.find(directive)
        verdict = self.store.verdict(found, directive, now)
        if found is not None and verdict is not Verdict.NEW:
            return await super().claim(attempt)
        await asyncio.sleep(_FAR_AWAY)
        row = self.store.new_row(directive, now + attempt.delivery.lock_seconds)
        self.store.put(row)
        return Claim(verdict, row)


class _OwnClaimsAreFree(Store):
    def verdict(self, found: Row | None, directive: Directive, now: float) -> Verdict:
        verdict = super().verdict(found, directive, now)
        is_own = found is not None and found.owner == self.owner
        return Verdict.TAKEN_OVER if verdict is Verdict.BUSY and is_own else verdict


class SharesClaimsWithItself(Service):
    """A claim names the instance, so a second slot of the same instance takes it for its own."""

    store_type = _OwnClaimsAreFree


class AnswersEveryCopy(Service):
    """Whoever finds the work done sends the stored RESULT once more, to be sure."""

    async def own(self, attempt: Attempt) -> Claim:
        claim = await super().own(attempt)
        if claim.verdict is Verdict.DONE and claim.row.result is not None:
            await self.send_until_answered(attempt, "RESULT", claim.row.result)
        return claim


class AnswersCopiesOfTheOther(AnswersEveryCopy):
    """An instance that finds the work done by another sends the stored RESULT too."""


class AnswersDuplicatesAnew(Service):
    """What was done is answered with the stored outcome, at the time of the answer."""

    async def own(self, attempt: Attempt) -> Claim:
        claim = await super().own(attempt)
        if claim.verdict is Verdict.DONE and claim.row.result is not None:
            raw = encoded({**json.loads(claim.row.result), "timestamp": self.timestamp()})
            await self.send_until_answered(attempt, "RESULT", raw)
        return claim


class WorksOnWhatIsDone(Service):
    """The input of a duplicate is read again before it is found to be done."""

    async def claim(self, attempt: Attempt) -> Claim:
        claim = await super().claim(attempt)
        if claim.verdict is Verdict.DONE:
            await self.read_input(attempt.directive)
        return claim


class WorksBesideTheOwner(Service):
    """The work is begun while the claim is asked for, and broken off when it is refused."""

    async def own(self, attempt: Attempt) -> Claim:
        claim = await self.claim(attempt)
        if claim.verdict is Verdict.BUSY:
            self.begin(self.look_at_input(attempt.directive))
            claim = await super().own(attempt)
        return claim

    async def look_at_input(self, directive: Directive) -> None:
        await self.read_input(directive)


class WorksBesideTheOtherInstance(WorksBesideTheOwner):
    """Two instances begin the work, and one of them is let finish it."""


class WorksBeforeItLooks(Service):
    """The input is read before it is looked whether a newer attempt was seen."""

    async def claim(self, attempt: Attempt) -> Claim:
        claim = await super().claim(attempt)
        if claim.verdict is Verdict.SUPERSEDED:
            await self.read_input(attempt.directive)
        return claim


class RefusesOlderAttempts(Service):
    """An attempt that is superseded is answered, so that its sender need not wait for it."""

    async def own(self, attempt: Attempt) -> Claim:
        claim = await super().own(attempt)
        if claim.verdict is Verdict.SUPERSEDED:
            late = Outcome(FAILED_FINAL, code="SUPERSEDED", message="a newer attempt was seen")
            raw = encoded(self.result(attempt.directive, late))
            await self.send_until_answered(attempt, "RESULT", raw)
        return claim


class _AttemptsAreEqual(Store):
    def verdict(self, found: Row | None, directive: Directive, now: float) -> Verdict:
        verdict = super().verdict(found, directive, now)
        return Verdict.NEW if verdict is Verdict.SUPERSEDED else verdict


class TakesAnyAttempt(Service):
    """Another attempt than the stored one counts as new, older ones too."""

    store_type = _AttemptsAreEqual


class FinishesOlderAttempts(Service):
    """Work that was begun is reported, whatever has come in the meantime."""

    def finish(self, attempt: Attempt, outcome: Outcome | None) -> bytes | None:
        if outcome is None or self.is_expired(attempt, 0.0):
            return None
        raw = encoded(self.result(attempt.directive, outcome))
        self.store.complete(attempt.claimed, raw)
        return raw


class RunsWhatHasExpired(Service):
    """The lease is left to the bus, which drops what is too old."""

    def is_expired(self, attempt: Attempt, skew: float) -> bool:
        return skew == 0.0 and super().is_expired(attempt, skew)


class FetchesWhatHasExpired(Service):
    """The input is fetched before the lease is looked at."""

    async def perform(self, attempt: Attempt) -> bytes | None:
        await self.read_input(attempt.directive)
        return await super().perform(attempt)


class AnswersWhatHasExpired(Service):
    """A directive that came too late is answered with a failure, so that it is tried again."""

    async def perform(self, attempt: Attempt) -> bytes | None:
        if not self.is_expired(attempt, 0.0):
            return await super().perform(attempt)
        late = Outcome(FAILED_RETRY, code="TIMEOUT", message="too late")
        raw = encoded(self.result(attempt.directive, late))
        self.store.complete(attempt.claimed, raw)
        return raw


class ReportsAfterTheLease(Service):
    """The lease is looked at before the work, and not after it."""

    def is_expired(self, attempt: Attempt, skew: float) -> bool:
        return skew > 0.0 and super().is_expired(attempt, skew)


class IgnoresStaleAnswers(Service):
    """An ACK that was answered at all is taken for accepted."""

    def heed(self, attempt: Attempt, answer: Answer, sent_at: float) -> None:
        if not answer.is_stale:
            super().heed(attempt, answer, sent_at)


class ReportsStaleWork(Service):
    """Work that is stopped because it does not count is reported as cancelled."""

    def stopped_outcome(self, reason: Stop) -> Outcome | None:
        return Outcome(FAILED_FINAL, code="CANCELLED", message=reason)


class _StepsAreDoneOnce(Store):
    def verdict(self, found: Row | None, directive: Directive, now: float) -> Verdict:
        if found is not None and found.state is State.REPORTED:
            return Verdict.DONE
        return super().verdict(found, directive, now)


class RefusesNewAttempts(Service):
    """What was done once is done for good: job and step are remembered, the attempt is not."""

    store_type = _StepsAreDoneOnce


class AnswersFromMemory(Service):
    """A new attempt is answered with the result of the last, under its own name."""

    async def claim(self, attempt: Attempt) -> Claim:
        before = self.store.find(attempt.directive)
        claim = await super().claim(attempt)
        if claim.verdict is not Verdict.NEW or before is None or before.result is None:
            return claim
        await self.acknowledge(attempt)
        known = {**json.loads(before.result), **attempt.directive.identity}
        return Claim(Verdict.NEW, claim.row._replace(result=encoded(known)))


class AcksWithTheFirstLease(Service):
    """The lease of a step is stored when it is first seen, and read from there for the ACK."""

    leases: dict[str, str]

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.leases = {}

    def ack(self, directive: Directive) -> Body:
        lease = self.leases.setdefault(directive.job_id, directive.lease_id)
        return {**super().ack(directive), "lease_id": lease}


class AcksOnTheBusWithTheFirstLease(AcksWithTheFirstLease):
    """The same, where nobody refuses it."""


class ReportsWithTheFirstLease(Service):
    """The lease of a step is stored when it is first seen, and read from there for the RESULT."""

    leases: dict[str, str]

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.leases = {}

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        lease = self.leases.setdefault(directive.job_id, directive.lease_id)
        return {**super().result(directive, outcome), "lease_id": lease}


FLAWS = (
    Flaw(
        "LC-04",
        TakesFinishedForFree,
        ("after-completion-bus",),
        said="the work ran 2 times because of a duplicate that came after completion",
    ),
    Flaw(
        "LC-04",
        ForgetsAtTheStart,
        ("after-restart",),
        said="the work ran 2 times because of a duplicate that came after a restart",
    ),
    Flaw(
        "LC-04",
        RemembersInMemory,
        ("after-restart",),
        said="the work ran 2 times because of a duplicate that came after a restart",
    ),
    Flaw(
        "LC-04",
        AnswersDuplicatesAnew,
        ("after-completion-http", "after-completion-bus", "after-restart"),
        said="RESULTs of one attempt differ in timestamp",
    ),
    Flaw(
        "LC-04",
        WorksOnWhatIsDone,
        ("after-completion-bus", "after-restart"),
        said="the work ran 2 times because of a duplicate",
    ),
    Flaw(
        "LC-05",
        KnowsOnlyItself,
        ("two-instances",),
        said="times because of copies that two instances got",
    ),
    Flaw("LC-05", ReadsThenWrites, ("at-once-http",), said="times because of three copies"),
    Flaw("LC-05", SharesClaimsWithItself, ("at-once-http",), said="times because of three copies"),
    Flaw(
        "LC-05",
        AnswersEveryCopy,
        ("at-once-bus",),
        said="3 RESULTs came for copies of one directive",
    ),
    Flaw("LC-05", WorksBesideTheOwner, ("at-once-bus",), said="times because of three copies"),
    Flaw(
        "LC-05",
        WorksBesideTheOtherInstance,
        ("two-instances",),
        said="times because of copies that two instances got",
    ),
    Flaw(
        "LC-05",
        AnswersCopiesOfTheOther,
        ("two-instances",),
        said="RESULTs came from two instances",
    ),
    Flaw("LC-06", TakesAnyAttempt, ("late-http",), said="attempt 1 was run after attempt 2"),
    Flaw("LC-06", WorksBeforeItLooks, ("late-http",), said="attempt 1 was run after attempt 2"),
    Flaw("LC-06", RefusesOlderAttempts, ("late-bus",), said="answered with a RESULT after attempt"),
    Flaw(
        "LC-06",
        FinishesOlderAttempts,
        ("at-work",),
        said="answered with a RESULT after attempt 2 had been acknowledged",
    ),
    Flaw(
        "LC-07",
        RunsWhatHasExpired,
        ("on-arrival-http",),
        said="a directive whose lease ended an hour ago was run",
    ),
    Flaw(
        "LC-07",
        FetchesWhatHasExpired,
        ("on-arrival-bus",),
        said="a directive whose lease ended an hour ago was run",
    ),
    Flaw(
        "LC-07",
        AnswersWhatHasExpired,
        ("on-arrival-bus",),
        said="lease ended an hour ago was answered with a RESULT",
    ),
    Flaw("LC-07", ReportsAfterTheLease, ("frozen",)),
    Flaw(
        "LC-08",
        IgnoresStaleAnswers,
        said="a RESULT came after the ACK had been answered STALE_ATTEMPT",
    ),
    Flaw(
        "LC-08",
        ReportsStaleWork,
        said="a RESULT came after the ACK had been answered STALE_ATTEMPT",
    ),
    Flaw("LC-09", RefusesNewAttempts, ("new-attempt-http",), said="attempt 2 came, within"),
    Flaw(
        "LC-09",
        AnswersFromMemory,
        ("new-attempt-bus",),
        said="attempt 2 was answered without having been run",
    ),
    Flaw(
        "LC-09",
        AcksWithTheFirstLease,
        ("new-attempt-http",),
        said="ACK of attempt 2 carries another lease",
    ),
    Flaw(
        "LC-09",
        AcksOnTheBusWithTheFirstLease,
        ("new-attempt-bus",),
        said="ACK of attempt 2 carries another lease",
    ),
    Flaw(
        "LC-09",
        ReportsWithTheFirstLease,
        ("new-attempt-bus",),
        said="RESULT of attempt 2 carries another lease",
    ),
)
