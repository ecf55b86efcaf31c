"""Idempotency entries: which job a key, a content or a redrive of a tenant stands for."""

from contextlib import suppress
from typing import NamedTuple

from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.store import (
    Delete,
    EntityExists,
    EtagMismatch,
    Insert,
    NotFound,
    Tables,
)
from lucius_orchestrator.ports.ledger import Reservation

TABLE = "idempotency"
_ROW = "ENTRY"


class Entry(NamedTuple):
    """It promises nothing until its job was written."""

    partition: str
    etag: str
    job_id: str
    content_hash: str


class Entries:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def get(self, tenant_id: str, entry: str) -> Entry | None:
        partition = keys.key(tenant_id, entry)
        row = await self._tables.get(TABLE, partition, _ROW)
        if row is None:
            return None
        return Entry(partition, row.etag, row.values["job_id"], row.values["content_hash"])

    async def insert(self, reservation: Reservation) -> bool:
        """False: there is one already."""
        values = {"job_id": reservation.job_id, "content_hash": reservation.content_hash}
        partition = keys.key(reservation.tenant_id, reservation.entry)
        try:
            await self._tables.batch(TABLE, partition, [Insert(_ROW, values)])
        except EntityExists:
            return False
        return True

    async def drop(self, entry: Entry) -> None:
        """As it was read; if it was written since, it is another's."""
        with suppress(NotFound, EtagMismatch):
            await self._tables.batch(TABLE, entry.partition, [Delete(_ROW, entry.etag)])

    async def release(self, tenant_id: str, entry: str, job_id: str) -> None:
        """Let the entry stand for this job no longer."""
        found = await self.get(tenant_id, entry)
        if found is not None and found.job_id == job_id:
            await self.drop(found)
