"""What is said of artifacts in requests and in answers."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from lucius_artifacts.states import UploadState, VersionState
from lucius_contract.documents import Document, Name, Whole
from lucius_contract.envelope import TENANT_ID_LIMIT, Visible
from lucius_orchestrator.api.shapes import Shape

_LONGEST_RETENTION = 10**9
_LARGEST = 2**31 - 1
_LONGEST_TOKEN = 512
_MANY = 2**63 - 1

TenantId = Annotated[str, Field(min_length=1, max_length=TENANT_ID_LIMIT), Visible]
Digest = Annotated[str, Field(max_length=128)]
Counted = Annotated[int, Field(strict=True, ge=0, le=_LARGEST)]


class NewUpload(Document):
    """Content that is to be brought."""

    tenant_id: TenantId
    """Whose content it is."""
    digest: Digest
    """SHA-256 of the whole content, in lower-case hex."""
    length: Annotated[int, Field(strict=True, ge=0, le=_MANY)]
    """Bytes."""
    part_size: Annotated[int, Field(strict=True, ge=1, le=_MANY)] | None = None
    """Bytes of every part but the last; without one the server chooses."""


class PartNumbers(Document):
    """Which parts to sign."""

    parts: list[Annotated[int, Field(strict=True)]]
    """Numbers from 1; at most 1000. None, for content of length 0."""


class Proof(Document):
    """That the whole content is at hand."""

    proof: Annotated[str, Field(max_length=128)]
    """HMAC-SHA256 of the content, keyed with the text of the challenge, in lower-case hex."""


class ProducerRef(Document):
    """The run of a job that publishes."""

    job_id: Name = Field(alias="jobId")
    step_id: Name = Field(alias="stepId")
    attempt_no: Counted
    epoch: Counted
    token: Annotated[str, Field(max_length=_LONGEST_TOKEN, repr=False)]
    """The `artifact_token` of the run's directive."""


class EntryRef(Document):
    """A file of a version: content that the tenant has uploaded."""

    path: Annotated[str, Field(max_length=2048)]
    """Relative, with slashes."""
    digest: Digest
    media_type: str = "application/octet-stream"


class NewVersion(Document):
    """A version that is to be published."""

    tenant_id: TenantId
    entries: list[EntryRef]
    """At most 1000."""
    producer: ProducerRef | None = None
    """When a step of a job publishes: of two runs the one with the higher fence counts. FORBIDDEN
    without the token of exactly that attempt."""


class OfTenant(Document):
    tenant_id: TenantId


class Tombstoning(OfTenant):
    """Nobody new may read the version."""

    retention_seconds: Annotated[int, Field(strict=True, ge=0, le=_LONGEST_RETENTION)]
    """How long it can be restored."""
    reason: Annotated[str, Field(max_length=1000), Visible] | None = None


class NewRun(Document):
    """A collection."""

    dry_run: bool = False
    """Only say what the next collection would do, and why."""


class UploadLinks(Shape):
    self: str
    sign: str
    dedupe: str
    complete: str
    abort: str


class UploadView(Shape):
    """A session in which one content is brought."""

    upload_id: str
    tenant_id: str
    state: UploadState
    digest: str
    length: int
    part_size: int
    part_count: int
    challenge: str
    """The key of the proof of possession."""
    created_at: datetime
    expires_at: datetime
    reason: str | None
    """Why it was aborted."""
    uri: str | None
    """The content, once it is committed."""
    links: UploadLinks


PartRange = Annotated[list[int], Field(min_length=2, max_length=2)]


class UploadProgress(UploadView):
    received: list[PartRange]
    """Ranges of the numbers of parts that are there, the last one included."""


class SignedPart(Shape):
    """How to bring one part: the url is its own credential."""

    number: int
    method: str
    url: str
    headers: dict[str, str]
    length: int
    expires_at: datetime


class SignedParts(Shape):
    parts: list[SignedPart]


class ContentView(Shape):
    """How to read content: the url is its own credential."""

    uri: str
    digest: str
    length: int
    media_type: str
    file_name: str
    method: str
    url: str
    headers: dict[str, str]
    expires_at: datetime


class ArtifactView(Shape):
    name: str
    latest: int
    """The highest number of a version."""
    published: int | None
    """The highest number of a published one."""
    changed_at: datetime


class ArtifactPage(Shape):
    artifacts: list[ArtifactView]
    next_cursor: str | None


class EntryView(Shape):
    path: str
    digest: str
    length: int
    media_type: str
    uri: str


class ProducerView(Shape):
    job_id: str = Field(alias="jobId")
    step_id: str = Field(alias="stepId")
    attempt_no: int
    epoch: int


class VersionView(Shape):
    tenant_id: str
    name: str
    version: int
    state: VersionState
    entries: list[EntryView]
    created_at: datetime
    created_by: str
    published_at: datetime | None
    tombstoned_at: datetime | None
    retained_until: datetime | None
    """Until then a tombstoned version can be restored."""
    reason: str | None
    """Why it was tombstoned, or is in quarantine."""
    producer: ProducerView | None


class VersionPage(Shape):
    versions: list[VersionView]
    next_cursor: str | None


class ReportView(Shape):
    """How many of each."""

    run_id: str
    expired_uploads: Whole
    released_jobs: Whole
    tombstoned: Whole
    eligible: Whole
    marked: Whole
    revived: Whole
    deleted: Whole
    deleted_bytes: Whole
    objects_gone: Whole
    workspaces_gone: Whole


class CandidateView(Shape):
    subject: str
    bytes: Whole
    state: str
    """Of a blob; a workspace is `kept`."""
    goes: bool
    """Whether the next collection takes it a step further."""
    why: str


class RunView(Shape):
    report: ReportView | None
    """What a collection did."""
    candidates: list[CandidateView] | None
    """What the next one would do."""
    more: bool
    """There are further candidates."""
