"""What an operator sees: metrics and structured log events, as data and as one voice.

Every event is one record of the logger `lucius_outbox`: its message is the event's name, its fields
are attributes of the record (`extra`). Payloads are never logged, errors only without credentials.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from lucius_outbox.errors import LeaseLost, OutboxError
from lucius_outbox.message import Claimed, Failure
from lucius_outbox.redaction import redacted
from lucius_outbox.store import Buried, TopicStats

_log = logging.getLogger("lucius_outbox")


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class MetricInfo(NamedTuple):
    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str


CLAIMED = "lucius_outbox_claimed_total"
RECLAIMED = "lucius_outbox_reclaimed_total"
DELIVERED = "lucius_outbox_delivered_total"
FAILED = "lucius_outbox_failed_total"
DEAD = "lucius_outbox_dead_total"
LEASES_LOST = "lucius_outbox_leases_lost_total"
STORE_ERRORS = "lucius_outbox_store_errors_total"
PRUNED = "lucius_outbox_pruned_total"
PUBLISH_SECONDS = "lucius_outbox_publish_seconds"
LAG_SECONDS = "lucius_outbox_lag_seconds"
ROWS = "lucius_outbox_rows"
OLDEST_SECONDS = "lucius_outbox_oldest_seconds"

_TOPIC = ("namespace", "topic")
METRICS: tuple[MetricInfo, ...] = (
    MetricInfo(CLAIMED, Kind.COUNTER, _TOPIC, "Rows claimed, reclaimed ones included."),
    MetricInfo(RECLAIMED, Kind.COUNTER, _TOPIC, "Rows taken over after their lease had expired."),
    MetricInfo(DELIVERED, Kind.COUNTER, _TOPIC, "Messages published and marked delivered."),
    MetricInfo(FAILED, Kind.COUNTER, _TOPIC, "Tries to publish that failed."),
    MetricInfo(DEAD, Kind.COUNTER, _TOPIC, "Messages given up. Alert on any increase."),
    MetricInfo(
        LEASES_LOST,
        Kind.COUNTER,
        ("namespace",),
        "Rows whose lease was lost while being worked on.",
    ),
    MetricInfo(
        STORE_ERRORS, Kind.COUNTER, ("namespace", "verb"), "Verbs that the database could not do."
    ),
    MetricInfo(PRUNED, Kind.COUNTER, ("namespace",), "Delivered rows deleted by retention."),
    MetricInfo(
        PUBLISH_SECONDS, Kind.HISTOGRAM, ("namespace",), "Time in the publisher, per batch."
    ),
    MetricInfo(LAG_SECONDS, Kind.HISTOGRAM, _TOPIC, "From enqueue to delivered, per message."),
    MetricInfo(ROWS, Kind.GAUGE, (*_TOPIC, "status"), "Rows that are pending, processing or dead."),
    MetricInfo(
        OLDEST_SECONDS, Kind.GAUGE, _TOPIC, "Age of the oldest row that is pending or processing."
    ),
)


class EventInfo(NamedTuple):
    name: str
    level: str
    fields: tuple[str, ...]
    meaning: str


EVENTS: tuple[EventInfo, ...] = (
    EventInfo("outbox.started", "INFO", (), "A dispatcher began to work."),
    EventInfo("outbox.stopped", "INFO", (), "It stopped."),
    EventInfo("outbox.delivered", "DEBUG", ("count",), "A batch was delivered."),
    EventInfo(
        "outbox.reclaimed", "WARNING", ("ids",), "Rows were taken over from an expired lease."
    ),
    EventInfo(
        "outbox.failed", "WARNING", ("id", "topic", "attempts", "error"), "A try to publish failed."
    ),
    EventInfo(
        "outbox.dead",
        "ERROR",
        ("id", "topic", "tenant_id", "dedupe_key", "attempts", "reclaims", "error"),
        "A message was given up; a person must look at it.",
    ),
    EventInfo(
        "outbox.on_dead_failed", "ERROR", ("id", "error"), "`on_dead` raised; the row comes again."
    ),
    EventInfo(
        "outbox.lease_lost",
        "ERROR",
        ("verb", "ids"),
        "Another worker has the rows; they may be published twice.",
    ),
    EventInfo(
        "outbox.store_failed", "WARNING", ("verb", "error"), "The database could not do a verb."
    ),
    EventInfo(
        "outbox.listen_lost",
        "WARNING",
        ("error",),
        "No wake-ups on commit for now; polling goes on.",
    ),
    EventInfo("outbox.replayed", "INFO", ("count", "by", "reason"), "Dead rows were replayed."),
    EventInfo("outbox.pruned", "INFO", ("count",), "Delivered rows were deleted by retention."),
)


class Metrics(Protocol):
    """Where the numbers go; `lucius_outbox.prometheus` has one. Names and labels: METRICS."""

    def increment(self, name: str, amount: int, **labels: str) -> None: ...

    def observe(self, name: str, values: Sequence[float], **labels: str) -> None: ...

    def set(self, name: str, value: float, **labels: str) -> None: ...


class NoMetrics:
    def increment(self, name: str, amount: int, **labels: str) -> None: ...

    def observe(self, name: str, values: Sequence[float], **labels: str) -> None: ...

    def set(self, name: str, value: float, **labels: str) -> None: ...


class Telemetry:
    """One dispatcher's voice."""

    def __init__(self, namespace: str, worker_id: str, metrics: Metrics) -> None:
        self._namespace = namespace
        self._who = {"namespace": namespace, "worker_id": worker_id}
        self._metrics = metrics
        self._topics: set[str] = set()

    def started(self) -> None:
        self._tell(logging.INFO, "outbox.started")

    def stopped(self) -> None:
        self._tell(logging.INFO, "outbox.stopped")

    def claimed(self, claims: Sequence[Claimed]) -> None:
        self._count(CLAIMED, claims)
        reclaimed = [claimed for claimed in claims if claimed.reclaimed]
        if reclaimed:
            self._count(RECLAIMED, reclaimed)
            ids = [claimed.id for claimed in reclaimed]
            self._tell(logging.WARNING, "outbox.reclaimed", ids=ids)

    def published(self, seconds: float) -> None:
        self._metrics.observe(PUBLISH_SECONDS, [seconds], namespace=self._namespace)

    def delivered(self, claims: Sequence[Claimed]) -> None:
        self._count(DELIVERED, claims)
        now = datetime.now(UTC)
        lags: dict[str, list[float]] = {}
        for claimed in claims:
            lag = (now - claimed.created_at).total_seconds()
            lags.setdefault(claimed.topic, []).append(lag)
        for topic, seconds in lags.items():
            self._metrics.observe(LAG_SECONDS, seconds, namespace=self._namespace, topic=topic)
        self._tell(logging.DEBUG, "outbox.delivered", count=len(claims))

    def failed(self, failures: Sequence[Failure]) -> None:
        self._count(FAILED, [failure.claimed for failure in failures])
        for claimed, error, _ in failures:
            self._tell(
                logging.WARNING,
                "outbox.failed",
                id=claimed.id,
                topic=claimed.topic,
                attempts=claimed.attempts,
                error=redacted(error),
            )

    def buried(self, buried: Buried) -> None:
        self._count(DEAD, buried.dead)
        for dead in buried.dead:
            self._tell(
                logging.ERROR,
                "outbox.dead",
                id=dead.id,
                topic=dead.topic,
                tenant_id=dead.tenant_id,
                dedupe_key=dead.dedupe_key,
                attempts=dead.attempts,
                reclaims=dead.reclaims,
                error=dead.last_error,
            )
        for failure in buried.failed:
            self._tell(
                logging.ERROR,
                "outbox.on_dead_failed",
                id=failure.message_id,
                error=redacted(repr(failure.__cause__)),
            )

    def lease_lost(self, error: LeaseLost) -> None:
        self._metrics.increment(LEASES_LOST, len(error.ids), namespace=self._namespace)
        self._tell(logging.ERROR, "outbox.lease_lost", verb=error.verb, ids=list(error.ids))

    def store_failed(self, verb: str, error: OutboxError) -> None:
        self._metrics.increment(STORE_ERRORS, 1, namespace=self._namespace, verb=verb)
        self._tell(logging.WARNING, "outbox.store_failed", verb=verb, error=redacted(str(error)))

    def pruned(self, count: int) -> None:
        self._metrics.increment(PRUNED, count, namespace=self._namespace)
        self._tell(logging.INFO, "outbox.pruned", count=count)

    def counted(self, stats: Sequence[TopicStats]) -> None:
        """A topic that is not there any more has no rows: its gauges return to zero."""
        seen = {row.topic: row for row in stats}
        for topic in self._topics | set(seen):
            row = seen.get(topic)
            labels = {"namespace": self._namespace, "topic": topic}
            self._metrics.set(ROWS, row.pending if row else 0, **labels, status="pending")
            self._metrics.set(ROWS, row.processing if row else 0, **labels, status="processing")
            self._metrics.set(ROWS, row.dead if row else 0, **labels, status="dead")
            age = row.age.total_seconds() if row and row.age is not None else 0.0
            self._metrics.set(OLDEST_SECONDS, age, **labels)
        self._topics = set(seen)

    def _count(self, name: str, rows: Iterable["Topical"]) -> None:
        for topic, count in Counter(row.topic for row in rows).items():
            self._metrics.increment(name, count, namespace=self._namespace, topic=topic)

    def _tell(self, level: int, event: str, **fields: object) -> None:
        _log.log(level, event, extra={**self._who, **fields})


def replayed(namespace: str, count: int, by: str, reason: str) -> None:
    fields = {"namespace": namespace, "count": count, "by": by, "reason": redacted(reason)}
    _log.info("outbox.replayed", extra=fields)


def listen_lost(namespace: str, error: OutboxError) -> None:
    fields = {"namespace": namespace, "error": redacted(str(error))}
    _log.warning("outbox.listen_lost", extra=fields)


class Topical(Protocol):
    @property
    def topic(self) -> str: ...
