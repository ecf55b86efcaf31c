"""Jobs in flight: one partition per tenant, and one for all; a COUNT and a SLOT per job.

COUNT and SLOT change in one batch, so the count is exact, and a slot is taken or given back once
however often it is asked for. A slot is taken before its job is written and given back when the job
has ended or can never come; in between a crash may leave it taken, never the other way round.

Everybody wants to write the same COUNT. So within a process one writer at a time does, for all who
wait: what came meanwhile goes into one batch. What the COUNT was after its last write is known, and
is read again only when another process has written it, or when it leaves no room.

The slots of all jobs together lie on `SHARDS` partitions, each with its part of the limits. With
more than one, a limit may be felt early, where the shard of a job is full and another is not.
"""

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.partition import RACES
from lucius_orchestrator.adapters.ledger.tables.store import (
    BATCH_LIMIT,
    Delete,
    Insert,
    Merge,
    Operation,
    StoreError,
    Tables,
)
from lucius_orchestrator.ports.ledger import InFlight, LedgerUnavailable, Limits, Saturated, Scope

TABLE = "inflight"
SHARDS = 1
_COUNT = "COUNT"
_JOBS = "jobs"
_NO_LIMITS = Limits()
_COUNTERS = 10_000
"""Partitions whose counts are remembered."""


class Quota(NamedTuple):
    """A number in a COUNT row, and how far it may go."""

    scope: Scope
    name: str
    limit: int | None


class Share(NamedTuple):
    """What a job needs of one partition. Of several quotas the first that is full is reported."""

    partition: str
    quotas: tuple[Quota, ...]


class Count(NamedTuple):
    numbers: Mapping[str, int]
    etag: str | None


def shares(tenant_id: str, mode: Mode, job_id: str, limits: Limits = _NO_LIMITS) -> list[Share]:
    """In the order in which a full one is reported."""
    shard = zlib.crc32(job_id.encode()) % SHARDS
    of_mode = Quota(Scope.MODE, mode.value, _part_of(limits.mode, shard))
    of_all = Quota(Scope.GLOBAL, _JOBS, _part_of(limits.total, shard))
    return [
        Share(keys.key("tenant", tenant_id), (Quota(Scope.TENANT, _JOBS, limits.tenant),)),
        Share(_shard(shard), (of_mode, of_all)),
    ]


class Slots:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._counters: dict[str, _Counter] = {}

    async def look(self, job_id: str, wanted: Sequence[Share]) -> None:
        """`Saturated` if a job would not get its slots now."""
        counters = [self._counter(share.partition) for share in wanted]
        for counter, share in zip(counters, wanted, strict=True):
            if await counter.may_be_full(share):
                break
        else:
            return
        # Which one is reported is a matter of their order, and of what is so now.
        for counter, share in zip(counters, wanted, strict=True):
            full = await counter.surely_full(job_id, share)
            if full is not None:
                raise Saturated(full)

    async def take(self, job_id: str, share: Share) -> Scope | None:
        """None: the job has its slot now; else what is full."""
        return await self._counter(share.partition).change(job_id, share, 1)

    async def give_back(self, tenant_id: str, mode: Mode, job_id: str) -> None:
        for share in shares(tenant_id, mode, job_id):
            await self._counter(share.partition).change(job_id, share, -1)

    async def in_flight(self, tenant_id: str | None) -> InFlight:
        shards = [await _read(self._tables, _shard(shard)) for shard in range(SHARDS)]
        tenant = 0
        if tenant_id is not None:
            count = await _read(self._tables, keys.key("tenant", tenant_id))
            tenant = count.numbers.get(_JOBS, 0)
        by_mode = {mode: _sum(shards, mode.value) for mode in Mode}
        return InFlight(_sum(shards, _JOBS), by_mode, tenant)

    def _counter(self, partition: str) -> "_Counter":
        counter = self._counters.get(partition)
        if counter is None:
            if len(self._counters) >= _COUNTERS:
                self._counters = {
                    name: counter for name, counter in self._counters.items() if counter.is_busy
                }
            counter = self._counters[partition] = _Counter(self._tables, partition)
        return counter


class _Change(NamedTuple):
    """A slot to take or to give back; `answer` is what is full, or None."""

    job_id: str
    share: Share
    by: int
    answer: "asyncio.Future[Scope | None]"

    @property
    def slot(self) -> Operation:
        row = _slot(self.job_id)
        return Insert(row, {"job_id": self.job_id}) if self.by > 0 else Delete(row)

    def settle(self, full: Scope | None = None) -> None:
        if not self.answer.done():
            self.answer.set_result(full)


