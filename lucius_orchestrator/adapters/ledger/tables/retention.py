"""Jobs that may go, and jobs that are gone.

A removal first deletes the idempotency entry, then turns the JOB row into a tombstone, which is the
moment when the job is gone: nobody loads, lists or changes it from then on, however many of its
rows are left, and who claims a directive of it finds no job and discards it. Webhooks that tell of
its end are delivered all the same: they are cut loose before. The rest follows in batches, and the
row in the index of ended jobs last, so that `ended` meets a removal that a crash cut short, and
finishes it. The tombstone stays for as long as a creator of this id could still be under way, and
is then pruned.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from lucius_contract import timeouts
from lucius_contract.states import OutboxState
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.ending import Ending
from lucius_orchestrator.adapters.ledger.tables.entries import Entries
from lucius_orchestrator.adapters.ledger.tables.indexes import ENDED, Indexes, listed
from lucius_orchestrator.adapters.ledger.tables.partition import (
    EVENT_ROWS,
    GRAVE,
    GRAVES,
    JOB,
    JOBS,
    OUTBOX_ROWS,
    STEP_ROWS,
    Head,
    JobPartitions,
    Place,
    TableVersion,
)
from lucius_orchestrator.adapters.ledger.tables.reports import Reports
from lucius_orchestrator.adapters.ledger.tables.store import (
    BATCH_LIMIT,
    Delete,
    EtagMismatch,
    NotFound,
    Replace,
    Row,
    Tables,
)
from lucius_orchestrator.adapters.ledger.tables.webhooks import Webhooks
from lucius_orchestrator.ports.ledger import Conflict, Stored

REST = timeouts.JOB_SLA
"""How long a tombstone stands at least: no request is under way for as long."""


class Retention:
    def __init__(
        self,
        tables: Tables,
        jobs: JobPartitions,
        indexes: Indexes,
        entries: Entries,
        ending: Ending,
        webhooks: Webhooks,
        reports: Reports,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._tables = tables
        self._jobs = jobs
        self._indexes = indexes
        self._entries = entries
        self._ending = ending
        self._webhooks = webhooks
        self._reports = reports
        self._clock = clock

    async def ended(self, before: datetime, limit: int) -> list[str]:
        found: list[str] = []
        first, end = "", keys.moment(before)
        while rows := await self._tables.query(ENDED, ENDED.upper(), first, end, BATCH_LIMIT):
            for row in rows:
                if len(found) == limit:
                    return found
                if await self._has_ended(row):
                    found.append(row.values["job_id"])
            first = rows[-1].key + "!"
        return found

    async def remove(self, stored: Stored) -> None:
        job, version = stored.aggregate.job, stored.version
        head = await self._jobs.head(job.job_id)
        if head is None or head.is_tombstone:
            return
        if not isinstance(version, TableVersion) or head.etag != version.etag:
            raise Conflict(job.job_id)
        await self._entries.release(head.tenant_id, head.entry, job.job_id)
        await self._ending.finish(job, version.leash)
        if job.callback_urls and head.ended is not None:
            await self._webhooks.outlive(head.ended)
        await self._jobs.dig(job.job_id)
        tombstone = {"tenant_id": head.tenant_id, "ended": head.ended}
        try:
            await self._jobs.write(job.job_id, [Replace(JOB, tombstone, head.etag)])
        except (EtagMismatch, NotFound) as moved:
            head = await self._jobs.head(job.job_id)
            if head is None or head.is_tombstone:
                return
            raise Conflict(job.job_id) from moved
        await self._clear(job.job_id, head)

    async def prune(self, before: datetime, limit: int) -> int:
        end = keys.moment(min(before, self._clock() - REST))
        graves = await self._tables.query(GRAVES, GRAVE, "", end, limit)
        for grave in graves:
            job_id = grave.values["job_id"]
            head = await self._jobs.head(job_id)
            if head is not None and head.is_tombstone:
                await self._clear(job_id, head)
                await self._delete(job_id, [Delete(JOB, head.etag)])
            await self._indexes.drop(Place(GRAVES, GRAVE, grave.key))
        pruned = len(graves)
        pruned += await self._webhooks.prune(before, limit - pruned)
        return pruned + await self._reports.prune(before, limit - pruned)

    async def _has_ended(self, row: Row) -> bool:
        """Mends what it meets: a removal cut short, a row whose commit never came."""
        job_id, place = row.values["job_id"], Place(ENDED, row.partition, row.key)
        head = await self._jobs.head(job_id)
        if head is not None and head.job is not None and head.ended == place:
            return True
        if head is not None and head.is_tombstone:
            await self._clear(job_id, head)
        if head is None or head.etag != row.values["base"]:
            await self._indexes.drop(place)
        return False

    async def _clear(self, job_id: str, head: Head) -> None:
        """Delete what is left around a tombstone, but for dead letters. Events go in their order,
        so that those which are left have no gap."""
        partition = keys.part(job_id)
        for rows_of in (EVENT_ROWS, STEP_ROWS, OUTBOX_ROWS):
            while rows := await self._tables.query(JOBS, partition, *rows_of, BATCH_LIMIT):
                await self._indexes.drop(*_pending(rows))
                await self._delete(job_id, [Delete(row.key) for row in rows])
        await self._indexes.drop(listed(head.tenant_id, job_id))
        if head.ended is not None:
            await self._indexes.drop(head.ended)

    async def _delete(self, job_id: str, rows: list[Delete]) -> None:
        with suppress(NotFound, EtagMismatch):
            await self._tables.batch(JOBS, keys.part(job_id), rows)


def _pending(rows: list[Row]) -> list[Place]:
    """Where directives that nobody published stand in the index. Of what workflows were to be told
    the index rows are long gone; one that is left leads to a tombstone, and goes with a claim."""
    return [row.values["pending"] for row in rows if row.values.get("state") is OutboxState.PENDING]
