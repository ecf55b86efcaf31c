"""The list of jobs: by tenant and month, newest first. What is listed is read from the job."""

import heapq

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
        found: list[Job] = []
        last = cursors.decode_job(query.cursor)
        for _ in range(EXAMINED // _PAGE):
            rows = await self._rows(query.tenant_id, last)
            for row in rows:
                job_id: str = row.values["job_id"]
                head = await self._jobs.head(job_id)
                if head is not None and head.job is not None and _matches(head.job, query):
                    found.append(head.job)
                if len(found) == query.limit:
                    return Page(tuple(found), cursors.encode_job(job_id))
                last = job_id
            if len(rows) < _PAGE:
                return Page(tuple(found), None)
        return Page(tuple(found), cursors.encode_job(job_id))

    async def _rows(self, tenant_id: str | None, last: str | None) -> list[Row]:
        """Up to a page of those that come after the job `last`."""
        if tenant_id is None:
            return await self._of_all(last)
        first, end = keys.below(tenant_id)
        after = listed(tenant_id, last)[1:] if last is not None else (first, "")
        return await self._tables.scan(JOBLIST, after, end, _PAGE)

    async def _of_all(self, last: str | None) -> list[Row]:
        """Partitions lie by tenant, so the newest of all are known when all were seen."""
        newer = _age(*listed("", last)[1:]) if last is not None else _START
        found: list[Row] = []
        after = _START
        while rows := await self._tables.scan(JOBLIST, after, keys.END, _PAGE):
            found = heapq.nsmallest(_PAGE, [*found, *_behind(newer, rows)], key=_row_age)
            after = (rows[-1].partition, rows[-1].key)
        return found


def _age(partition: str, row: str) -> tuple[str, str]:
    """Sorts as rows of one tenant do: by month, then by id, newest first."""
    return partition.rpartition("!")[2], row


def _behind(newer: tuple[str, str], rows: list[Row]) -> list[Row]:
    return [row for row in rows if _row_age(row) > newer]


def _row_age(row: Row) -> tuple[str, str]:
    return _age(row.partition, row.key)


def _matches(job: Job, query: JobQuery) -> bool:
    return (
        (query.state is None or job.state is query.state)
        and (query.request_type is None or job.request_type == query.request_type)
        and (query.since is None or job.created_at >= query.since)
    )
