"""What an operator sees of artifacts: metrics and log events, as data and as one voice.

Every event is one record of the logger `lucius_artifacts`. No url, no challenge and no proof is in
any of them, and of a digest only its beginning.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from lucius_artifacts.collection.schedule import Report
from lucius_artifacts.events import EventType
from lucius_outbox.message import Message
from lucius_outbox.redaction import redacted
from lucius_outbox.telemetry import EventInfo, Kind, MetricInfo, Metrics, NoMetrics

_log = logging.getLogger("lucius_artifacts")

UPLOADS = "lucius_artifact_uploads_total"
UPLOAD_BYTES = "lucius_artifact_upload_bytes_total"
VERSIONS = "lucius_artifact_versions_total"
RUNS = "lucius_artifact_gc_runs_total"
DELETED = "lucius_artifact_gc_deleted_total"
DELETED_BYTES = "lucius_artifact_gc_deleted_bytes_total"
BLOBS = "lucius_artifact_blobs"
BYTES = "lucius_artifact_bytes"
OPEN_UPLOADS = "lucius_artifact_open_uploads"
DOOMED = "lucius_artifact_doomed_objects"

COUNTERS: tuple[MetricInfo, ...] = (
    MetricInfo(
        UPLOADS, Kind.COUNTER, ("outcome",), "Uploads that ended: `committed` or `aborted`."
    ),
    MetricInfo(UPLOAD_BYTES, Kind.COUNTER, (), "Bytes of uploads that were committed."),
    MetricInfo(
        VERSIONS,
        Kind.COUNTER,
        ("outcome",),
        "Versions `published`, `quarantined`, `tombstoned` or `restored`.",
    ),
    MetricInfo(
        RUNS,
        Kind.COUNTER,
        ("outcome",),
        "Collections that ended: `done`, `busy` (another one was at it) or `failed`.",
    ),
    MetricInfo(DELETED, Kind.COUNTER, (), "Blobs that collections have deleted."),
    MetricInfo(DELETED_BYTES, Kind.COUNTER, (), "Bytes of these."),
)
GAUGES: tuple[MetricInfo, ...] = (
    MetricInfo(BLOBS, Kind.GAUGE, ("state",), "Blobs that are stored, by state."),
    MetricInfo(BYTES, Kind.GAUGE, ("state",), "Bytes of these."),
    MetricInfo(OPEN_UPLOADS, Kind.GAUGE, (), "Uploads that have not ended."),
    MetricInfo(DOOMED, Kind.GAUGE, (), "Objects in storage that wait for their deletion."),
)

_ABOUT: Mapping[str, tuple[tuple[str, ...], str]] = {
    "upload": (
        ("tenant_id", "upload_id", "digest", "length", "reason"),
        "An upload ended.",
    ),
    "version": (("tenant_id", "subject", "jobId", "reason"), "A version has a new state."),
    "blob": (("digest", "length"), "A blob has a new state."),
}


def _family(kind: str) -> tuple[tuple[str, ...], str]:
    return _ABOUT[kind.partition(".")[0]]


EVENTS: tuple[EventInfo, ...] = (
    *(EventInfo(f"artifact.{kind}", "INFO", *_family(kind)) for kind in EventType),
    EventInfo(
        "artifact.verification_failed",
        "WARNING",
        ("upload_id", "error"),
        "An upload could not be verified, and nobody waited for it; it can be completed again.",
    ),
    EventInfo(
        "artifact.collected",
        "INFO",
        tuple(asdict(Report())),
        "A collection ended; how many of each.",
    ),
    EventInfo("artifact.collection_busy", "INFO", ("reason",), "Another collection is at it."),
    EventInfo(
        "artifact.collection_failed",
        "WARNING",
        ("error",),
        "A collection could not go on; the next one does what it left.",
    ),
)
_DIGITS = 12


class Telemetry:
    def __init__(self, metrics: Metrics | None = None) -> None:
        self._metrics = metrics or NoMetrics()

    def committed(self, messages: Sequence[Message]) -> None:
        """What a transaction has told the outbox, and was committed."""
        for message in messages:
            body = cast(dict[str, Any], message.payload)
            self._count(message.topic, body)
            fields, _ = _family(message.topic)
            said = {name: _said(name, body.get(name)) for name in fields}
            _log.info(f"artifact.{message.topic}", extra=said)

    def collected(self, report: Report) -> None:
        self._metrics.increment(RUNS, 1, outcome="done")
        _log.info("artifact.collected", extra=asdict(report))

    def collection_busy(self, reason: str) -> None:
        self._metrics.increment(RUNS, 1, outcome="busy")
        _log.info("artifact.collection_busy", extra={"reason": reason})

    def collection_failed(self, error: Exception) -> None:
        self._metrics.increment(RUNS, 1, outcome="failed")
        text = redacted(f"{type(error).__name__}: {error}")
        _log.warning("artifact.collection_failed", extra={"error": text})

    def _count(self, topic: str, body: Mapping[str, Any]) -> None:
        family, _, outcome = topic.partition(".")
        if family == "upload":
            self._metrics.increment(UPLOADS, 1, outcome=outcome)
        if family == "version":
            self._metrics.increment(VERSIONS, 1, outcome=outcome)
        if topic == EventType.UPLOAD_COMMITTED:
            self._metrics.increment(UPLOAD_BYTES, body["length"])
        if topic == EventType.BLOB_DELETED:
            self._metrics.increment(DELETED, 1)
            self._metrics.increment(DELETED_BYTES, body["length"])


def _said(name: str, value: Any) -> Any:
    if name == "digest" and isinstance(value, str):
        return value[:_DIGITS]
    return redacted(value) if isinstance(value, str) else value
