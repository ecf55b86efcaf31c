"""Jobs in flight: one partition per tenant, per mode, and for all; a COUNT and a SLOT per job.

COUNT and SLOT change in one batch, so the count is exact, and a slot is taken or given back once
however often it is asked for. A slot is taken before its job is written and given back when the job
has ended or can never come; in between a crash may leave it taken, never the other way round.

The slots of all jobs together lie on `SHARDS` partitions, each with its part of the limit. With
more than one, the limit may be felt early, where the shard of a job is full and another is not.
"""

import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.partition import RACES
from lucius_orchestrator.adapters.ledger.tables.store import (
    Delete,
    EntityExists,
    EtagMismatch,
    Insert,
    Merge,
    NotFound,
    Operation,
    Tables,
)
from lucius_orchestrator.ports.ledger import InFlight, LedgerUnavailable, Limits, Saturated, Scope

TABLE = "inflight"
SHARDS = 1
_COUNT = "COUNT"
_NO_LIMITS = Limits()


class Share(NamedTuple):
    """What a job needs of one scope."""

    scope: Scope
    partition: str
    limit: int | None


class Count(NamedTuple):
    jobs: int
    etag: str | None


def shares(tenant_id: str, mode: Mode, job_id: str, limits: Limits = _NO_LIMITS) -> list[Share]:
    """In the order in which a full one is reported."""
    shard = zlib.crc32(job_id.encode()) % SHARDS
    total = None if limits.total is None else (limits.total + SHARDS - 1 - shard) // SHARDS
    return [
        Share(Scope.TENANT, keys.key("tenant", tenant_id), limits.tenant),
        Share(Scope.MODE, keys.key("mode", mode.value), limits.mode),
        Share(Scope.GLOBAL, _shard(shard), total),
    ]


class Slots:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def counts(self, job_id: str, wanted: Sequence[Share]) -> list[Count]:
        """The counts before a job takes its slots. `Saturated` if one has no room for it."""
        found = []
        for share in wanted:
            count = await self._room(job_id, share, await self._count(share.partition))
            if count is None:
                raise Saturated(share.scope)
            found.append(count)
        return found

    async def take(self, job_id: str, share: Share, guess: Count) -> bool:
        """Whether the job has its slot now."""
        count: Count | None = guess
        for _ in range(RACES):
            count = await self._room(job_id, share, count or await self._count(share.partition))
            if count is None:
                return False
            try:
                rows = [Insert(_slot(job_id), {"job_id": job_id}), _counted(count, 1)]
                await self._tables.batch(TABLE, share.partition, rows)
            except (EntityExists, EtagMismatch) as refused:
                if refused.row != _COUNT:
                    return True
                count = None
            else:
                return True
        raise LedgerUnavailable(f"too many jobs begin at once in {share.partition}")

    async def give_back(self, tenant_id: str, mode: Mode, job_id: str) -> None:
        for share in shares(tenant_id, mode, job_id):
            with suppress(NotFound):
                await self._give_back(share, job_id)

    async def in_flight(self, tenant_id: str | None) -> InFlight:
        shards = [await self._count(_shard(shard)) for shard in range(SHARDS)]
        modes = {mode: await self._count(keys.key("mode", mode.value)) for mode in Mode}
        tenant = 0
        if tenant_id is not None:
            tenant = (await self._count(keys.key("tenant", tenant_id))).jobs
        by_mode = {mode: count.jobs for mode, count in modes.items()}
        return InFlight(sum(count.jobs for count in shards), by_mode, tenant)

    async def _give_back(self, share: Share, job_id: str) -> None:
        for _ in range(RACES):
            count = await self._count(share.partition)
            try:
                rows = [Delete(_slot(job_id)), _counted(count, -1)]
                await self._tables.batch(TABLE, share.partition, rows)
            except (EntityExists, EtagMismatch):
                continue
            return
        raise LedgerUnavailable(f"too many jobs end at once in {share.partition}")

    async def _room(self, job_id: str, share: Share, count: Count) -> Count | None:
        """The count, if it has room for the job or has counted it before.

        Of a full count, both are only known together if it did not move in between.
        """
        for _ in range(RACES):
            if not _is_full(share, count) or await self._holds(share, job_id):
                return count
            again = await self._count(share.partition)
            if again == count:
                return None
            count = again
        raise LedgerUnavailable(f"too many jobs begin and end at once in {share.partition}")

    async def _count(self, partition: str) -> Count:
        row = await self._tables.get(TABLE, partition, _COUNT)
        return Count(row.values["jobs"], row.etag) if row else Count(0, None)

    async def _holds(self, share: Share, job_id: str) -> bool:
        return await self._tables.get(TABLE, share.partition, _slot(job_id)) is not None


def _shard(shard: int) -> str:
    return f"total!{shard:02d}"


def _slot(job_id: str) -> str:
    return keys.key("SLOT", job_id)


def _is_full(share: Share, count: Count) -> bool:
    return share.limit is not None and count.jobs >= share.limit


def _counted(count: Count, change: int) -> Operation:
    values = {"jobs": count.jobs + change}
    return Insert(_COUNT, values) if count.etag is None else Merge(_COUNT, values, count.etag)
