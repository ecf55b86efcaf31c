"""The catalogue: every row about uploads, versions and blobs, changed in transactions.

Use cases are written against rows and one promise: transactions are serializable, whoever runs
them. So each is correct if it is correct alone, and a catalogue in memory behind one lock behaves
as one in PostgreSQL with many writers.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from lucius_artifacts.model import (
    AuditRecord,
    Blob,
    Claim,
    Doomed,
    Hold,
    Reference,
    Run,
    Upload,
    Version,
)
from lucius_artifacts.states import BlobState
from lucius_outbox.message import Message

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArtifactSummary:
    """`published` is the newest published number, None if there is none."""

    name: str
    latest: int
    published: int | None
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class MarkedPage:
    """`after` is where the next page begins; None: all blobs were seen."""

    marked: int
    after: str | None


@dataclass(frozen=True, slots=True)
class BlobStats:
    """Of the rows in one state that are not deleted."""

    state: BlobState
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What gauges show. `blobs` has every state but DELETED, also those that no row is in. `doomed`
    are objects that wait for their deletion."""

    blobs: tuple[BlobStats, ...]
    open_uploads: int
    doomed: int


class Reader(Protocol):
    """Rows as one moment saw them. Lists are in the order of their key, begin after `after` (None:
    at the beginning) and hold `limit` at most."""

    async def upload(self, upload_id: str) -> Upload | None: ...

    async def open_uploads(self, tenant_id: str) -> int:
        """How many of a tenant have not ended."""
        ...

    async def expired_uploads(self, now: datetime, limit: int) -> list[Upload]:
        """Open ones with `expires_at` at or before now, the oldest expiry first."""
        ...

    async def blob(self, digest: str) -> Blob | None:
        """The one that is not DELETED."""
        ...

    async def idle_blobs(
        self, now: datetime, needed_before: datetime, after: str | None, limit: int
    ) -> list[Blob]:
        """LIVE ones whose `needed_at` is before that, without any reference now; by digest."""
        ...

    async def blobs_in(self, state: BlobState, after: str | None, limit: int) -> list[Blob]:
        """By digest. Of DELETED ones many may have the same, and a page may end among them."""
        ...

    async def references(self, digest: str, now: datetime, limit: int = 10) -> list[Reference]:
        """Who needs a blob: versions with an entry of this digest whose `retained_until` is None or
        after now; holds; uploads of this digest that are open, expired or not. By kind (job,
        upload, version) and who, as text."""
        ...

    async def claim(self, tenant_id: str, digest: str) -> Claim | None: ...

    async def claims(self, digest: str) -> list[Claim]:
        """Those of all tenants, by tenant."""
        ...

    async def idle_claims(
        self, now: datetime, claimed_before: datetime, after: Claim | None, limit: int
    ) -> list[Claim]:
        """Those with `claimed_at` before that, and no reference of their own tenant now; by tenant
        and digest."""
        ...

    async def is_referenced(self, tenant_id: str, digest: str, now: datetime) -> bool:
        """Whether one of `references` is the tenant's."""
        ...

    async def version(self, tenant_id: str, name: str, number: int) -> Version | None: ...

    async def latest_number(self, tenant_id: str, name: str) -> int:
        """The highest number that was ever given, 0 if none."""
        ...

    async def versions(
        self, tenant_id: str, name: str, before: int | None, limit: int
    ) -> list[Version]:
        """The highest number first, all of them below `before`."""
        ...

    async def newest_of_job(self, tenant_id: str, name: str, job_id: str) -> Version | None:
        """The version with the highest number that this job produced."""
        ...

    async def artifacts(
        self, tenant_id: str, after: str | None, limit: int
    ) -> list[ArtifactSummary]:
        """By name. `changed_at` is the newest of the times at which a version was created,
        published or tombstoned."""
        ...

    async def hold(self, job_id: str, digest: str) -> Hold | None: ...

    async def held_jobs(self, after: str | None, limit: int) -> list[Hold]:
        """One hold of each job, the oldest, by job id."""
        ...

    async def doomed(self, now: datetime, limit: int) -> list[Doomed]:
        """Those with `delete_after` at or before now, the oldest first."""
        ...

    async def run(self, run_id: str) -> Run | None: ...

    async def current_run(self) -> Run | None:
        """The one that is MARKING or SWEEPING; there is one at most."""
        ...

    async def audit(self, subject: str, limit: int) -> list[AuditRecord]:
        """The newest first."""
        ...

    async def stats(self) -> Stats: ...


class Transaction(Reader, Protocol):
    """Rows and what is written with them. `put_` inserts, or replaces the row of the same key.
    What was put is read back by the same transaction. Text that a database cannot keep (a NUL, half
    of a surrogate pair) is `Invalid`."""

    async def put_upload(self, upload: Upload) -> None: ...

    async def put_blob(self, blob: Blob) -> None:
        """Its key is its object key. At most one row of a digest is not DELETED: a second one is
        `Unavailable`."""
        ...

    async def put_claim(self, claim: Claim) -> None: ...

    async def drop_claim(self, tenant_id: str, digest: str) -> None: ...

    async def drop_claims(self, digest: str) -> None: ...

    async def put_version(self, version: Version) -> None:
        """Its entries are written with the first put and never again."""
        ...

    async def put_hold(self, hold: Hold) -> None:
        """One that is there stays as it is."""
        ...

    async def drop_holds(self, job_id: str) -> None: ...

    async def put_doomed(self, doomed: Doomed) -> None: ...

    async def drop_doomed(self, object_key: str) -> None: ...

    async def put_run(self, run: Run) -> None:
        """At most one is MARKING or SWEEPING: a second one is `Unavailable`."""
        ...

    async def mark(self, run_id: str, now: datetime, after: str | None, limit: int) -> MarkedPage:
        """Of the next `limit` blobs that are not DELETED, by digest: write the run's id on those
        that have a reference."""
        ...

    async def record(self, record: AuditRecord) -> None: ...

    async def emit(self, message: Message) -> None:
        """Enqueue in the outbox, in this transaction."""
        ...


class Catalogue(Protocol):
    """A failing driver is `Unavailable`, whatever it raised. Close it once."""

    async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one transaction, serializable against all others, and commit.

        Whatever `work` raises rolls everything back and passes through. `work` may be run more
        than once, when it met another transaction: it has no effects but through what it is given.
        A verb that was `Unavailable` fails the change, whatever `work` makes of it. Cancelled, it
        has happened or has not when the cancellation is raised.
        """
        ...

    async def read(self, work: Callable[[Reader], Awaitable[T]]) -> T:
        """Run `work` on one consistent view of what is committed. It may be run more than once."""
        ...

    async def check(self) -> None:
        """`Unavailable` unless a transaction could be begun now."""
        ...

    async def close(self) -> None: ...
