"""Who claims in which lane: a lease row for each, all in one partition.

Claims alone would do, but several dispatchers that look for the same rows would mostly be in each
other's way. So a lane has one that looks, and the others wait for its lease to run out. A row that
is claimed at birth needs no lane.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from lucius_contract.routing import LANES
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.indexes import PENDING
from lucius_orchestrator.adapters.ledger.tables.store import (
    Delete,
    Insert,
    Merge,
    Operation,
    Row,
    StoreError,
    Tables,
)
from lucius_orchestrator.ports.ledger import LedgerUnavailable

LEASES = "QUEUE_LEASES"
"""The partition, beside those of the lanes. Not that of the previous release, `LEASES`: its leader
does not look at queues, and would keep one that does from looking for as long as it runs."""


class Leading:
    def __init__(self, tables: Tables, *, clock: Callable[[], datetime], owner: str) -> None:
        self._tables = tables
        self._clock = clock
        self._owner = owner
        self._mine: Mapping[int, Row] = {}

    async def lead(self, lanes: Collection[int], lease: timedelta) -> frozenset[int]:
        now = self._clock()
        if self._mine.keys() >= set(lanes):
            with suppress(StoreError):  # else: as if nothing were known
                return await self._write(self._mine, lanes, now + lease)
        found = await self._tables.query(PENDING, LEASES, "", keys.END, LANES)
        leases = {int(row.key): row for row in found}
        free = [lane for lane in lanes if lane not in leases or self._is_free(leases[lane], now)]
        try:
            return await self._write(leases, free, now + lease)
        except StoreError:
            self._mine = {}  # others were faster, at one lane at least
            return frozenset()

    async def close(self) -> None:
        """Leave the lanes to others."""
        mine, self._mine = self._mine, {}
        if mine:
            with suppress(StoreError, LedgerUnavailable):
                deletions = [Delete(row.key, row.etag) for row in mine.values()]
                await self._tables.batch(PENDING, LEASES, deletions)

    async def _write(
        self, known: Mapping[int, Row], lanes: Collection[int], until: datetime
    ) -> frozenset[int]:
        if not lanes:
            self._mine = {}
            return frozenset()
        values = {"owner": self._owner, "until": until}
        writes: dict[int, Operation] = {}
        for lane in lanes:
            key, row = f"{lane:02d}", known.get(lane)
            writes[lane] = Merge(key, values, row.etag) if row else Insert(key, values)
        etags = await self._tables.batch(PENDING, LEASES, list(writes.values()))
        self._mine = {
            lane: Row(LEASES, write.row, etag or "", values)
            for (lane, write), etag in zip(writes.items(), etags, strict=True)
        }
        return frozenset(lanes)

    def _is_free(self, lease: Row, now: datetime) -> bool:
        until: datetime = lease.values["until"]
        return until < now or lease.values["owner"] == self._owner
