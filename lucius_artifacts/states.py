"""Every legal transition of an upload, a version and a blob, as data.

What is in no row is refused. `ours` marks the rows that the description of the critical state
machines leaves open (docs/adr/0013); all others are its own. The tables in
`docs/reference/artifacts.md` are generated from here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar


class UploadState(StrEnum):
    INITIATED = "initiated"
    PARTS_UPLOADING = "parts_uploading"
    PENDING_COMMIT = "pending_commit"
    COMMITTED = "committed"
    ABORTED = "aborted"


class UploadCommand(StrEnum):
    START_PARTS_UPLOAD = "start_parts_upload"
    FAST_PATH_DEDUPE = "fast_path_dedupe"
    COMPLETE_PARTS = "complete_parts"
    COMMIT_UPLOAD = "commit_upload"
    ABORT_UPLOAD = "abort_upload"


class VersionState(StrEnum):
    DRAFT = "draft"
    PUBLISHED = "published"
    TOMBSTONED = "tombstoned"


class VersionCommand(StrEnum):
    PUBLISH_VERSION = "publish_version"
    TOMBSTONE_VERSION = "tombstone_version"
    RESTORE_VERSION = "restore_version"


class BlobState(StrEnum):
    LIVE = "live"
    TOMBSTONED = "tombstoned"
    ELIGIBLE_FOR_GC = "eligible_for_gc"
    DELETED = "deleted"


class BlobProcess(StrEnum):
    DELETE_REQUEST = "delete_request"
    RETENTION_ELAPSED = "retention_elapsed"
    GC_SWEEP = "gc_sweep"
    GC_MARK = "gc_mark"
    REVIVE = "revive"


State = TypeVar("State", bound=StrEnum)
Trigger = TypeVar("Trigger", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Transition(Generic[State, Trigger]):
    source: State
    trigger: Trigger
    guard: str
    target: State
    effect: str
    ours: bool = False


def _upload_rows() -> tuple[Transition[UploadState, UploadCommand], ...]:
    s, c = UploadState, UploadCommand
    return (
        Transition(
            s.INITIATED,
            c.START_PARTS_UPLOAD,
            "session valid and not expired",
            s.PARTS_UPLOADING,
            "issue pre-signed part URLs",
        ),
        Transition(
            s.INITIATED,
            c.FAST_PATH_DEDUPE,
            "the tenant itself has the digest already, with the same length, and the caller has"
            " proved that it holds the content",
            s.COMMITTED,
            "outbox upload.committed",
        ),
        Transition(
            s.PARTS_UPLOADING,
            c.COMPLETE_PARTS,
            "all parts acknowledged",
            s.PENDING_COMMIT,
            "none",
        ),
        Transition(
            s.PENDING_COMMIT,
            c.COMMIT_UPLOAD,
            "digest + length verified",
            s.COMMITTED,
            "insert blob row, outbox upload.committed",
        ),
        Transition(
            s.PENDING_COMMIT,
            c.COMMIT_UPLOAD,
            "digest mismatch or length mismatch",
            s.ABORTED,
            "audit failure, tombstone staging objects, outbox upload.aborted",
        ),
        *(
            Transition(
                source,
                c.ABORT_UPLOAD,
                "client abort or expiration",
                s.ABORTED,
                "tombstone staging objects, outbox upload.aborted",
            )
            for source in (s.INITIATED, s.PARTS_UPLOADING, s.PENDING_COMMIT)
        ),
    )


def _version_rows() -> tuple[Transition[VersionState, VersionCommand], ...]:
    s, c = VersionState, VersionCommand
    return (
        Transition(
            s.DRAFT,
            c.PUBLISH_VERSION,
            "all blobs exist, policy allows",
            s.PUBLISHED,
            "artifact entries persisted + outbox version.published + audit",
        ),
        Transition(
            s.DRAFT,
            c.PUBLISH_VERSION,
            "policy quarantines",
            s.DRAFT,
            "audit + outbox version.quarantined",
        ),
        Transition(
            s.PUBLISHED,
            c.TOMBSTONE_VERSION,
            "authorized and retention set",
            s.TOMBSTONED,
            "retention deadline recorded + outbox version.tombstoned + audit",
        ),
        Transition(
            s.TOMBSTONED,
            c.RESTORE_VERSION,
            "within retention, all blobs exist, policy allows",
            s.PUBLISHED,
            "audit + outbox version.restored",
        ),
    )


def _blob_rows() -> tuple[Transition[BlobState, BlobProcess], ...]:
    s, p = BlobState, BlobProcess
    return (
        Transition(
            s.LIVE,
            p.DELETE_REQUEST,
            "authorized",
            s.TOMBSTONED,
            "retention deadline recorded, outbox blob.tombstoned",
        ),
        Transition(
            s.TOMBSTONED,
            p.RETENTION_ELAPSED,
            "no active references",
            s.ELIGIBLE_FOR_GC,
            "mark candidate",
        ),
        Transition(
            s.ELIGIBLE_FOR_GC,
            p.GC_SWEEP,
            "not marked reachable in current run, whose mark phase is complete",
            s.DELETED,
            "delete object-store blob, outbox blob.deleted",
        ),
        Transition(
            s.ELIGIBLE_FOR_GC,
            p.GC_MARK,
            "reachable from a retained version, a running job or an open upload",
            s.LIVE,
            "clear candidate",
        ),
        *(
            Transition(
                source,
                p.REVIVE,
                "an upload, a publication, a restore or a job needs it again",
                s.LIVE,
                "clear candidate, in the transaction that needs it",
                ours=True,
            )
            for source in (s.TOMBSTONED, s.ELIGIBLE_FOR_GC)
        ),
    )


UPLOAD_TRANSITIONS = _upload_rows()
VERSION_TRANSITIONS = _version_rows()
BLOB_TRANSITIONS = _blob_rows()
OPEN_UPLOADS = frozenset(
    {UploadState.INITIATED, UploadState.PARTS_UPLOADING, UploadState.PENDING_COMMIT}
)


def allows(
    table: Iterable[Transition[State, Trigger]], source: State, trigger: Trigger, target: State
) -> bool:
    return any(
        row.source is source and row.trigger is trigger and row.target is target for row in table
    )


def sources_of(table: Iterable[Transition[State, Trigger]], trigger: Trigger) -> list[State]:
    """From where the trigger is possible at all, for the reason of a refusal."""
    return sorted({row.source for row in table if row.trigger is trigger})
