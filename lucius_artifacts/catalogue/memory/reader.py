"""The verbs that only read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice
from operator import attrgetter

from lucius_artifacts.catalogue.memory.rows import Rows
from lucius_artifacts.model import (
    AuditRecord,
    Blob,
    Claim,
    Doomed,
    Hold,
    NeededBy,
    Reference,
    Run,
    RunPhase,
    Upload,
    Version,
)
from lucius_artifacts.ports.catalogue import ArtifactSummary, BlobStats, Stats
from lucius_artifacts.states import BlobState, VersionState

CURRENT = frozenset({RunPhase.MARKING, RunPhase.SWEEPING})


@dataclass(frozen=True, slots=True)
class MemoryReader:
    _rows: Rows

    async def upload(self, upload_id: str) -> Upload | None:
        return self._rows.uploads.get(upload_id)

    async def open_uploads(self, tenant_id: str) -> int:
        return sum(upload.tenant_id == tenant_id for upload in self._open())

    async def expired_uploads(self, now: datetime, limit: int) -> list[Upload]:
        expired = [upload for upload in self._open() if upload.expires_at <= now]
        return sorted(expired, key=attrgetter("expires_at", "upload_id"))[:limit]

    async def blob(self, digest: str) -> Blob | None:
        object_key = self._rows.object_keys.get(digest)
        return self._rows.blobs[object_key] if object_key is not None else None

    async def idle_blobs(
        self, now: datetime, needed_before: datetime, after: str | None, limit: int
    ) -> list[Blob]:
        needed = self._needed(now)
        live = self._blobs_after(after, [BlobState.LIVE])
        idle = (
            blob for blob in live if blob.needed_at < needed_before and blob.digest not in needed
        )
        return list(islice(idle, limit))

    async def blobs_in(self, state: BlobState, after: str | None, limit: int) -> list[Blob]:
        return self._blobs_after(after, [state])[:limit]

    async def references(self, digest: str, now: datetime, limit: int = 10) -> list[Reference]:
        references = {
            reference for found, reference in self._all_references(now) if found == digest
        }
        return sorted(references, key=attrgetter("kind", "who", "tenant_id"))[:limit]

    async def claim(self, tenant_id: str, digest: str) -> Claim | None:
        return self._rows.claims.get((tenant_id, digest))

    async def claims(self, digest: str) -> list[Claim]:
        found = [claim for claim in self._rows.claims.values() if claim.digest == digest]
        return sorted(found, key=attrgetter("tenant_id"))

    async def idle_claims(
        self, now: datetime, claimed_before: datetime, after: Claim | None, limit: int
    ) -> list[Claim]:
        begin = ("", "") if after is None else (after.tenant_id, after.digest)
        needed = {(each.tenant_id, digest) for digest, each in self._all_references(now)}
        idle = [
            claim
            for key, claim in self._rows.claims.items()
            if key > begin and claim.claimed_at < claimed_before and key not in needed
        ]
        return sorted(idle, key=attrgetter("tenant_id", "digest"))[:limit]

    async def is_referenced(self, tenant_id: str, digest: str, now: datetime) -> bool:
        return any(
            (found, each.tenant_id) == (digest, tenant_id)
            for found, each in self._all_references(now)
        )

    async def version(self, tenant_id: str, name: str, number: int) -> Version | None:
        return self._rows.versions.get((tenant_id, name, number))

    async def latest_number(self, tenant_id: str, name: str) -> int:
        return max((version.number for version in self._newest_first(tenant_id, name)), default=0)

    async def versions(
        self, tenant_id: str, name: str, before: int | None, limit: int
    ) -> list[Version]:
        versions = self._newest_first(tenant_id, name)
        return [each for each in versions if before is None or each.number < before][:limit]

    async def newest_of_job(self, tenant_id: str, name: str, job_id: str) -> Version | None:
        versions = self._newest_first(tenant_id, name)
        return next((each for each in versions if _is_of_job(each, job_id)), None)

    async def artifacts(
        self, tenant_id: str, after: str | None, limit: int
    ) -> list[ArtifactSummary]:
        versions = [
            version
            for version in self._rows.versions.values()
            if version.tenant_id == tenant_id and version.name > (after or "")
        ]
        by_name = groupby(sorted(versions, key=attrgetter("name")), key=attrgetter("name"))
        return [_summary(name, list(group)) for name, group in islice(by_name, limit)]

    async def hold(self, job_id: str, digest: str) -> Hold | None:
        return self._rows.holds.get((job_id, digest))

    async def held_jobs(self, after: str | None, limit: int) -> list[Hold]:
        holds = [hold for hold in self._rows.holds.values() if hold.job_id > (after or "")]
        holds.sort(key=attrgetter("job_id", "held_at", "digest"))
        by_job = groupby(holds, key=attrgetter("job_id"))
        return [next(group) for _, group in islice(by_job, limit)]

    async def doomed(self, now: datetime, limit: int) -> list[Doomed]:
        due = [doomed for doomed in self._rows.doomed.values() if doomed.delete_after <= now]
        return sorted(due, key=attrgetter("delete_after", "object_key"))[:limit]

    async def run(self, run_id: str) -> Run | None:
        return self._rows.runs.get(run_id)

    async def current_run(self) -> Run | None:
        return next((run for run in self._rows.runs.values() if run.phase in CURRENT), None)

    async def audit(self, subject: str, limit: int) -> list[AuditRecord]:
        about = [record for record in self._rows.audit.values() if record.subject == subject]
        return sorted(about, key=attrgetter("at"))[::-1][:limit]

    async def stats(self) -> Stats:
        states = [state for state in BlobState if state is not BlobState.DELETED]
        lengths = {
            state: [blob.length for blob in self._blobs_after(None, [state])] for state in states
        }
        blobs = tuple(BlobStats(state, len(found), sum(found)) for state, found in lengths.items())
        return Stats(blobs, sum(1 for _ in self._open()), len(self._rows.doomed))

    def _open(self) -> Iterator[Upload]:
        return (upload for upload in self._rows.uploads.values() if upload.is_open)

    def _blobs_after(self, after: str | None, states: Iterable[BlobState]) -> list[Blob]:
        found = [
            blob
            for blob in self._rows.blobs.values()
            if blob.state in states and blob.digest > (after or "")
        ]
        return sorted(found, key=attrgetter("digest", "object_key"))

    def _newest_first(self, tenant_id: str, name: str) -> list[Version]:
        found = [
            version
            for version in self._rows.versions.values()
            if version.tenant_id == tenant_id and version.name == name
        ]
        return sorted(found, key=attrgetter("number"), reverse=True)

    def _needed(self, now: datetime) -> set[str]:
        return {digest for digest, _ in self._all_references(now)}

    def _all_references(self, now: datetime) -> Iterator[tuple[str, Reference]]:
        """Each with the digest that it refers to."""
        for version in self._rows.versions.values():
            if version.retained_until is None or version.retained_until > now:
                who = f"{version.name}/v{version.number}"
                reference = Reference(NeededBy.VERSION, version.tenant_id, who)
                yield from ((entry.digest, reference) for entry in version.entries)
        for hold in self._rows.holds.values():
            yield hold.digest, Reference(NeededBy.JOB, hold.tenant_id, hold.job_id)
        for upload in self._open():
            yield upload.digest, Reference(NeededBy.UPLOAD, upload.tenant_id, upload.upload_id)


def _is_of_job(version: Version, job_id: str) -> bool:
    return version.producer is not None and version.producer.job_id == job_id


def _summary(name: str, versions: list[Version]) -> ArtifactSummary:
    published = [each.number for each in versions if each.state is VersionState.PUBLISHED]
    times = [
        at
        for each in versions
        for at in (each.created_at, each.published_at, each.tombstoned_at)
        if at is not None
    ]
    latest = max(each.number for each in versions)
    return ArtifactSummary(name, latest, max(published, default=None), max(times))
