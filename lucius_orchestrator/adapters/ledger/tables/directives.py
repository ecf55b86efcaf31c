"""Directives to publish. The OUTBOX row in the job's partition says whether one is to go out; the
row in the index says who holds it, until when, and how often it was tried.

A claim is the ETag that the index row got from it. What is claimed is checked against the OUTBOX
row first: an index row may announce a commit that is still to come (it is left alone), or speak of
one that was overtaken (it is deleted).
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from lucius_contract.routing import LANES
from lucius_contract.states import OutboxState
from lucius_contract.timeouts import Delays, delay_after
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.indexes import (
    PENDING,
    Indexes,
    pending_partition,
)
from lucius_orchestrator.adapters.ledger.tables.partition import (
    JobPartitions,
    OutboxRow,
    Place,
    outbox_key,
)
from lucius_orchestrator.adapters.ledger.tables.store import (
    EtagMismatch,
    Merge,
    NotFound,
    Row,
    Tables,
    Values,
)
from lucius_orchestrator.domain.decision import OutboxKind, OutboxMark
from lucius_orchestrator.domain.directive import outbox_id
from lucius_orchestrator.ports.ledger import Claim, DirectiveStatus

_PAGE = 100


class Hold(NamedTuple):
    """The token of a claim: the index row as the claim left it."""

    place: Place
    etag: str


class Mark(NamedTuple):
    """The end of an OUTBOX row, and the index row that is not needed any more."""

    operation: Merge
    pending: Place


class Directives:
    def __init__(
        self,
        tables: Tables,
        jobs: JobPartitions,
        indexes: Indexes,
        *,
        clock: Callable[[], datetime],
        backoff: Delays,
    ) -> None:
        self._tables = tables
        self._jobs = jobs
        self._indexes = indexes
        self._clock = clock
        self._backoff = backoff

    async def claim(self, kind: OutboxKind, size: int, lease: timedelta) -> list[Claim]:
        now, claims = self._clock(), list[Claim]()
        rows = await _Lanes.open(self._tables, kind)
        while len(claims) < size and (row := await rows.oldest()):
            claim = None
            if _is_free(row.values, now):
                claim = await self._claim(kind, row, now + lease)
            if claim is not None:
                claims.append(claim)
        return claims

    async def backlog(self) -> dict[int, int]:
        """By the index, which names a directive from before its commit until it is published."""
        lanes = {lane: await self._count(lane) for lane in range(LANES)}
        return {lane: count for lane, count in lanes.items() if count}

    async def _count(self, lane: int) -> int:
        partition, first, count = pending_partition(OutboxKind.DIRECTIVE, lane), "", 0
        while page := await self._tables.query(PENDING, partition, first, keys.END, _PAGE):
            count += len(page)
            first = page[-1].key + "!"
        return count

    async def release(self, claims: Iterable[Claim]) -> None:
        now = self._clock()
        for claim in claims:
            await self._change(claim, {"until": None, "due_at": now})

    async def postpone(self, claims: Iterable[Claim], error: str) -> None:
        now = self._clock()
        for claim in claims:
            tries = claim.tries + 1
            due_at = now + delay_after(tries, self._backoff, jitter=0.0)
            values = {"until": None, "due_at": due_at, "tries": tries, "error": error}
            await self._change(claim, values)

    async def discard(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            mark = OutboxMark(claim.row.outbox_id, OutboxState.SUPERSEDED)
            for operation, pending in await self.marks([mark], claim):
                with suppress(EtagMismatch, NotFound):
                    await self._jobs.write(claim.job_id, [operation])
                await self._indexes.drop(pending)

    async def marks(self, marks: Sequence[OutboxMark], claim: Claim | None) -> list[Mark]:
        """The rows that a commit ends: the one that the claim holds, if it still does."""
        if claim is None or not isinstance(claim.token, Hold):
            return []
        wanted = {mark.outbox_id: mark.state for mark in marks}
        state = wanted.get(claim.row.outbox_id)
        if state is None or not await self._is_held(claim.token):
            return []
        outbox = await self._jobs.outbox(claim.job_id, claim.row.outbox_id)
        if outbox is None or outbox.state is not OutboxState.PENDING:
            return []
        operation = Merge(outbox_key(claim.row.outbox_id), {"state": state}, outbox.etag)
        return [Mark(operation, outbox.pending)]

    async def status(self, job_id: str, step_id: str, attempt_no: int) -> DirectiveStatus | None:
        outbox = await self._jobs.outbox(job_id, outbox_id(job_id, step_id, attempt_no))
        if outbox is None:
            return None
        if outbox.state is not OutboxState.PENDING:
            return DirectiveStatus(outbox.state, claimable=False)
        row = await self._tables.get(*outbox.pending)
        claimable = row is not None and _is_free(row.values, self._clock())
        return DirectiveStatus(outbox.state, claimable)

    async def _claim(self, kind: OutboxKind, row: Row, until: datetime) -> Claim | None:
        place, job_id = Place(PENDING, row.partition, row.key), row.values["job_id"]
        outbox = await self._jobs.outbox(job_id, row.values["outbox_id"])
        if outbox is None:
            return None
        if not _is_wanted(outbox, place):
            await self._indexes.drop(place)
            return None
        try:
            (etag,) = await self._tables.batch(
                PENDING, row.partition, [Merge(row.key, {"until": until}, row.etag)]
            )
        except (EtagMismatch, NotFound):
            return None
        assert etag is not None, "it is written, not deleted"
        return Claim(job_id, kind, outbox.row, row.values["tries"], Hold(place, etag))

    async def _change(self, claim: Claim, values: Values) -> None:
        """Unless the claim was lost."""
        if isinstance(claim.token, Hold):
            (table, partition, row), etag = claim.token
            with suppress(EtagMismatch, NotFound):
                await self._tables.batch(table, partition, [Merge(row, values, etag)])

    async def _is_held(self, hold: Hold) -> bool:
        row = await self._tables.get(*hold.place)
        return row is not None and row.etag == hold.etag


class _Lanes:
    """Index rows of all lanes, merged by their keys, which begin with the time."""

    def __init__(self, tables: Tables, kind: OutboxKind) -> None:
        self._tables = tables
        self._kind = kind
        self._pages: list[tuple[str, int, list[Row], bool]] = []

    @classmethod
    async def open(cls, tables: Tables, kind: OutboxKind) -> "_Lanes":
        lanes = cls(tables, kind)
        for lane in range(LANES):
            await lanes._push(lane, "")
        return lanes

    async def oldest(self) -> Row | None:
        if not self._pages:
            return None
        _, lane, (row, *rest), is_full = heapq.heappop(self._pages)
        if rest:
            heapq.heappush(self._pages, (rest[0].key, lane, rest, is_full))
        elif is_full:
            await self._push(lane, row.key + "!")
        return row

    async def _push(self, lane: int, first: str) -> None:
        partition = pending_partition(self._kind, lane)
        page = await self._tables.query(PENDING, partition, first, keys.END, _PAGE)
        if page:
            heapq.heappush(self._pages, (page[0].key, lane, page, len(page) == _PAGE))


def _is_free(values: Values, now: datetime) -> bool:
    until: datetime | None = values["until"]
    due_at: datetime = values["due_at"]
    return due_at <= now and (until is None or until < now)


def _is_wanted(outbox: OutboxRow, place: Place) -> bool:
    return outbox.state is OutboxState.PENDING and outbox.pending == place
