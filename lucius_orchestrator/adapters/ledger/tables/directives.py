"""Directives to publish. The OUTBOX row in the job's partition says whether one is to go out; the
row in the index says who holds it, until when, and how often it was tried.

A claim is the ETag that the index row got from it. A row can also be claimed at birth, by the
commit that brings it, for the dispatcher of the same process; then the index row says so from the
first moment. Which claims are this process's own is remembered here: one that was given back, or
whose time is over, counts no more.

What is claimed is checked against the OUTBOX row first: an index row may announce a commit that is
still to come (it is left alone), or speak of one that was overtaken (it is deleted).
"""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from lucius_contract.routing import LANES
from lucius_contract.states import OutboxState
from lucius_contract.timeouts import Delays, delay_after
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.indexes import (
    PENDING,
    Etags,
    Indexes,
    Intent,
    pending_partition,
)
from lucius_orchestrator.adapters.ledger.tables.partition import (
    JOBS,
    IndexRow,
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
from lucius_orchestrator.domain.decision import Decision, DirectiveRow, OutboxKind, OutboxMark
from lucius_orchestrator.domain.directive import outbox_id
from lucius_orchestrator.ports.ledger import (
    Adopter,
    Claim,
    DirectiveStatus,
    LedgerUnavailable,
    Stored,
)

_PAGE = 1000


class Hold(NamedTuple):
    """The token of a claim. The ETags are those of the index row as the claim left it and of the
    OUTBOX row, None where they were not seen."""

    place: Place
    until: datetime
    etag: str | None
    outbox_etag: str | None


class Birth(NamedTuple):
    """A directive that comes with a commit, and its index row."""

    row: DirectiveRow
    pending: IndexRow


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
        wake: Callable[[], None],
    ) -> None:
        self._tables = tables
        self._jobs = jobs
        self._indexes = indexes
        self._clock = clock
        self._backoff = backoff
        self._wake = wake
        self._held: dict[Place, Hold] = {}
        self._adoption: _Adoption | None = None

    async def claim(
        self, kind: OutboxKind, size: int, lease: timedelta, lanes: Collection[int]
    ) -> list[Claim]:
        now, claims = self._clock(), list[Claim]()
        self._forget_lapsed(now)
        rows = await _Lanes.open(self._tables, kind, lanes)
        while len(claims) < size and (row := await rows.oldest()):
            claim = await self._claim(kind, row, now + lease) if _is_free(row.values, now) else None
            if claim is not None:
                claims.append(claim)
        return claims

    def adopt(self, lease: timedelta, adopter: Adopter) -> Callable[[], None]:
        adoption = self._adoption = _Adoption(lease, adopter)

        def end() -> None:
            if self._adoption is adoption:
                self._adoption = None

        return end

    def births(self, decision: Decision, lane: int, intent: Intent) -> list[Birth]:
        """The directives that a commit brings, claimed at birth if somebody wants them."""
        births = []
        for row in decision.outbox:
            adoption = self._adoption
            is_wanted = adoption is not None and adoption.adopter.wants()
            until = self._clock() + adoption.lease if adoption and is_wanted else None
            births.append(Birth(row, intent.pending(row, lane, until)))
        return births

    async def born(self, stored: Stored, births: Sequence[Birth], etags: Etags) -> None:
        """They are there: give them to who wanted them, or let them be looked for."""
        claims = []
        for row, (place, values) in births:
            if values["until"] is not None:
                outbox = Place(JOBS, keys.part(values["job_id"]), outbox_key(row.outbox_id))
                hold = Hold(place, values["until"], etags.get(place), etags.get(outbox))
                self._held[place] = hold
                claims.append(_claim_of(row, hold, stored))
        if claims and self._adoption is not None:
            self._adoption.adopter.take(claims)
        elif claims:
            with suppress(LedgerUnavailable):
                await self.release(claims)  # who wanted them has gone meanwhile
        if births and (len(claims) < len(births) or self._adoption is None):
            self._wake()

    async def backlog(self) -> dict[int, int]:
        """By the index, which names a directive from before its commit until it is published."""
        first, end = keys.below(OutboxKind.DIRECTIVE.value)
        after, found = (first, ""), Counter[str]()
        while rows := await self._tables.scan(PENDING, after, end, _PAGE):
            found.update(row.partition for row in rows)
            after = rows[-1].partition, rows[-1].key
            if len(rows) < _PAGE:
                break
        lanes = {pending_partition(OutboxKind.DIRECTIVE, lane): lane for lane in range(LANES)}
        return {lanes[partition]: count for partition, count in sorted(found.items())}

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
            for operation, pending in await self.marks([mark], claim, is_sure=False):
                with suppress(EtagMismatch, NotFound):
                    await self._jobs.write(claim.job_id, [operation])
                await self._indexes.drop(pending)
                self.let_go(pending)

    async def marks(
        self, marks: Sequence[OutboxMark], claim: Claim | None, *, is_sure: bool
    ) -> list[Mark]:
        """The rows that a commit ends: the one that the claim holds, if it still does. `is_sure`:
        that its OUTBOX row is as it was when it was claimed."""
        if claim is None or not isinstance(claim.token, Hold):
            return []
        hold, wanted = claim.token, {mark.outbox_id: mark.state for mark in marks}
        state = wanted.get(claim.row.outbox_id)
        if state is None or not self._is_held(hold):
            return []
        etag = hold.outbox_etag if is_sure else None
        if etag is None:
            outbox = await self._jobs.outbox(claim.job_id, claim.row.outbox_id)
            if outbox is None or outbox.state is not OutboxState.PENDING:
                return []
            etag = outbox.etag
        return [Mark(Merge(outbox_key(claim.row.outbox_id), {"state": state}, etag), hold.place)]

    def let_go(self, place: Place) -> None:
        """Of a row that has ended."""
        self._held.pop(place, None)

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
        stored, outbox = await self._jobs.load_with_outbox(job_id, row.values["outbox_id"])
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
        self._held[place] = hold = Hold(place, until, etag, outbox.etag)
        version = stored.version if stored else None
        return Claim(job_id, kind, outbox.row, row.values["tries"], hold, version, stored)

    async def _change(self, claim: Claim, values: Values) -> None:
        """Unless the claim was lost."""
        hold = claim.token
        if not isinstance(hold, Hold) or not self._is_held(hold):
            return
        self.let_go(hold.place)
        table, partition, row = hold.place
        with suppress(EtagMismatch, NotFound):
            await self._tables.batch(table, partition, [Merge(row, values, hold.etag)])

    def _is_held(self, hold: Hold) -> bool:
        return self._held.get(hold.place) == hold and self._clock() <= hold.until

    def _forget_lapsed(self, now: datetime) -> None:
        self._held = {place: hold for place, hold in self._held.items() if hold.until >= now}


