"""What is to be sent. The OUTBOX row in the job's partition says that it was committed; the row in
the index says who holds it, until when, and how often it was tried.

A directive ends with its mark, which is a state of the OUTBOX row and comes with a commit. What a
workflow is told changes nothing in the job: its index row alone says that it is still to be told,
and goes when it was.

A row can be claimed at birth, by the commit that brings it, for whoever sends rows of its kind in
the same process; then the index row says so from the first moment.

What is claimed is checked against the OUTBOX row first: an index row may announce a commit that is
still to come (it is left alone), or speak of one that was overtaken (it is deleted). An INVOCATION
is asked for by name, mostly in the process that has just committed it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from lucius_contract.routing import Mode
from lucius_contract.states import OutboxState
from lucius_contract.timeouts import Delays, delay_after
from lucius_orchestrator.adapters.ledger.outbox_rows import (
    DIRECTIVE_KINDS,
    NOT_LOOKED_FOR,
    job_id_of,
)
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.holds import Hold, Holds
from lucius_orchestrator.adapters.ledger.tables.indexes import (
    PENDING,
    Etags,
    Indexes,
    Intent,
)
from lucius_orchestrator.adapters.ledger.tables.lanes import (
    Lanes,
    backlogs,
    counted,
    is_claimed,
    is_free,
)
from lucius_orchestrator.adapters.ledger.tables.partition import (
    JOBS,
    IndexRow,
    JobPartitions,
    Outgoing,
    Place,
    outbox_key,
)
from lucius_orchestrator.adapters.ledger.tables.queues import Look, Queues, Waiting
from lucius_orchestrator.adapters.ledger.tables.store import (
    EtagMismatch,
    Merge,
    NotFound,
    Row,
    Tables,
)
from lucius_orchestrator.domain.decision import (
    Decision,
    OutboxKind,
    OutboxMark,
    OutboxRow,
    WorkflowRow,
)
from lucius_orchestrator.domain.directive import outbox_id
from lucius_orchestrator.ports.ledger import (
    Adopter,
    Backlog,
    Claim,
    DirectiveStatus,
    LedgerUnavailable,
    Stored,
    Turns,
)

REMEMBERED = 1000
"""INVOCATIONs: more than are asked for at a time."""

MISSES = 20
"""Rows of a queue that a look tries in vain. Announcements without a commit stand for as long as
their writer may be alive, and each costs a call."""

UNNAMED = ""
"""The service that rows of the previous release belong to, whose index rows name no queue."""


class Birth(NamedTuple):
    """A row that comes with a commit, and its index row."""

    row: OutboxRow
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
        self._holds = Holds(tables, clock)
        self._queues = Queues(tables)
        self._adoptions: dict[OutboxKind, _Adoption] = {}
        self._newborn: dict[Place, _Seen] = {}

    async def claim(
        self, kind: OutboxKind, size: int, lease: timedelta, lanes: Collection[int]
    ) -> list[Claim]:
        if kind in NOT_LOOKED_FOR:
            return []
        now, claims = self._clock(), list[Claim]()
        self._holds.forget_lapsed(now)
        rows = await Lanes.open(self._tables, kind, lanes)
        while len(claims) < size and (row := await rows.oldest()):
            claim = await self._claim(row, now + lease) if is_free(row.values, now) else None
            if claim is not None:
                claims.append(claim)
        return claims

    async def claim_in_turn(
        self, turns: Turns, lease: timedelta, lanes: Collection[int]
    ) -> list[Claim]:
        now = self._clock()
        until = now + lease
        self._holds.forget_lapsed(now)
        look = await self._queues.look(lanes, now)
        claims = await self._claim_each(look.lapsed(), until)
        if look.unnamed:
            room = turns.room(UNNAMED)
            rows = await look.rows(look.unnamed, room) if room > 0 else []
            claims += await self._claim_each(look.lapsed(), until)
            claims += await self._claim_each(rows, until, room)
        for service in look.services:
            claims += await self._claim_of(service, look, turns, until)
        return claims

    async def take(
        self, job_id: str, step_id: str, attempt_no: int, lease: timedelta
    ) -> Claim | None:
        now, name = self._clock(), outbox_id(job_id, step_id, attempt_no)
        read, outgoing = await self._jobs.load_with_outbox(job_id, name)
        if outgoing is None or outgoing.row.kind is not OutboxKind.INVOCATION:
            return None
        newborn = self._newborn.pop(outgoing.pending, None)
        if newborn is not None:
            claim = await self._holds.take(_free(outgoing, newborn, read.stored), now + lease)
            if claim is not None:
                return claim
        row = await self._tables.get(*outgoing.pending)
        if row is None or outgoing.state is not OutboxState.PENDING or is_claimed(row.values, now):
            return None
        return await self._holds.take(_free(outgoing, _seen(row), read.stored), now + lease)

    def adopt(self, kind: OutboxKind, lease: timedelta, adopter: Adopter) -> Callable[[], None]:
        adoption = _Adoption(lease, adopter)
        if kind not in NOT_LOOKED_FOR:
            self._adoptions[kind] = adoption

        def end() -> None:
            if self._adoptions.get(kind) is adoption:
                del self._adoptions[kind]

        return end

    def births(self, decision: Decision, lane: int, intent: Intent) -> list[Birth]:
        """The rows that a commit brings, claimed at birth if somebody wants them."""
        births = []
        for row in decision.outbox:
            adoption = self._adoptions.get(row.kind)
            is_wanted = adoption is not None and adoption.adopter.wants(row)
            until = self._clock() + adoption.lease if adoption and is_wanted else None
            births.append(Birth(row, intent.pending(row, lane, until)))
        return births

    async def born(self, stored: Stored, births: Sequence[Birth], etags: Etags) -> None:
        """They are there: give them to who wanted them, or let them be looked for."""
        are_waiting = False
        for row, (place, values) in births:
            outbox = Place(JOBS, keys.part(values["job_id"]), outbox_key(row.outbox_id))
            hold = Hold(place, values["until"], etags.get(place), etags.get(outbox))
            if row.kind is OutboxKind.INVOCATION:
                self._remember(hold)
            elif hold.until is None:
                are_waiting = True
            else:
                are_waiting |= not await self._give(_claim_of(row, hold, stored), hold)
        if are_waiting:
            self._wake()

    async def backlog(self) -> dict[int, int]:
        """By the index, which names a directive from before its commit until it is published."""
        directives, invocations = [await counted(self._tables, kind) for kind in DIRECTIVE_KINDS]
        return dict(sorted((directives + invocations).items()))

    async def backlogs(self) -> list[Backlog]:
        return await backlogs(self._tables)

    async def release(self, claims: Iterable[Claim]) -> None:
        now = self._clock()
        for claim in claims:
            await self._holds.change(claim, {"until": None, "due_at": now})

    async def postpone(self, claims: Iterable[Claim], error: str) -> None:
        now = self._clock()
        for claim in claims:
            tries = claim.tries + 1
            due_at = now + delay_after(tries, self._backoff, jitter=0.0)
            values = {"until": None, "due_at": due_at, "tries": tries, "error": error}
            await self._holds.change(claim, values)

    async def discard(self, claims: Iterable[Claim]) -> None:
        told = []
        for claim in claims:
            if isinstance(claim.row, WorkflowRow):
                told.append(claim)
            else:
                await self._supersede(claim)
        await self._holds.drop(told)

    async def marks(
        self, marks: Sequence[OutboxMark], claim: Claim | None, *, is_sure: bool
    ) -> list[Mark]:
        """The rows that a commit ends: the one that the claim holds, if it still does. `is_sure`:
        that its OUTBOX row is as it was when it was claimed."""
        if claim is None:
            return []
        wanted = {mark.outbox_id: mark.state for mark in marks}
        hold, state = self._holds.of(claim), wanted.get(claim.row.outbox_id)
        if hold is None or state is None:
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
        self._holds.let_go(place)

    async def status(self, job_id: str, step_id: str, attempt_no: int) -> DirectiveStatus | None:
        outbox = await self._jobs.outbox(job_id, outbox_id(job_id, step_id, attempt_no))
        if outbox is None:
            return None
        if outbox.state is not OutboxState.PENDING:
            return DirectiveStatus(outbox.state, claimable=False)
        row = await self._tables.get(*outbox.pending)
        claimable = row is not None and is_free(row.values, self._clock())
        return DirectiveStatus(outbox.state, claimable)

    async def _supersede(self, claim: Claim) -> None:
        mark = OutboxMark(claim.row.outbox_id, OutboxState.SUPERSEDED)
        for operation, pending in await self.marks([mark], claim, is_sure=False):
            with suppress(EtagMismatch, NotFound):
                await self._jobs.write(claim.job_id, [operation])
            await self._indexes.drop(pending)
            self.let_go(pending)

    def _remember(self, hold: Hold) -> None:
        """Whoever asks for an INVOCATION soon need not read the index row that was just written."""
        if hold.etag is not None:
            self._newborn[hold.place] = _Seen(hold.etag, tries=0)
        if len(self._newborn) > REMEMBERED:
            del self._newborn[next(iter(self._newborn))]

    async def _give(self, claim: Claim, hold: Hold) -> bool:
        """Whether the one who wanted it is still there."""
        self._holds.keep(hold)
        adoption = self._adoptions.get(claim.kind)
        if adoption is not None:
            adoption.adopter.take([claim])
            return True
        with suppress(LedgerUnavailable):
            await self.release([claim])
        return False

    async def _claim_of(
        self, service: str, look: Look, turns: Turns, until: datetime
    ) -> list[Claim]:
        """Claim directives of the service, as they are allotted."""
        room, waiting = turns.room(service), list[Waiting]()
        if room <= 0:
            return []
        for mode in Mode:
            waiting += await look.waiting(service, mode, turns.last(service, mode), room)
        claims = await self._claim_each(look.lapsed(), until)
        listed = [each.queue for each in waiting]
        shares = turns.allot(service, listed) if waiting else {}
        waiting += [await look.of(queue) for queue in shares if queue not in listed]
        for queue, heads in waiting:
            share = shares.get(queue, 0)
            rows = await look.rows(heads, share) if share > 0 else []
            claims += await self._claim_each(look.lapsed(), until)
            claims += await self._claim_each(rows, until, share)
        return claims

    async def _claim_each(
        self, rows: Sequence[Row], until: datetime, most: int | None = None
    ) -> list[Claim]:
        """Claim the first of the rows, up to `most`, unless too many of them are no row yet or
        another's by now; all if None."""
        claims = list[Claim]()
        for tried, row in enumerate(rows):
            if most is not None and (len(claims) >= most or tried - len(claims) >= MISSES):
                break
            claim = await self._claim(row, until)
            if claim is not None:
                claims.append(claim)
        return claims

    async def _claim(self, row: Row, until: datetime) -> Claim | None:
        place, job_id = Place(PENDING, row.partition, row.key), row.values["job_id"]
        read, outgoing = await self._jobs.load_with_outbox(job_id, row.values["outbox_id"])
        is_gone = read.head is not None and read.head.is_tombstone
        if outgoing is None and not is_gone:
            return None
        if outgoing is None or not _is_wanted(outgoing, place):
            await self._indexes.drop(place)
            return None
        return await self._holds.take(_free(outgoing, _seen(row), read.stored), until)


class _Adoption(NamedTuple):
    lease: timedelta
    adopter: Adopter


class _Seen(NamedTuple):
    """An index row, as it was when nobody held it."""

    etag: str
    tries: int


def _seen(row: Row) -> _Seen:
    return _Seen(row.etag, row.values["tries"])


def _free(outgoing: Outgoing, seen: _Seen, stored: Stored | None) -> Claim:
    """What a claim of a row that nobody holds would be."""
    row, token = outgoing.row, Hold(outgoing.pending, None, seen.etag, outgoing.etag)
    version = stored.version if stored else None
    return Claim(job_id_of(row), row.kind, row, seen.tries, token, version, stored)


def _claim_of(row: OutboxRow, hold: Hold, stored: Stored) -> Claim:
    return Claim(stored.aggregate.job.job_id, row.kind, row, 0, hold, stored.version, stored)


def _is_wanted(outgoing: Outgoing, place: Place) -> bool:
    return outgoing.state is OutboxState.PENDING and outgoing.pending == place
