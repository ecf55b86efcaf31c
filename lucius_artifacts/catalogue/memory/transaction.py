"""The verbs that write."""

from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from lucius_artifacts.catalogue.memory.reader import CURRENT, MemoryReader
from lucius_artifacts.catalogue.memory.rows import Journal
from lucius_artifacts.catalogue.texts import require_storable
from lucius_artifacts.model import AuditRecord, Blob, Claim, Doomed, Hold, Run, Upload, Version
from lucius_artifacts.ports.catalogue import MarkedPage
from lucius_artifacts.states import BlobState
from lucius_outbox.message import Message, checked

_NOT_DELETED = frozenset(BlobState) - {BlobState.DELETED}


@dataclass(frozen=True, slots=True)
class MemoryTransaction(MemoryReader):
    _journal: Journal

    async def put_upload(self, upload: Upload) -> None:
        _require_storable(upload)
        self._journal.put(self._rows.uploads, upload.upload_id, upload)

    async def put_blob(self, blob: Blob) -> None:
        _require_storable(blob)
        holder = self._rows.object_keys.get(blob.digest)
        if blob.state is not BlobState.DELETED:
            if holder not in {None, blob.object_key}:
                raise self._journal.failed(f"another blob has the digest {blob.digest}")
            self._journal.put(self._rows.object_keys, blob.digest, blob.object_key)
        elif holder == blob.object_key:
            self._journal.drop(self._rows.object_keys, blob.digest)
        self._journal.put(self._rows.blobs, blob.object_key, blob)

    async def put_claim(self, claim: Claim) -> None:
        _require_storable(claim)
        self._journal.put(self._rows.claims, (claim.tenant_id, claim.digest), claim)

    async def drop_claim(self, tenant_id: str, digest: str) -> None:
        self._journal.drop(self._rows.claims, (tenant_id, digest))

    async def drop_claims(self, digest: str) -> None:
        for key in [key for key in self._rows.claims if key[1] == digest]:
            self._journal.drop(self._rows.claims, key)

    async def put_version(self, version: Version) -> None:
        producer = version.producer
        for row in (version, producer, producer and producer.fence, *version.entries):
            _require_storable(row)
        key = (version.tenant_id, version.name, version.number)
        before = self._rows.versions.get(key)
        if before is not None:
            version = replace(version, entries=before.entries)
        self._journal.put(self._rows.versions, key, version)

    async def put_hold(self, hold: Hold) -> None:
        _require_storable(hold)
        key = (hold.job_id, hold.digest)
        if key not in self._rows.holds:
            self._journal.put(self._rows.holds, key, hold)

    async def drop_holds(self, job_id: str) -> None:
        for key in [key for key in self._rows.holds if key[0] == job_id]:
            self._journal.drop(self._rows.holds, key)

    async def put_doomed(self, doomed: Doomed) -> None:
        _require_storable(doomed)
        self._journal.put(self._rows.doomed, doomed.object_key, doomed)

    async def drop_doomed(self, object_key: str) -> None:
        self._journal.drop(self._rows.doomed, object_key)

    async def put_run(self, run: Run) -> None:
        _require_storable(run)
        current = await self.current_run()
        if run.phase in CURRENT and current is not None and current.run_id != run.run_id:
            raise self._journal.failed(f"the run {current.run_id} is current")
        self._journal.put(self._rows.runs, run.run_id, run)

    async def mark(self, run_id: str, now: datetime, after: str | None, limit: int) -> MarkedPage:
        page, needed = self._blobs_after(after, _NOT_DELETED)[:limit], self._needed(now)
        found = [blob for blob in page if blob.digest in needed]
        for blob in found:
            await self.put_blob(replace(blob, marked_by=run_id))
        return MarkedPage(len(found), page[-1].digest if len(page) == limit else None)

    async def record(self, record: AuditRecord) -> None:
        _require_storable(record)
        self._journal.put(self._rows.audit, len(self._rows.audit), record)

    async def emit(self, message: Message) -> None:
        checked(message)
        key: Hashable = len(self._rows.messages)
        if message.dedupe_key is not None:
            key = (message.namespace, message.topic, message.dedupe_key)
        if key not in self._rows.messages:
            self._journal.put(self._rows.messages, key, message)


def _require_storable(row: Any) -> None:
    if row is not None:
        require_storable((field.name, getattr(row, field.name)) for field in fields(row))
