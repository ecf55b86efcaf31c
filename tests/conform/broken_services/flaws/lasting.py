"""Mistakes with health, capacity, and work that takes long."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from tests.conform.broken_services.attempts import Attempt, Stop
from tests.conform.broken_services.directives import Directive
from tests.conform.broken_services.flaws.flaw import Flaw
from tests.conform.broken_services.health import Health
from tests.conform.broken_services.program import Settings
from tests.conform.broken_services.replies import Answer
from tests.conform.broken_services.sound import Service
from tests.conform.broken_services.wording import FAILED_FINAL, FAILED_RETRY, Body, Outcome


class IsAlwaysReady(Service):
    """Readiness is a constant."""

    def is_ready(self) -> bool:
        return True


class LooksOnceWhetherItIsReady(Service):
    """Once everything was found to be there, it is not looked at again."""

    was_ready = False

    def is_ready(self) -> bool:
        self.was_ready = self.was_ready or super().is_ready()
        return self.was_ready and not self.stopping.is_set()


class ForgetsItsStorage(Service):
    """Readiness is that of the bus alone."""

    def has_storage(self) -> bool:
        return True


class IsNeverReadyAgain(Service):
    """What was once found to be missing is missed for good."""

    was_ready = False
    has_failed = False

    def is_ready(self) -> bool:
        is_ready = super().is_ready()
        self.has_failed = self.has_failed or (self.was_ready and not is_ready)
        self.was_ready = self.was_ready or is_ready
        return is_ready and not self.has_failed


class MissesTheBusForGood(IsNeverReadyAgain):
    """The client of the bus is not made anew."""


class DiesWithTheBus(Service):
    """Liveness looks at the bus, so whoever watches it kills the service when the bus is away."""

    def is_live(self) -> bool:
        return self.has_bus()


class HasOneHealthPath(Service):
    """There is one path for health, and it is the one for readiness."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.health = Health({"/healthz/ready": self.is_ready})


class LimitsEachLane(Service):
    """Each lane has slots of its own."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.slots_of: dict[int, asyncio.Semaphore] = {}

    def slot(self, attempt: Attempt) -> AbstractAsyncContextManager[Any]:
        slots = asyncio.Semaphore(self.settings.concurrency)
        return self.slots_of.setdefault(attempt.delivery.lane, slots)


class TakesOneMore(Service):
    """One directive is fetched ahead, and worked on too."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(replace(settings, concurrency=settings.concurrency + 1))


class TakesTurns(Service):
    """A lock around the handler lets one directive through at a time."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(replace(settings, concurrency=1))


class LetsLocksRunOut(Service):
    """The claim is renewed while the work goes on, the lock of the message is not."""

    async def renew_lock(self, _attempt: Attempt) -> None:
        return


class RenewsNothing(Service):
    """The work is expected to be shorter than a lock."""

    async def keep(self, _attempt: Attempt) -> None:
        return


class SendsNoHeartbeats(Service):
    """The contract of the service promises heartbeats that were never written."""

    async def beat(self, _attempt: Attempt) -> None:
        return


class BeatsOncePerLease(Service):
    """Heartbeats come at the end of the lease instead of at the interval that was asked for."""

    def beats_every(self, directive: Directive) -> float:
        return directive.lease_seconds


class BeatsForAnotherLease(Service):
    """The heartbeat has an id of its own where the lease belongs."""

    def heartbeat(self, directive: Directive) -> Body:
        return {**super().heartbeat(directive), "lease_id": f"beat-{directive.attempt_no}"}


class BeatsForAnotherStep(Service):
    """The heartbeat has the id of the job where that of the step belongs."""

    def beats_every(self, directive: Directive) -> float:
        return directive.heartbeat_seconds / 20

    def heartbeat(self, directive: Directive) -> Body:
        return {**super().heartbeat(directive), "stepId": directive.job_id}


class IgnoresCancel(Service):
    """Of the answer to a heartbeat only the lease is read."""

    def heed(self, attempt: Attempt, answer: Answer, sent_at: float) -> None:
        said = {name: value for name, value in answer.body.items() if name != "cancel_requested"}
        super().heed(attempt, replace(answer, body=said), sent_at)


class ReportsCancelAsFailure(Service):
    """Work that was cancelled is reported as worth another try."""

    def stopped_outcome(self, reason: Stop) -> Outcome | None:
        if reason is Stop.CANCELLED:
            return Outcome(FAILED_RETRY, code="CANCELLED", message=reason)
        return super().stopped_outcome(reason)


class CancelsForAnotherReason(Service):
    """Work that was cancelled is reported with a code of the service's own."""

    def stopped_outcome(self, reason: Stop) -> Outcome | None:
        if reason is Stop.CANCELLED:
            return Outcome(FAILED_FINAL, code="STOPPED", message=reason)
        return super().stopped_outcome(reason)


class CountsOnTheFirstLease(Service):
    """The lease is that of the directive, whatever is answered to an ACK or a heartbeat."""

    def heed(self, attempt: Attempt, answer: Answer, _sent_at: float) -> None:
        if answer.is_stale:
            attempt.stop(Stop.STALE)
        if answer.body.get("cancel_requested"):
            attempt.stop(Stop.CANCELLED)


FLAWS = (
    Flaw("LC-21", IsAlwaysReady, ("bus-away",)),
    Flaw("LC-21", LooksOnceWhetherItIsReady, ("bus-away",)),
    Flaw("LC-21", ForgetsItsStorage, ("storage-away",)),
    Flaw("LC-21", IsNeverReadyAgain, ("storage-away",)),
    Flaw(
        "LC-21",
        MissesTheBusForGood,
        ("bus-away",),
        said="not answered 200 again after the bus was back",
    ),
    Flaw("LC-21", DiesWithTheBus, ("bus-away",)),
    Flaw(
        "LC-21",
        HasOneHealthPath,
        ("bus-away", "storage-away"),
        said="/healthz/live was answered 404, not 200",
    ),
    Flaw("LC-22", LimitsEachLane),
    Flaw("LC-22", TakesOneMore),
    Flaw("LC-22", TakesTurns),
    Flaw("LC-24", LetsLocksRunOut),
    Flaw("LC-24", RenewsNothing),
    Flaw("LC-26", SendsNoHeartbeats, ("heartbeats-http",)),
    Flaw("LC-26", BeatsOncePerLease, ("heartbeats-http",)),
    Flaw("LC-26", BeatsForAnotherLease, ("heartbeats-http",)),
    Flaw(
        "LC-26",
        BeatsForAnotherStep,
        ("heartbeats-http", "heartbeats-bus"),
        said="HEARTBEAT has stepId",
    ),
    Flaw("LC-26", CountsOnTheFirstLease, ("heartbeats-http",)),
    Flaw("LC-26", IgnoresCancel, ("cancel",)),
    Flaw("LC-26", ReportsCancelAsFailure, ("cancel",)),
    Flaw("LC-26", CancelsForAnotherReason, ("cancel",), said="RESULT is FAILED_FINAL, STOPPED"),
)
