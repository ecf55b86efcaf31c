"""The verbs that write."""

from datetime import datetime
from typing import Any

from lucius_artifacts.catalogue.sql import statements as sql
from lucius_artifacts.catalogue.sql import tables
from lucius_artifacts.catalogue.sql.reader import SqlReader
from lucius_artifacts.model import AuditRecord, Blob, Claim, Doomed, Hold, Run, Upload, Version
from lucius_artifacts.ports.catalogue import MarkedPage
from lucius_outbox.message import Message

_PUT_UPLOAD = sql.put(tables.UPLOADS)
_PUT_BLOB = sql.put(tables.BLOBS)
_PUT_CLAIM = sql.put(tables.CLAIMS)
_NEW_VERSION = sql.insert_new(tables.VERSIONS)
_UPDATE_VERSION = sql.update(tables.VERSIONS)
_PUT_HOLD = sql.insert_new(tables.HOLDS)
_PUT_DOOMED = sql.put(tables.DOOMED)
_PUT_RUN = sql.put(tables.RUNS)
_RECORD = sql.insert(tables.AUDIT)


class SqlTransaction(SqlReader):
    async def put_upload(self, upload: Upload) -> None:
        await self._write(_PUT_UPLOAD, tables.UPLOADS.values(upload))

    async def put_blob(self, blob: Blob) -> None:
        await self._write(_PUT_BLOB, tables.BLOBS.values(blob))

    async def put_claim(self, claim: Claim) -> None:
        await self._write(_PUT_CLAIM, tables.CLAIMS.values(claim))

    async def drop_claim(self, tenant_id: str, digest: str) -> None:
        await self._write(sql.DROP_CLAIM, {"tenant_id": tenant_id, "digest": digest})

    async def drop_claims(self, digest: str) -> None:
        await self._write(sql.DROP_CLAIMS, {"digest": digest})

    async def put_version(self, version: Version) -> None:
        values = tables.VERSIONS.values(tables.version_row(version))
        if await self._write(_NEW_VERSION, values):
            await self._session.insert_all(tables.ENTRIES, tables.entry_rows(version))
        else:
            await self._write(_UPDATE_VERSION, values)

    async def put_hold(self, hold: Hold) -> None:
        await self._write(_PUT_HOLD, tables.HOLDS.values(hold))

    async def drop_holds(self, job_id: str) -> None:
        await self._write(sql.DROP_HOLDS, {"job_id": job_id})

    async def put_doomed(self, doomed: Doomed) -> None:
        await self._write(_PUT_DOOMED, tables.DOOMED.values(doomed))

    async def drop_doomed(self, object_key: str) -> None:
        await self._write(sql.DROP_DOOMED, {"object_key": object_key})

    async def put_run(self, run: Run) -> None:
        await self._write(_PUT_RUN, tables.RUNS.values(run))

    async def mark(self, run_id: str, now: datetime, after: str | None, limit: int) -> MarkedPage:
        page = {"after": after or "", "limit": limit}
        ((count, last),) = await self._rows(sql.PAGE, **page)
        if not count:
            return MarkedPage(0, None)
        blobs = {"after": after or "", "last": last}
        marked = await self._write(sql.MARK, {"run_id": run_id, "now": now, **blobs})
        return MarkedPage(marked, last if count == limit else None)

    async def record(self, record: AuditRecord) -> None:
        await self._write(_RECORD, tables.AUDIT.values(record))

    async def emit(self, message: Message) -> None:
        await self._session.emit(message)

    async def _write(self, statement: str, values: dict[str, Any]) -> int:
        return await self._session.write(statement, values)
