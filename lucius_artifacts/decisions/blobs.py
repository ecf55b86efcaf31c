"""What becomes of a blob."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from lucius_artifacts.decisions.moving import require_row
from lucius_artifacts.errors import Gone, Refused
from lucius_artifacts.model import Blob, Reference, Run, RunPhase
from lucius_artifacts.states import BLOB_TRANSITIONS, BlobProcess, BlobState


def delete_request(blob: Blob, authorized: bool, now: datetime, retention: timedelta) -> Blob:
    moved = _moved(blob, BlobProcess.DELETE_REQUEST, BlobState.TOMBSTONED)
    if not authorized:
        raise Refused(f"deleting blob {blob.digest} needs another role")
    return replace(moved, delete_after=now + retention)


def retention_elapsed(blob: Blob, references: Sequence[Reference], now: datetime) -> Blob:
    moved = _moved(blob, BlobProcess.RETENTION_ELAPSED, BlobState.ELIGIBLE_FOR_GC)
    if blob.delete_after is None or now < blob.delete_after:
        raise Refused(f"blob {blob.digest} is retained until {blob.delete_after}")
    _require_unreferenced(blob, references)
    return replace(moved, eligible_at=now)


def gc_mark(blob: Blob, now: datetime) -> Blob:
    return _alive(_moved(blob, BlobProcess.GC_MARK, BlobState.LIVE), now)


def gc_sweep(blob: Blob, run: Run, references: Sequence[Reference], now: datetime) -> Blob:
    """`references` are read in the transaction that deletes: whatever came after the mark phase
    counts, too."""
    moved = _moved(blob, BlobProcess.GC_SWEEP, BlobState.DELETED)
    if run.phase is not RunPhase.SWEEPING:
        raise Refused(f"run {run.run_id} is {run.phase}: it has no complete mark phase to sweep by")
    if blob.marked_by == run.run_id:
        raise Refused(f"blob {blob.digest} was marked in run {run.run_id}")
    if blob.eligible_at is None or blob.eligible_at > run.started_at:
        raise Refused(f"blob {blob.digest} was not eligible when run {run.run_id} began to mark")
    _require_unreferenced(blob, references)
    return replace(moved, deleted_at=now)


def needed(blob: Blob, now: datetime) -> Blob:
    """Somebody needs it from now on: a deletion that was asked for is off."""
    if blob.state is BlobState.LIVE:
        return _alive(blob, now)
    if blob.state is BlobState.DELETED:
        raise Gone(f"blob {blob.digest}")
    return _alive(_moved(blob, BlobProcess.REVIVE, BlobState.LIVE), now)


def _alive(blob: Blob, now: datetime) -> Blob:
    return replace(blob, needed_at=max(blob.needed_at, now), delete_after=None, eligible_at=None)


def _moved(blob: Blob, process: BlobProcess, target: BlobState) -> Blob:
    require_row(BLOB_TRANSITIONS, f"blob {blob.digest}", blob.state, process, target)
    return replace(blob, state=target)


def _require_unreferenced(blob: Blob, references: Sequence[Reference]) -> None:
    if references:
        first = references[0]
        raise Refused(f"blob {blob.digest} is needed by {first.kind} {first.who}")
