"""Rows to decide on, with what a test does not care about filled in."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from lucius_artifacts.model import (
    Blob,
    Entry,
    Fence,
    NeededBy,
    Producer,
    Reference,
    Run,
    RunPhase,
    Upload,
    Version,
)
from lucius_artifacts.states import BlobState, UploadState, VersionState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
CONTENT = b"ten bytes!"
DIGEST = sha256(CONTENT).hexdigest()


def upload(state: UploadState = UploadState.INITIATED, **changes: Any) -> Upload:
    row = Upload(
        "up_1",
        "acme",
        DIGEST,
        len(CONTENT),
        part_size=4,
        object_key="ob_1",
        challenge="c0ffee",
        state=state,
        created_at=NOW - HOUR,
        created_by="ann",
        expires_at=NOW + HOUR,
    )
    return replace(row, **changes)


def blob(state: BlobState = BlobState.LIVE, **changes: Any) -> Blob:
    row = Blob(DIGEST, len(CONTENT), "ob_1", state, NOW - HOUR, NOW - HOUR)
    if state is not BlobState.LIVE:
        row = replace(row, delete_after=NOW - HOUR / 2)
    if state in {BlobState.ELIGIBLE_FOR_GC, BlobState.DELETED}:
        row = replace(row, eligible_at=NOW - HOUR / 4)
    return replace(row, **changes)


def version(state: VersionState = VersionState.DRAFT, **changes: Any) -> Version:
    entries = (Entry("answer.json", DIGEST, len(CONTENT)),)
    row = Version("acme", "answers", 1, state, entries, NOW - HOUR, "ann")
    if state is not VersionState.PUBLISHED:
        row = replace(row, retained_until=NOW + HOUR)
    return replace(row, **changes)


def produced(attempt_no: int, epoch: int = 1, **changes: Any) -> Version:
    producer = Producer("job_1", Fence("step_01", attempt_no, epoch))
    return version(VersionState.PUBLISHED, producer=producer, **changes)


def run(phase: RunPhase = RunPhase.SWEEPING, **changes: Any) -> Run:
    return replace(Run("gc_1", phase, NOW, NOW + HOUR), **changes)


REFERENCE = Reference(NeededBy.VERSION, "acme", "answers/v1")
