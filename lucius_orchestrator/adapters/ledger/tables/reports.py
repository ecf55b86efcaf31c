"""What processes report to each other: a row for each, in one partition beside the lanes.

No job depends on them. The repair passes over them, since they announce no commit.
"""

from contextlib import suppress
from datetime import datetime

from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.indexes import PENDING
from lucius_orchestrator.adapters.ledger.tables.store import (
    Delete,
    EntityExists,
    EtagMismatch,
    Insert,
    Merge,
    NotFound,
    Row,
    Tables,
)
from lucius_orchestrator.ports.ledger import TrafficReport

REPORTS = "REPORTS"
_MOST = 1000
"""Processes of a deployment: more than one has, and as many as one query returns."""


class Reports:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def publish(self, report: TrafficReport) -> None:
        """Costs one call, but for the first report of a process."""
        key = keys.part(report.process_id)
        values = {
            "process_id": report.process_id,
            "reported_at": report.at,
            "document": report.document,
        }
        try:
            await self._tables.batch(PENDING, REPORTS, [Merge(key, values)])
        except NotFound:
            with suppress(EntityExists):  # by the same process: its other report is as new
                await self._tables.batch(PENDING, REPORTS, [Insert(key, values)])

    async def since(self, moment: datetime) -> list[TrafficReport]:
        return [_report(row) for row in await self._all() if row.values["reported_at"] >= moment]

    async def withdraw(self, process_id: str) -> None:
        with suppress(NotFound):
            await self._tables.batch(PENDING, REPORTS, [Delete(keys.part(process_id))])

    async def prune(self, before: datetime, limit: int) -> int:
        old = [row for row in await self._all() if row.values["reported_at"] < before][:limit]
        for row in old:
            with suppress(NotFound, EtagMismatch):  # it was withdrawn, or renewed
                await self._tables.batch(PENDING, REPORTS, [Delete(row.key, row.etag)])
        return len(old)

    async def _all(self) -> list[Row]:
        return await self._tables.query(PENDING, REPORTS, "", keys.END, _MOST)


def _report(row: Row) -> TrafficReport:
    values = row.values
    return TrafficReport(values["process_id"], values["reported_at"], values["document"])
