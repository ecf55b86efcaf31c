"""The rows of the catalogue. Times are aware and in UTC."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lucius_artifacts.states import OPEN_UPLOADS, BlobState, UploadState, VersionState


@dataclass(frozen=True, slots=True)
class Upload:
    """A session in which one tenant brings one content.

    `object_key` names the object that its parts become, and no other session's. `challenge` is the
    key of the proof of possession. `reason` says why it was aborted.
    """

    upload_id: str
    tenant_id: str
    digest: str
    length: int
    part_size: int
    object_key: str
    challenge: str
    state: UploadState
    created_at: datetime
    created_by: str
    expires_at: datetime
    ended_at: datetime | None = None
    reason: str | None = None
    proof_refused: bool = False

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_UPLOADS

    @property
    def part_count(self) -> int:
        """An empty content has no parts."""
        return -(-self.length // self.part_size)

    def size_of_part(self, number: int) -> int:
        """Parts are numbered from 1; all but the last are `part_size` long."""
        return min(self.part_size, self.length - (number - 1) * self.part_size)


@dataclass(frozen=True, slots=True)
class Blob:
    """Verified content that exists once. Many rows may have had a digest; one that is not DELETED
    has it now.

    `needed_at` is when somebody last asked for it to be there: an upload, a publication, a job.
    `delete_after` is the retention horizon of a deletion that was asked for. `marked_by` is the
    last collection that found it needed.
    """

    digest: str
    length: int
    object_key: str
    state: BlobState
    created_at: datetime
    needed_at: datetime
    delete_after: datetime | None = None
    eligible_at: datetime | None = None
    marked_by: str | None = None
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A tenant that has brought the content may read it by its digest, and bring it again by a
    proof. `claimed_at` is when the tenant last did.

    `object_key` names the tenant's own copy; None: the blob's object. Of content that two tenants
    have brought there are two objects, since the address of a shared one, and on Azure its dates,
    would tell the second tenant that it was not the first.
    """

    tenant_id: str
    digest: str
    claimed_at: datetime
    object_key: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a version."""

    path: str
    digest: str
    length: int
    media_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True, order=True)
class Fence:
    """Of two runs of a job that publish, the one with the higher fence counts: of a later step, of
    a later attempt, of a later take-over. Ids of steps sort by their order."""

    step_id: str
    attempt_no: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Producer:
    """The run of a job that published a version."""

    job_id: str
    fence: Fence


@dataclass(frozen=True, slots=True)
class Version:
    """`entries` are sorted by path and never change. Until `retained_until` its blobs are needed;
    None: for ever, as those of every published version. `reason` says why it was tombstoned or
    quarantined."""

    tenant_id: str
    name: str
    number: int
    state: VersionState
    entries: tuple[Entry, ...]
    created_at: datetime
    created_by: str
    producer: Producer | None = None
    published_at: datetime | None = None
    tombstoned_at: datetime | None = None
    retained_until: datetime | None = None
    reason: str | None = None

    @property
    def digests(self) -> list[str]:
        return sorted({entry.digest for entry in self.entries})


@dataclass(frozen=True, slots=True)
class Hold:
    """A job that has not ended needs this content."""

    job_id: str
    tenant_id: str
    digest: str
    held_at: datetime


@dataclass(frozen=True, slots=True)
class Doomed:
    """An object that is to be deleted from storage, not before `delete_after`. The row goes when
    the object is gone."""

    object_key: str
    delete_after: datetime
    why: str


class NeededBy(StrEnum):
    VERSION = "version"
    JOB = "job"
    UPLOAD = "upload"


@dataclass(frozen=True, slots=True)
class Reference:
    """Why a blob must stay: `who` is `name/v3`, a job's or an upload's id."""

    kind: NeededBy
    tenant_id: str
    who: str


class RunPhase(StrEnum):
    MARKING = "marking"
    SWEEPING = "sweeping"
    DONE = "done"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Run:
    """One collection. `until` is its lease: later, another collector may abandon it."""

    run_id: str
    phase: RunPhase
    started_at: datetime
    until: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """What was done or refused, by whom, and why. Written in the transaction that did it."""

    at: datetime
    actor: str
    tenant_id: str | None
    action: str
    subject: str
    detail: str = ""