class _Adoption(NamedTuple):
    lease: timedelta
    adopter: Adopter


class _Lanes:
    """Index rows of some lanes, merged by their keys, which begin with the time. One scan sees them
    all, unless there are very many: then each lane is read alone."""

    def __init__(self, tables: Tables, kind: OutboxKind) -> None:
        self._tables = tables
        self._kind = kind
        self._pages: list[tuple[str, int, list[Row], bool]] = []

    @classmethod
    async def open(cls, tables: Tables, kind: OutboxKind, lanes: Collection[int]) -> "_Lanes":
        found = cls(tables, kind)
        first, end = keys.below(kind.value)
        rows = await tables.scan(PENDING, (first, ""), end, _PAGE)
        if len(rows) < _PAGE:
            partitions = {pending_partition(kind, lane) for lane in lanes}
            wanted = [row for row in rows if row.partition in partitions]
            found._push(0, sorted(wanted, key=_key, reverse=True), is_full=False)
        else:
            for lane in lanes:
                await found._read(lane, "")
        return found

    async def oldest(self) -> Row | None:
        if not self._pages:
            return None
        _, lane, rows, is_full = heapq.heappop(self._pages)
        row = rows.pop()
        if rows:
            self._push(lane, rows, is_full=is_full)
        elif is_full:
            await self._read(lane, row.key + "!")
        return row

    async def _read(self, lane: int, first: str) -> None:
        partition = pending_partition(self._kind, lane)
        page = await self._tables.query(PENDING, partition, first, keys.END, _PAGE)
        self._push(lane, page[::-1], is_full=len(page) == _PAGE)

    def _push(self, lane: int, rows: list[Row], *, is_full: bool) -> None:
        """`rows` with the oldest last."""
        if rows:
            heapq.heappush(self._pages, (rows[-1].key, lane, rows, is_full))


def _key(row: Row) -> str:
    return row.key


def _is_free(values: Values, now: datetime) -> bool:
    until: datetime | None = values["until"]
    due_at: datetime = values["due_at"]
    return due_at <= now and (until is None or until < now)


def _claim_of(row: DirectiveRow, hold: Hold, stored: Stored) -> Claim:
    job_id = stored.aggregate.job.job_id
    return Claim(job_id, OutboxKind.DIRECTIVE, row, 0, hold, stored.version, stored)


def _is_wanted(outbox: OutboxRow, place: Place) -> bool:
    return outbox.state is OutboxState.PENDING and outbox.pending == place
