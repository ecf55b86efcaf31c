"""Spans of a job's work, made from what the engine tells after each commit.

Each stands under the trace of the job: `publish` from the commit of a directive until it was sent,
`ack` from there until it was acknowledged, `result` from there to the end of the attempt. A reply
that changed nothing is a moment.
"""

import logging
from typing import NamedTuple

from lucius_contract.audit import Verdict
from lucius_contract.states import OutboxState
from lucius_orchestrator.domain.aggregate import Aggregate, Attempt, Step
from lucius_orchestrator.domain.decision import Decision, OutboxMark
from lucius_orchestrator.engine.telemetry import Telemetry
from lucius_orchestrator.observability.tracing import Spanned, Tracing
from lucius_outbox.redaction import redacted
from lucius_outbox.telemetry import Metrics

_log = logging.getLogger("lucius_orchestrator")

_REPLIES = {"AckReceived": "ack", "HeartbeatReceived": "heartbeat", "ResultReceived": "result"}
_TIMES = {"ack": ("sent_at", "acknowledged_at"), "result": ("acknowledged_at", "completed_at")}


class TracedTelemetry(Telemetry):
    def __init__(self, tracing: Tracing, metrics: Metrics | None = None) -> None:
        super().__init__(metrics)
        self._tracing = tracing
        self._has_failed = False

    def committed(self, event: str, decision: Decision, after: Aggregate) -> None:
        super().committed(event, decision, after)
        try:
            for spanned in spans_of(event, decision, after):
                self._tracing.record(spanned)
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """The commit stands, so nobody may hear that something failed but the operator."""
        if not self._has_failed:
            text = redacted(f"{type(error).__name__}: {error}")
            _log.warning("tracing.failed", extra={"error": text})
        self._has_failed = True


class _Place(NamedTuple):
    """The attempt that something is about; a reply may name one that was never made."""

    step: Step
    attempt_no: int

    @property
    def attempt(self) -> Attempt | None:
        return self.step.attempt(self.attempt_no)


def spans_of(event: str, decision: Decision, after: Aggregate) -> list[Spanned]:
    published = [_publish(mark, after) for mark in decision.marks]
    found = [spanned for spanned in published if spanned is not None]
    if event in _REPLIES and decision.reply is not None and decision.steps:
        found.append(_reply(_REPLIES[event], decision.reply.verdict, decision, after))
    return found


def _publish(mark: OutboxMark, after: Aggregate) -> Spanned | None:
    _, step_id, attempt_no = mark.outbox_id.rsplit(".", 2)
    step = after.step(step_id)
    if step is None or mark.state is OutboxState.SUPERSEDED:
        return None
    place = _Place(step, int(attempt_no))
    attempt = place.attempt
    spanned = _spanned("publish", place, after)._replace(is_sent=True)
    if attempt is None or mark.state is not OutboxState.SENT:
        return spanned._replace(error=(attempt and attempt.error_code) or mark.state.value)
    return spanned._replace(began=attempt.dispatched_at, ended=attempt.sent_at)


def _reply(what: str, verdict: Verdict, decision: Decision, after: Aggregate) -> Spanned:
    place = _place(decision, after)
    spanned = _spanned(what, place, after)
    spanned = spanned._replace(attributes={**spanned.attributes, "lucius.verdict": verdict.value})
    if verdict is not Verdict.APPLIED:
        return spanned._replace(error=None if verdict is Verdict.DUPLICATE else verdict.value)
    return _with_times(what, spanned, place.attempt)


def _place(decision: Decision, after: Aggregate) -> _Place:
    """A reply moves its step, and perhaps the one after it."""
    step = after.steps[min(decision.steps)]
    of_step = (event for event in decision.events if event.step_id == step.step_id)
    told = next((event.attempt_no for event in of_step if event.attempt_no is not None), None)
    return _Place(step, step.attempt_no if told is None else told)


def _with_times(what: str, spanned: Spanned, attempt: Attempt | None) -> Spanned:
    if attempt is None or what not in _TIMES:
        return spanned
    began, ended = (getattr(attempt, name) for name in _TIMES[what])
    if began is None or ended is None:
        return spanned
    error = attempt.error_code if what == "result" else None
    return spanned._replace(began=began, ended=ended, error=error)


def _spanned(what: str, place: _Place, after: Aggregate) -> Spanned:
    job, step = after.job, place.step
    attributes: dict[str, str | int] = {
        "lucius.job_id": job.job_id,
        "lucius.tenant_id": job.tenant_id,
        "lucius.correlation_id": job.correlation_id,
        "lucius.step_id": step.step_id,
        "lucius.step_type": step.step_type,
        "lucius.attempt_no": place.attempt_no,
        "lucius.lane": step.route.lane,
    }
    return Spanned(f"{what} {step.step_type}", job.traceparent, False, attributes)