class _Counter:
    """One partition, as this process writes it."""

    def __init__(self, tables: Tables, partition: str) -> None:
        self._tables = tables
        self._partition = partition
        self._known: Count | None = None
        self._waiting: list[_Change] = []
        self._writer: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        return self._writer is not None

    async def may_be_full(self, share: Share) -> bool:
        """By what is known, which others may have changed."""
        return _without_room(share, self._known or await self._refreshed()) is not None

    async def surely_full(self, job_id: str, share: Share) -> Scope | None:
        """None: there is room, or the job was counted before. Of a full count, both are only known
        together if it did not move in between."""
        count = await self._refreshed()
        for _ in range(RACES):
            full = _without_room(share, count)
            if full is None or await self._holds(job_id):
                return None
            before, count = count, await self._refreshed()
            if before == count:
                return full
        raise LedgerUnavailable(f"too many jobs begin and end at once in {self._partition}")

    async def change(self, job_id: str, share: Share, by: int) -> Scope | None:
        change = _Change(job_id, share, by, asyncio.get_running_loop().create_future())
        self._waiting.append(change)
        if self._writer is None:
            # A task of its own: who waits may be cancelled, the others are still waiting.
            self._writer = asyncio.create_task(self._write_all())
        return await change.answer

    async def _write_all(self) -> None:
        changes: list[_Change] = []
        try:
            while changes := self._next():
                await self._write(changes)
        except BaseException as error:
            for change in [*changes, *self._waiting]:
                if not change.answer.done():
                    change.answer.set_exception(error)
            self._waiting.clear()
            self._known = None
            if not isinstance(error, Exception):
                raise
        finally:
            self._writer = None

    def _next(self) -> list[_Change]:
        """Those that fit into one batch: each job once, in its order."""
        changes: dict[str, _Change] = {}
        left: list[_Change] = []
        for change in self._waiting:
            if change.job_id in changes or len(changes) == BATCH_LIMIT - 1:
                left.append(change)
            else:
                changes[change.job_id] = change
        self._waiting = left
        return list(changes.values())

    async def _write(self, changes: list[_Change]) -> None:
        for _ in range(RACES):
            changes = await self._that_fit(changes)
            if not changes:
                return
            count = self._known or await self._refreshed()
            numbers = _after(count.numbers, changes)
            try:
                operations = [change.slot for change in changes]
                etags = await self._tables.batch(
                    TABLE, self._partition, [*operations, _counted(numbers, count.etag)]
                )
            except StoreError as refused:
                changes = self._without(changes, refused.row)
            else:
                self._known = Count(numbers, etags[-1])
                for change in changes:
                    change.settle()
                return
        raise LedgerUnavailable(f"too many jobs begin and end at once in {self._partition}")

    def _without(self, changes: list[_Change], refused: str) -> list[_Change]:
        """A slot that is there, or gone, was taken or given back before."""
        done = [change for change in changes if change.slot.row == refused]
        if not done:
            self._known = None
        for change in done:
            change.settle()
        return [change for change in changes if change not in done]

    async def _that_fit(self, changes: Sequence[_Change]) -> list[_Change]:
        """Settles those for which there is no room."""
        fit: list[_Change] = []
        for change in changes:
            count = self._known or await self._refreshed()
            now = Count(_after(count.numbers, fit), count.etag)
            if change.by < 0 or _without_room(change.share, now) is None:
                fit.append(change)
            elif fit:
                self._waiting.append(change)  # it may fit, or not, when these were written
            else:
                full = await self.surely_full(change.job_id, change.share)
                if full is not None:
                    change.settle(full)
                else:
                    fit.append(change)
        return fit

    async def _refreshed(self) -> Count:
        self._known = await _read(self._tables, self._partition)
        return self._known

    async def _holds(self, job_id: str) -> bool:
        return await self._tables.get(TABLE, self._partition, _slot(job_id)) is not None


async def _read(tables: Tables, partition: str) -> Count:
    row = await tables.get(TABLE, partition, _COUNT)
    return Count(row.values, row.etag) if row else Count({}, None)


def _without_room(share: Share, count: Count) -> Scope | None:
    for scope, name, limit in share.quotas:
        if limit is not None and count.numbers.get(name, 0) >= limit:
            return scope
    return None


def _after(numbers: Mapping[str, int], changes: Sequence[_Change]) -> dict[str, int]:
    after = dict(numbers)
    for change in changes:
        for quota in change.share.quotas:
            after[quota.name] = after.get(quota.name, 0) + change.by
    return after


def _counted(numbers: Mapping[str, int], etag: str | None) -> Operation:
    return Insert(_COUNT, numbers) if etag is None else Merge(_COUNT, numbers, etag)


def _sum(counts: Sequence[Count], name: str) -> int:
    return sum(count.numbers.get(name, 0) for count in counts)


def _part_of(limit: int | None, shard: int) -> int | None:
    return None if limit is None else (limit + SHARDS - 1 - shard) // SHARDS


def _shard(shard: int) -> str:
    return f"total!{shard:02d}"


def _slot(job_id: str) -> str:
    return keys.key("SLOT", job_id)
