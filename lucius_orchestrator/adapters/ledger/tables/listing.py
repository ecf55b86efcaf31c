"""The list of jobs: by tenant and month, newest first. What is listed is read from the job."""

import heapq
from collections.abc import AsyncIterator

from lucius_orchestrator.adapters.ledger import cursors
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.indexes import JOBLIST, listed
from lucius_orchestrator.adapters.ledger.tables.partition import JobPartitions
from lucius_orchestrator.adapters.ledger.tables.store import Row, Tables
from lucius_orchestrator.domain.aggregate import Job
from lucius_orchestrator.ports.ledger import JobQuery, Page

EXAMINED = 1000
"""How many jobs one page may cost, whatever of them matches."""

_PAGE = 100
_START = ("", "")


class Listing:
    def __init__(self, tables: Tables, jobs: JobPartitions) -> None:
        self._tables = tables
        self._jobs = jobs

    async def page(self, query: JobQuery) -> Page[Job]:
        last, found, examined = cursors.decode_job(query.cursor), list[Job](), 0
        rows = self._of_tenant(query.tenant_id, last) if query.tenant_id else self._of_all(last)
        async for row in rows:
            job_id, examined = row.values["job_id"], examined + 1
            head = await self._jobs.head(job_id)
            if head is not None and head.job is not None and _matches(head.job, query):
                found.append(head.job)
            if len(found) == query.limit or examined == EXAMINED:
                return Page(tuple(found), cursors.encode_job(job_id))
        return Page(tuple(found), None)

    async def _of_tenant(self, tenant_id: str, last: str | None) -> AsyncIterator[Row]:
        first, end = keys.below(tenant_id)
        after = (first, "")
        if last is not None:
            _, *position = listed(tenant_id, last)
            after = (position[0], position[1])
        async for row in self._scan(after, end):
            yield row

    async def _of_all(self, last: str | None) -> AsyncIterator[Row]:
        """Partitions lie by tenant, so the newest of all are known when all were seen."""
        after = _age(*listed("", last)[1:]) if last is not None else _START
        rows = [row async for row in self._scan(_START, keys.END) if _row_age(row) > after]
        for row in heapq.nsmallest(EXAMINED, rows, key=_row_age):
            yield row

    async def _scan(self, after: tuple[str, str], end: str) -> AsyncIterator[Row]:
        while rows := await self._tables.scan(JOBLIST, after, end, _PAGE):
            for row in rows:
                yield row
            after = (rows[-1].partition, rows[-1].key)


def _age(partition: str, row: str) -> tuple[str, str]:
    """Sorts as rows of one tenant do: by month, then by id, newest first."""
    return partition.rpartition("!")[2], row


def _row_age(row: Row) -> tuple[str, str]:
    return _age(row.partition, row.key)


def _matches(job: Job, query: JobQuery) -> bool:
    return (
        (query.state is None or job.state is query.state)
        and (query.request_type is None or job.request_type == query.request_type)
        and (query.since is None or job.created_at >= query.since)
    )
