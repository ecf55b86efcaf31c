"""Versions of named artifacts: published once, never changed, tombstoned and restored."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TypeGuard

from lucius_artifacts.decisions import versions as decide
from lucius_artifacts.decisions.blobs import needed
from lucius_artifacts.decisions.versions import Succession, named
from lucius_artifacts.errors import ArtifactsError, Invalid, NotFound, Unavailable
from lucius_artifacts.events import EventType, version_event
from lucius_artifacts.model import AuditRecord, Entry, Producer, Version
from lucius_artifacts.names import checked_digest, checked_name, checked_path
from lucius_artifacts.owning import own_content
from lucius_artifacts.ports.catalogue import Catalogue, Reader, Transaction
from lucius_artifacts.ports.policy import Allow, Policy, Quarantine
from lucius_artifacts.states import VersionState
from lucius_artifacts.world import Limits, World

_MEDIA_TYPE_LIMIT = 255
SUPERSEDED = "superseded by a later attempt of the same job"


@dataclass(frozen=True, slots=True)
class NewEntry:
    """A file of the version to be: content that the tenant has uploaded."""

    path: str
    digest: str
    media_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Author:
    """Who publishes, for which tenant; `producer` when it is the last step of a job."""

    tenant_id: str
    actor: str
    producer: Producer | None = None


class Publishing:
    def __init__(self, catalogue: Catalogue, policy: Policy, world: World, limits: Limits) -> None:
        self._catalogue = catalogue
        self._policy = policy
        self._world = world
        self._limits = limits

    async def publish(self, author: Author, name: str, entries: Sequence[NewEntry]) -> Version:
        """The next version, PUBLISHED, or a DRAFT that the policy keeps in quarantine.

        Content that the newest version has already makes no new one, so that a request whose
        answer was lost can be repeated. Runs of one job are told apart by their fences.
        """
        now = self._world.clock()
        draft = self._draft(author, checked_name(name), entries, now)
        sized = await self._catalogue.read(lambda rows: _sized(rows, draft))
        verdict = await self._judge(sized)

        async def publish(rows: Transaction) -> Version:
            version = await _sized(rows, draft)
            before = await _before(rows, version)
            if _is_again(before, version):
                return await self._again(rows, before, version, verdict)
            if before is not None and version.producer is not None:
                await self._supersede(rows, before, version, now)
            number = await rows.latest_number(author.tenant_id, name) + 1
            return await self._published(rows, replace(version, number=number), verdict, now)

        return await self._catalogue.change(publish)

    async def publish_draft(self, tenant_id: str, actor: str, name: str, number: int) -> Version:
        """Ask the policy again about a version in quarantine."""
        verdict = await self._judge(await self.version(tenant_id, name, number))
        now = self._world.clock()

        async def publish(rows: Transaction) -> Version:
            version = await _found(rows, tenant_id, name, number)
            return await self._published(rows, version, verdict, now, actor)

        return await self._catalogue.change(publish)

    async def tombstone(
        self,
        author: Author,
        name: str,
        number: int,
        *,
        authorized: bool,
        retention: timedelta | None,
        reason: str,
    ) -> Version:
        """Nobody new can read it from now on; it can be restored for as long as `retention`."""
        self._check_retention(retention)
        now = self._world.clock()

        async def tombstone(rows: Transaction) -> Version:
            version = await _found(rows, author.tenant_id, name, number)
            version = decide.tombstone_version(version, authorized, retention, reason, now)
            await rows.put_version(version)
            await _tell(rows, EventType.VERSION_TOMBSTONED, version, author.actor, now)
            return version

        return await self._catalogue.change(tombstone)

    async def restore(self, author: Author, name: str, number: int) -> Version:
        verdict = await self._judge(await self.version(author.tenant_id, name, number))
        now = self._world.clock()

        async def restore(rows: Transaction) -> Version:
            version = await _found(rows, author.tenant_id, name, number)
            missing = await _missing(rows, version)
            version = decide.restore_version(version, missing, verdict, now)
            await _need_blobs(rows, version, now)
            await rows.put_version(version)
            await _tell(rows, EventType.VERSION_RESTORED, version, author.actor, now)
            return version

        return await self._catalogue.change(restore)

    async def version(self, tenant_id: str, name: str, number: int) -> Version:
        return await self._catalogue.read(lambda rows: _found(rows, tenant_id, name, number))

    def _draft(
        self, author: Author, name: str, entries: Sequence[NewEntry], now: datetime
    ) -> Version:
        return Version(
            author.tenant_id,
            name,
            0,
            VersionState.DRAFT,
            self._checked(entries),
            now,
            author.actor,
            author.producer,
            retained_until=now + self._limits.draft_retention,
        )

    def _checked(self, entries: Sequence[NewEntry]) -> tuple[Entry, ...]:
        if not 1 <= len(entries) <= self._limits.max_entries:
            raise Invalid("entries", f"must be from 1 to {self._limits.max_entries}")
        found = (_entry(entry, f"entries/{place}") for place, entry in enumerate(entries))
        checked = sorted(found, key=lambda entry: entry.path)
        for one, other in pairwise(checked):
            if one.path == other.path:
                raise Invalid("entries", f"name the path {one.path!r} twice")
        return tuple(checked)

    def _check_retention(self, retention: timedelta | None) -> None:
        if retention is not None and not timedelta(0) <= retention <= self._limits.max_retention:
            most = self._limits.max_retention.days
            raise Invalid("retention", f"must be from 0 to {most} days")

    async def _judge(self, version: Version) -> Allow | Quarantine:
        try:
            return await self._policy.judge(version)
        except ArtifactsError:
            raise
        except Exception as error:
            raise Unavailable(f"the policy cannot be asked: {type(error).__name__}") from error

    async def _published(
        self,
        rows: Transaction,
        draft: Version,
        verdict: Allow | Quarantine,
        now: datetime,
        actor: str | None = None,
    ) -> Version:
        version = decide.publish_version(draft, await _missing(rows, draft), verdict, now)
        await _need_blobs(rows, version, now)
        await rows.put_version(version)
        quarantined = version.state is VersionState.DRAFT
        kind = EventType.VERSION_QUARANTINED if quarantined else EventType.VERSION_PUBLISHED
        await _tell(rows, kind, version, actor or version.created_by, now)
        return version

    async def _again(
        self, rows: Transaction, before: Version, version: Version, verdict: Allow | Quarantine
    ) -> Version:
        """The version that is there, with the fence of the run that brings it again."""
        again = replace(before, producer=version.producer or before.producer)
        if before.state is VersionState.DRAFT:
            return await self._published(rows, again, verdict, version.created_at)
        if again != before:
            await rows.put_version(again)
        return again

    async def _supersede(
        self, rows: Transaction, before: Version, version: Version, now: datetime
    ) -> None:
        if before.state is not VersionState.PUBLISHED:
            return
        retention = self._limits.superseded_retention
        gone = decide.tombstone_version(before, True, retention, SUPERSEDED, now)
        await rows.put_version(gone)
        await _tell(rows, EventType.VERSION_TOMBSTONED, gone, version.created_by, now)


def _entry(entry: NewEntry, field: str) -> Entry:
    media_type = entry.media_type
    if not 0 < len(media_type) <= _MEDIA_TYPE_LIMIT or not media_type.isprintable():
        raise Invalid(
            f"{field}/media_type", f"must be up to {_MEDIA_TYPE_LIMIT} printable characters"
        )
    path = checked_path(entry.path, f"{field}/path")
    return Entry(path, checked_digest(entry.digest, f"{field}/digest"), 0, media_type)


async def _sized(rows: Reader, version: Version) -> Version:
    """With the lengths of its blobs. One that the tenant has no claim on does not exist for it."""
    entries = []
    for entry in version.entries:
        own = await own_content(rows, version.tenant_id, entry.digest)
        if own is None:
            raise NotFound(f"blob {entry.digest}: upload it before it is published")
        entries.append(replace(entry, length=own.blob.length))
    return replace(version, entries=tuple(entries))


async def _before(rows: Transaction, version: Version) -> Version | None:
    """What a new version is compared with: the job's own newest, or the newest at all."""
    if version.producer is not None:
        job_id = version.producer.job_id
        return await rows.newest_of_job(version.tenant_id, version.name, job_id)
    newest = await rows.versions(version.tenant_id, version.name, None, 1)
    return newest[0] if newest else None


