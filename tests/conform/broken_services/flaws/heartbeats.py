"""Mistakes with heartbeats, and with what is answered to them."""

from dataclasses import replace

from tests.conform.broken_services.attempts import Attempt, Stop
from tests.conform.broken_services.directives import Directive
from tests.conform.broken_services.flaws.flaw import Flaw
from tests.conform.broken_services.replies import Answer
from tests.conform.broken_services.sound import Service
from tests.conform.broken_services.wording import FAILED_FINAL, FAILED_RETRY, Body, Outcome


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
    Flaw(
        "LC-26", SendsNoHeartbeats, ("heartbeats-http",), said="0 heartbeats came in 18 s of work"
    ),
    Flaw("LC-26", BeatsOncePerLease, ("heartbeats-http",), said="heartbeats came in 18 s of work"),
    Flaw(
        "LC-26", BeatsForAnotherLease, ("heartbeats-http",), said="HEARTBEAT has lease_id 'beat-1'"
    ),
    Flaw(
        "LC-26",
        BeatsForAnotherStep,
        ("heartbeats-http", "heartbeats-bus"),
        said="HEARTBEAT has stepId",
    ),
    Flaw("LC-26", CountsOnTheFirstLease, ("heartbeats-http",), said="no RESULT of job"),
    Flaw("LC-26", IgnoresCancel, ("cancel",), said="RESULT is SUCCEEDED, None"),
    Flaw("LC-26", ReportsCancelAsFailure, ("cancel",), said="RESULT is FAILED_RETRY, CANCELLED"),
    Flaw("LC-26", CancelsForAnotherReason, ("cancel",), said="RESULT is FAILED_FINAL, STOPPED"),
)
