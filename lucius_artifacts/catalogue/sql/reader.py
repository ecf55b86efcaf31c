"""The verbs that only read."""

from collections import defaultdict
from datetime import datetime
from typing import Any, TypeVar

from lucius_artifacts.catalogue.sql import statements as sql
from lucius_artifacts.catalogue.sql import tables
from lucius_artifacts.catalogue.sql.session import Session
from lucius_artifacts.catalogue.sql.tables import EntryRow, Table, VersionRow
from lucius_artifacts.model import (
    AuditRecord,
    Blob,
    Claim,
    Doomed,
    Hold,
    NeededBy,
    Reference,
    Run,
    Upload,
    Version,
)
from lucius_artifacts.ports.catalogue import ArtifactSummary, BlobStats, Stats
from lucius_artifacts.states import BlobState

Row = TypeVar("Row")
_ABOVE_ALL = 2**62  # any number of a version


class SqlReader:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def upload(self, upload_id: str) -> Upload | None:
        return await self._one(tables.UPLOADS, sql.UPLOAD, upload_id=upload_id)

    async def open_uploads(self, tenant_id: str) -> int:
        return await self._count(sql.OPEN_UPLOADS, tenant_id=tenant_id)

    async def expired_uploads(self, now: datetime, limit: int) -> list[Upload]:
        return await self._all(tables.UPLOADS, sql.EXPIRED_UPLOADS, now=now, limit=limit)

    async def blob(self, digest: str) -> Blob | None:
        return await self._one(tables.BLOBS, sql.BLOB, digest=digest)

    async def idle_blobs(
        self, now: datetime, needed_before: datetime, after: str | None, limit: int
    ) -> list[Blob]:
        page = {"after": after or "", "limit": limit}
        times = {"now": now, "needed_before": needed_before}
        return await self._all(tables.BLOBS, sql.IDLE_BLOBS, **page, **times)

    async def blobs_in(self, state: BlobState, after: str | None, limit: int) -> list[Blob]:
        page = {"after": after or "", "limit": limit}
        return await self._all(tables.BLOBS, sql.BLOBS_IN, state=state, **page)

    async def references(self, digest: str, now: datetime, limit: int = 10) -> list[Reference]:
        rows = await self._rows(sql.REFERENCES, digest=digest, now=now, limit=limit)
        return [Reference(NeededBy(kind), tenant_id, who) for kind, tenant_id, who in rows]

    async def claim(self, tenant_id: str, digest: str) -> Claim | None:
        return await self._one(tables.CLAIMS, sql.CLAIM, tenant_id=tenant_id, digest=digest)

    async def claims(self, digest: str) -> list[Claim]:
        return await self._all(tables.CLAIMS, sql.CLAIMS_OF, digest=digest)

    async def idle_claims(
        self, now: datetime, claimed_before: datetime, after: Claim | None, limit: int
    ) -> list[Claim]:
        begin = ("", "") if after is None else (after.tenant_id, after.digest)
        page = {"after_tenant": begin[0], "after": begin[1], "limit": limit}
        times = {"now": now, "needed_before": claimed_before}
        return await self._all(tables.CLAIMS, sql.IDLE_CLAIMS, **page, **times)

    async def is_referenced(self, tenant_id: str, digest: str, now: datetime) -> bool:
        values = {"tenant_id": tenant_id, "digest": digest, "now": now}
        ((found,),) = await self._rows(sql.IS_REFERENCED, **values)
        return bool(found)

    async def version(self, tenant_id: str, name: str, number: int) -> Version | None:
        values = {"tenant_id": tenant_id, "name": name, "number": number}
        return await self._one_version(sql.VERSION, **values)

    async def latest_number(self, tenant_id: str, name: str) -> int:
        rows = await self._rows(sql.LATEST_NUMBER, tenant_id=tenant_id, name=name)
        return int(rows[0][0]) if rows else 0

    async def versions(
        self, tenant_id: str, name: str, before: int | None, limit: int
    ) -> list[Version]:
        page = {"before": _ABOVE_ALL if before is None else before, "limit": limit}
        values = {"tenant_id": tenant_id, "name": name, **page}
        rows = await self._all(tables.VERSIONS, sql.NEWEST_VERSIONS, **values)
        return await self._with_entries(rows)

    async def newest_of_job(self, tenant_id: str, name: str, job_id: str) -> Version | None:
        values = {"tenant_id": tenant_id, "name": name, "job_id": job_id}
        return await self._one_version(sql.NEWEST_OF_JOB, **values)

    async def artifacts(
        self, tenant_id: str, after: str | None, limit: int
    ) -> list[ArtifactSummary]:
        page = {"after": after or "", "limit": limit}
        rows = await self._rows(sql.ARTIFACTS, tenant_id=tenant_id, **page)
        return [
            ArtifactSummary(name, latest, published, self._newest(times))
            for name, latest, published, *times in rows
        ]

    async def hold(self, job_id: str, digest: str) -> Hold | None:
        return await self._one(tables.HOLDS, sql.HOLD, job_id=job_id, digest=digest)

    async def held_jobs(self, after: str | None, limit: int) -> list[Hold]:
        return await self._all(tables.HOLDS, sql.HELD_JOBS, after=after or "", limit=limit)

    async def doomed(self, now: datetime, limit: int) -> list[Doomed]:
        return await self._all(tables.DOOMED, sql.DUE_DOOMED, now=now, limit=limit)

    async def run(self, run_id: str) -> Run | None:
        return await self._one(tables.RUNS, sql.RUN, run_id=run_id)

    async def current_run(self) -> Run | None:
        return await self._one(tables.RUNS, sql.CURRENT_RUN)

    async def audit(self, subject: str, limit: int) -> list[AuditRecord]:
        return await self._all(tables.AUDIT, sql.RECORDS, subject=subject, limit=limit)

    async def stats(self) -> Stats:
        rows = await self._rows(sql.BLOB_STATS)
        found = {state: (count, int(length)) for state, count, length in rows}
        states = [state for state in BlobState if state is not BlobState.DELETED]
        blobs = tuple(BlobStats(state, *found.get(state, (0, 0))) for state in states)
        open_uploads = await self._count(sql.ALL_OPEN_UPLOADS)
        return Stats(blobs, open_uploads, await self._count(sql.COUNT_DOOMED))

    async def _one_version(self, statement: str, **values: Any) -> Version | None:
        rows = await self._all(tables.VERSIONS, statement, **values)
        versions = await self._with_entries(rows)
        return versions[0] if versions else None

    async def _with_entries(self, rows: list[VersionRow]) -> list[Version]:
        """Of one artifact, from the highest number to the lowest, none between them left out."""
        if not rows:
            return []
        numbers = {"lowest": rows[-1].number, "highest": rows[0].number}
        name = {"tenant_id": rows[0].tenant_id, "name": rows[0].name}
        entries: dict[int, list[EntryRow]] = defaultdict(list)
        for entry in await self._all(tables.ENTRIES, sql.ENTRIES_OF, **name, **numbers):
            entries[entry.number].append(entry)
        return [tables.version_of(row, entries[row.number]) for row in rows]

    def _newest(self, times: list[Any]) -> datetime:
        return max(self._session.moment(time) for time in times if time is not None)

    async def _one(self, table: Table[Row], statement: str, **values: Any) -> Row | None:
        rows = await self._all(table, statement, **values)
        return rows[0] if rows else None

    async def _all(self, table: Table[Row], statement: str, **values: Any) -> list[Row]:
        moment = self._session.moment
        return [table.row(row, moment) for row in await self._rows(statement, **values)]

    async def _count(self, statement: str, **values: Any) -> int:
        ((count,),) = await self._rows(statement, **values)
        return int(count)

    async def _rows(self, statement: str, **values: Any) -> list[Any]:
        return await self._session.rows(statement, values)