def _is_again(before: Version | None, version: Version) -> TypeGuard[Version]:
    """Whether nothing but its fence would be new."""
    if version.producer is not None:
        return decide.succession(before, version) is Succession.AGAIN
    if before is None or before.state is VersionState.TOMBSTONED:
        return False
    return before.entries == version.entries


async def _found(rows: Reader, tenant_id: str, name: str, number: int) -> Version:
    version = await rows.version(tenant_id, name, number)
    if version is None:
        raise NotFound(f"version {number} of artifact {name}")
    return version


async def _missing(rows: Reader, version: Version) -> list[str]:
    tenant_id, digests = version.tenant_id, version.digests
    return [each for each in digests if await own_content(rows, tenant_id, each) is None]


async def _need_blobs(rows: Transaction, version: Version, now: datetime) -> None:
    for digest in version.digests:
        blob = await rows.blob(digest)
        if blob is not None:
            await rows.put_blob(needed(blob, now))


async def _tell(
    rows: Transaction, kind: EventType, version: Version, actor: str, now: datetime
) -> None:
    subject, detail = f"{version.tenant_id}/{named(version)}", version.reason or ""
    await rows.record(AuditRecord(now, actor, version.tenant_id, kind, subject, detail))
    await rows.emit(version_event(kind, version, now))
