"""What an operator sees of the engine: metrics and structured log events, as data.

Every event is one record of the logger `lucius_orchestrator`: its message is the event's name, its
fields are attributes of the record (`extra`). Lease ids are shortened, payloads never logged.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from lucius_contract import routing
from lucius_contract.audit import DeadLetterKind, EventType
from lucius_contract.errors import ContractError
from lucius_contract.messages import MessageType
from lucius_contract.states import TERMINAL_JOB_STATES, StepState
from lucius_contract.transitions import StepTrigger
from lucius_orchestrator.domain.aggregate import Aggregate
from lucius_orchestrator.domain.decision import AuditEvent, DeadLetter, Decision
from lucius_orchestrator.ports.ledger import Repair
from lucius_outbox.redaction import redacted
from lucius_outbox.telemetry import EventInfo, Kind, MetricInfo, Metrics, NoMetrics

_log = logging.getLogger("lucius_orchestrator")

SUBMITTED = "lucius_jobs_submitted_total"
FINISHED = "lucius_jobs_finished_total"
STEP_SECONDS = "lucius_step_seconds"
UNANSWERED = "lucius_attempts_unanswered_total"
RETRIES = "lucius_step_retries_total"
TIMEOUTS = "lucius_timeouts_total"
REPLIES = "lucius_replies_total"
DEAD_LETTERS = "lucius_dead_letters_total"
DISPATCH_LAG = "lucius_dispatch_lag_seconds"
CONFLICTS = "lucius_ledger_conflicts_total"
SWEEPER_ACTIONS = "lucius_sweeper_actions_total"
SWEEPER_FAILURES = "lucius_sweeper_failures_total"
UNREADABLE = "lucius_replies_unreadable_total"
WORKFLOWS_STARTED = "lucius_workflows_started_total"

METRICS: tuple[MetricInfo, ...] = (
    MetricInfo(SUBMITTED, Kind.COUNTER, (), "Jobs accepted; duplicates are not among them."),
    MetricInfo(FINISHED, Kind.COUNTER, ("state",), "Jobs that became terminal, by state."),
    MetricInfo(
        STEP_SECONDS,
        Kind.HISTOGRAM,
        ("step_type", "phase"),
        "Time of an attempt in a phase: dispatch (to the bus), pickup (to the ACK), work.",
    ),
    MetricInfo(RETRIES, Kind.COUNTER, ("reason",), "Attempts that ended with another to follow."),
    MetricInfo(
        UNANSWERED,
        Kind.COUNTER,
        ("service",),
        "Attempts that ended while nothing was heard from the service, and do not count as tries.",
    ),
    MetricInfo(TIMEOUTS, Kind.COUNTER, ("kind",), "Deadlines that ended an attempt or a job."),
    MetricInfo(REPLIES, Kind.COUNTER, ("type", "verdict"), "Replies judged, by verdict."),
    MetricInfo(UNREADABLE, Kind.COUNTER, (), "Replies on the bus that could not be read."),
    MetricInfo(DEAD_LETTERS, Kind.COUNTER, ("kind",), "Dead letters. Alert on any increase."),
    MetricInfo(
        DISPATCH_LAG, Kind.HISTOGRAM, ("lane",), "From the commit of a directive to its publish."
    ),
    MetricInfo(
        CONFLICTS, Kind.COUNTER, (), "Decisions made again, since the job had moved meanwhile."
    ),
    MetricInfo(SWEEPER_ACTIONS, Kind.COUNTER, ("sweeper",), "What sweepers changed."),
    MetricInfo(
        WORKFLOWS_STARTED,
        Kind.COUNTER,
        ("restart",),
        "Workflows of jobs that Temporal drives; a restart is one whose first workflow was lost.",
    ),
    MetricInfo(
        SWEEPER_FAILURES, Kind.COUNTER, ("sweeper",), "Jobs or rounds that a sweeper failed on."
    ),
)

EVENTS: tuple[EventInfo, ...] = (
    EventInfo(
        "job.dead_letter",
        "ERROR",
        ("kind", "jobId", "stepId", "attempt_no", "tenant_id", "code", "error", "correlation_id"),
        "A job, a step or a directive failed for good.",
    ),
    EventInfo(
        "job.finished", "INFO", ("jobId", "tenant_id", "state", "correlation_id"), "A job ended."
    ),
    EventInfo(
        "reply.unreadable",
        "ERROR",
        ("topic", "sha256", "code", "error"),
        "A message on a reply topic is no reply; it was dead-lettered.",
    ),
    EventInfo(
        "reply.failed",
        "ERROR",
        ("topic", "error"),
        "A reply could not be handled for a reason of ours; it comes again.",
    ),
    EventInfo("dispatch.failed", "WARNING", ("topic", "count", "error"), "The bus took nothing."),
    EventInfo(
        "sweeper.failed", "ERROR", ("sweeper", "jobId", "error"), "A sweeper could not do a job."
    ),
    EventInfo("sweeper.acted", "INFO", ("sweeper", "count"), "A sweeper changed something."),
    EventInfo(
        "workflows.away",
        "WARNING",
        ("what", "error"),
        "Temporal could not be told something; it is told again.",
    ),
    EventInfo(
        "traffic.unreported",
        "WARNING",
        ("error",),
        "What this process has seen of services could not be exchanged with the others.",
    ),
    EventInfo(
        "ledger.repaired",
        "WARNING",
        ("index_name", "key", "before", "after"),
        "An index did not say what the jobs say, and was mended.",
    ),
)

_TIMEOUTS = frozenset(
    {
        StepTrigger.ACK_TIMEOUT.value,
        StepTrigger.LEASE_EXPIRED.value,
        StepTrigger.ATTEMPT_TIMEOUT.value,
        StepTrigger.SLA_EXCEEDED.value,
    }
)
_REPLY_TYPES = {
    "AckReceived": MessageType.ACK.value,
    "HeartbeatReceived": MessageType.HEARTBEAT.value,
    "ResultReceived": MessageType.RESULT.value,
}


class Telemetry:
    """The engine's voice."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._metrics = metrics or NoMetrics()
        self._measures = metrics is not None

    def submitted(self) -> None:
        self._metrics.increment(SUBMITTED, 1)

    def conflict(self) -> None:
        self._metrics.increment(CONFLICTS, 1)

    def committed(self, event: str, decision: Decision, after: Aggregate) -> None:
        """Everything that a commit says about the job, once it is durable."""
        if self._measures and decision.reply is not None and event in _REPLY_TYPES:
            verdict = decision.reply.verdict.value
            self._metrics.increment(REPLIES, 1, type=_REPLY_TYPES[event], verdict=verdict)
        if self._measures:
            self._moved(decision.events, after)
        state = decision.job.get("state")
        if state in TERMINAL_JOB_STATES:
            self._metrics.increment(FINISHED, 1, state=state.value)
            self._tell(logging.INFO, "job.finished", **_who(after), state=state.value)
        for letter in decision.dead_letters:
            self._dead_letter(letter, after)

    def dispatched(self, topic: str, created_at: datetime, clock: Callable[[], datetime]) -> None:
        if self._measures:
            lane = topic.removeprefix(routing.DIRECTIVE_TOPIC_PREFIX)
            lag = (clock() - created_at).total_seconds()
            self._metrics.observe(DISPATCH_LAG, [lag], lane=lane)

    def dispatch_failed(self, topic: str, count: int, error: Exception) -> None:
        self._tell(logging.WARNING, "dispatch.failed", topic=topic, count=count, error=_text(error))

    def unreadable(self, topic: str, digest: str, error: ContractError, *, is_new: bool) -> None:
        self._metrics.increment(UNREADABLE, 1)
        if is_new:
            self._metrics.increment(DEAD_LETTERS, 1, kind=DeadLetterKind.REPLY.value)
        place = {"topic": topic, "sha256": digest}
        self._tell(
            logging.ERROR, "reply.unreadable", **place, code=error.code.value, error=_text(error)
        )

    def reply_failed(self, topic: str, error: Exception) -> None:
        self._tell(logging.ERROR, "reply.failed", topic=topic, error=_text(error))

    def swept(self, sweeper: str, count: int) -> None:
        if count:
            self._metrics.increment(SWEEPER_ACTIONS, count, sweeper=sweeper)
            self._tell(logging.INFO, "sweeper.acted", sweeper=sweeper, count=count)

    def sweeper_failed(self, sweeper: str, job_id: str | None, error: Exception) -> None:
        self._metrics.increment(SWEEPER_FAILURES, 1, sweeper=sweeper)
        self._tell(
            logging.ERROR, "sweeper.failed", sweeper=sweeper, jobId=job_id, error=_text(error)
        )

    def reports_failed(self, error: Exception) -> None:
        self._tell(logging.WARNING, "traffic.unreported", error=_text(error))

    def workflow_started(self, *, restarts: bool) -> None:
        self._metrics.increment(WORKFLOWS_STARTED, 1, restart=str(restarts).lower())

    def workflows_away(self, what: str, error: Exception) -> None:
        self._tell(logging.WARNING, "workflows.away", what=what, error=_text(error))

    def repaired(self, repairs: Iterable[Repair]) -> None:
        for repair in repairs:
            self._tell(logging.WARNING, "ledger.repaired", **repair._asdict())

    def _moved(self, changes: Sequence[AuditEvent], after: Aggregate) -> None:
        causes = {str(change.cause) for change in changes}  # of the job and of its step: one
        for kind in causes & _TIMEOUTS:
            self._metrics.increment(TIMEOUTS, 1, kind=kind)
        for change in changes:
            if change.type is EventType.STEP_STATE_CHANGED:
                self._step_moved(change, after)

    def _step_moved(self, change: AuditEvent, after: Aggregate) -> None:
        if change.cause == StepTrigger.ACK_TIMEOUT:
            self._timed_out(change, after)
        if change.target == StepState.FAILED_RETRY:
            self._metrics.increment(RETRIES, 1, reason=str(change.cause))
        phase = _PHASES.get((change.source, change.target))
        if phase is None or change.implied or change.step_id is None:
            return
        name, begin, end = phase
        step = after.step(change.step_id)
        attempt = step.attempt(change.attempt_no or 0) if step else None
        if step is None or attempt is None:
            return
        began: datetime | None = getattr(attempt, begin)
        ended: datetime | None = getattr(attempt, end)
        if began is not None and ended is not None:
            seconds = (ended - began).total_seconds()
            self._metrics.observe(STEP_SECONDS, [seconds], step_type=step.step_type, phase=name)

    def _timed_out(self, change: AuditEvent, after: Aggregate) -> None:
        step = after.step(change.step_id or "")
        attempt = step.attempt(change.attempt_no or 0) if step else None
        if step is not None and attempt is not None and attempt.unanswered:
            self._metrics.increment(UNANSWERED, 1, service=step.service)

    def _dead_letter(self, letter: DeadLetter, after: Aggregate) -> None:
        self._metrics.increment(DEAD_LETTERS, 1, kind=letter.kind.value)
        self._tell(
            logging.ERROR,
            "job.dead_letter",
            **_who(after),
            kind=letter.kind.value,
            stepId=letter.step_id,
            attempt_no=letter.attempt_no,
            code=letter.code,
            error=redacted(letter.message),
        )

    def _tell(self, level: int, name: str, **fields: object) -> None:
        if _log.isEnabledFor(level):
            _log.log(level, name, extra=fields)


_PHASES: dict[tuple[str | None, str | None], tuple[str, str, str]] = {
    (StepState.DISPATCHING, StepState.AWAITING_ACK): ("dispatch", "dispatched_at", "sent_at"),
    (StepState.AWAITING_ACK, StepState.IN_PROGRESS): ("pickup", "sent_at", "acknowledged_at"),
    (StepState.IN_PROGRESS, StepState.SUCCEEDED): ("work", "acknowledged_at", "completed_at"),
}


def _who(aggregate: Aggregate) -> dict[str, str]:
    job = aggregate.job
    return {
        "jobId": job.job_id,
        "tenant_id": job.tenant_id,
        "correlation_id": job.correlation_id,
    }


def _text(error: Exception) -> str:
    return redacted(f"{type(error).__name__}: {error}")
