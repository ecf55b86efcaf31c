"""Creating a job: its entry, its slots and its rows lie in five partitions.

In this order: the leash, the entry, the slots, the other index rows, the job. Until the last of
these nothing counts. There are no locks and no timeouts: whoever meets an entry whose job is not
there helps, by writing the same job under the same id, and the insert of the JOB row decides who
created it. A creation is given up only where a tombstone stands, after which nobody can finish it.

An entry that was never used and a limit that is full are found by reading, so that a refusal for
want of room leaves no rows. Only if the room is lost between the look and the taking are slots
given back; others may be helping then, and so the id is given up first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from lucius_orchestrator.adapters.ledger.tables import partition
from lucius_orchestrator.adapters.ledger.tables.directives import Birth, Directives
from lucius_orchestrator.adapters.ledger.tables.ending import Ending
from lucius_orchestrator.adapters.ledger.tables.entries import Entries, Entry
from lucius_orchestrator.adapters.ledger.tables.indexes import Etags, Indexes, Intent, listed
from lucius_orchestrator.adapters.ledger.tables.partition import (
    ABSENT,
    RACES,
    Head,
    IndexRow,
    JobPartitions,
    TableVersion,
)
from lucius_orchestrator.adapters.ledger.tables.slots import Slots, shares
from lucius_orchestrator.adapters.ledger.tables.store import EntityExists, Operation
from lucius_orchestrator.domain.aggregate import Job
from lucius_orchestrator.domain.timers import Due, next_due
from lucius_orchestrator.ports.ledger import (
    Created,
    Found,
    IdempotencyConflict,
    LedgerUnavailable,
    Limits,
    NewJob,
    Reservation,
    Saturated,
    Scope,
    Stored,
    TooLarge,
)

Build = Callable[[str], NewJob]


class _Standing(NamedTuple):
    """What is known of an entry: itself, and the JOB row behind it."""

    entry: Entry | None
    head: Head | None


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One try to create a job, under the id that was proposed or as somebody's helper."""

    reservation: Reservation
    new: NewJob
    intent: Intent
    timer: Due
    leash: IndexRow
    births: list[Birth]

    @property
    def pending(self) -> list[IndexRow]:
        return [birth.pending for birth in self.births]

    @property
    def job(self) -> Job:
        return self.new.aggregate.job

    @property
    def helps(self) -> bool:
        return self.job.job_id != self.reservation.job_id

    def stored(self, etag: str) -> Stored:
        version = TableVersion(etag, self.leash.place)
        return Stored(self.new.aggregate, version, self.timer)

    def operations(self) -> list[Operation]:
        head = {
            "token": self.intent.token,
            "timer": self.timer,
            "leash": self.leash.place,
            "tenant_id": self.reservation.tenant_id,
            "entry": self.reservation.entry,
        }
        return [
            *partition.creation(self.new.aggregate, head),
            *partition.additions(self.new.decision, self.pending),
        ]


class Creation:
    def __init__(
        self,
        jobs: JobPartitions,
        indexes: Indexes,
        entries: Entries,
        slots: Slots,
        directives: Directives,
        ending: Ending,
        *,
        clock: Callable[[], datetime],
        new_token: Callable[[], str],
    ) -> None:
        self._jobs = jobs
        self._indexes = indexes
        self._entries = entries
        self._slots = slots
        self._directives = directives
        self._ending = ending
        self._clock = clock
        self._new_token = new_token

    async def create(self, reservation: Reservation, build: Build, limits: Limits) -> Created:
        for _ in range(RACES):
            standing = await self._standing(reservation.tenant_id, reservation.entry)
            earlier = _answer(standing, reservation)
            if earlier is not None:
                return earlier
            job_id = standing.entry.job_id if standing.entry else reservation.job_id
            attempt = self._attempt(reservation, build(job_id))
            created = await self._write(attempt, limits, standing)
            if created is not None:
                return created
        raise LedgerUnavailable("too many others create under the same entry")

    async def find(self, tenant_id: str, entry: str) -> Found | None:
        found, head = await self._standing(tenant_id, entry)
        return Found(found.job_id, found.content_hash) if found and head else None

    async def _standing(self, tenant_id: str, name: str) -> _Standing:
        """An entry whose id was given up is none; it is only not deleted yet."""
        for _ in range(RACES):
            entry = await self._entries.get(tenant_id, name)
            head = await self._jobs.head(entry.job_id) if entry else None
            if entry is None or head is None or not head.is_tombstone:
                return _Standing(entry, head)
            await self._entries.drop(entry)
        raise LedgerUnavailable("too many others create under the same entry")

    def _attempt(self, reservation: Reservation, new: NewJob) -> _Attempt:
        job, timer = new.aggregate.job, next_due(new.aggregate)
        assert timer is not None, "a new job has its SLA at least"
        intent = Intent(job.job_id, ABSENT, self._new_token(), self._clock())
        leash = intent.leash(
            timer,
            tenant_id=job.tenant_id,
            mode=job.route.mode.value,
            entry=reservation.entry,
        )
        births = self._directives.births(new.decision, job.route.lane, intent)
        return _Attempt(reservation, new, intent, timer, leash, births)

    async def _write(
        self, attempt: _Attempt, limits: Limits, standing: _Standing
    ) -> Created | None:
        """None: the entry is another's by now, or its id was given up. Look again."""
        job, job_id = attempt.job, attempt.job.job_id
        wanted = shares(job.tenant_id, job.route.mode, job_id, limits)
        try:
            await self._slots.look(job_id, wanted)
        except Saturated:
            # Perhaps by those who create under this very entry, which wins over the limits.
            if await self._standing(job.tenant_id, attempt.reservation.entry) == standing:
                raise
            return None
        await self._indexes.announce([attempt.leash])
        if standing.entry is None and not await self._entries.insert(attempt.reservation):
            await self._indexes.drop(attempt.leash.place)
            return None
        for share in wanted:
            full = await self._slots.take(job_id, share)
            if full is not None:
                return await self._refused(attempt, full)
        return await self._insert(attempt)

    async def _insert(self, attempt: _Attempt) -> Created | None:
        job, job_id = attempt.job, attempt.job.job_id
        row = IndexRow(listed(job.tenant_id, job_id), {"job_id": job_id})
        announced = await self._indexes.announce([row, *attempt.pending])
        try:
            written = await self._jobs.write(job_id, attempt.operations())
        except EntityExists:
            return await self._overtaken(attempt)
        except TooLarge:
            await self._indexes.drop(*(row.place for row in attempt.pending))
            if await self._jobs.entomb(job_id):
                await self._give_up(attempt)
            raise
        return await self._created(attempt, written.etag, {**announced, **written.etags})

    async def _created(self, attempt: _Attempt, etag: str, etags: Etags) -> Created:
        stored = attempt.stored(etag)
        await self._directives.born(stored, attempt.births, etags)
        return Created(attempt.job.job_id, stored)

    async def _refused(self, attempt: _Attempt, full: Scope) -> Created | None:
        """There was room, and it is gone. Give back what was taken, unless a helper found room."""
        if not await self._jobs.entomb(attempt.job.job_id):
            return await self._overtaken(attempt)
        if await self._give_up(attempt):
            return None
        raise Saturated(full)

    async def _overtaken(self, attempt: _Attempt) -> Created | None:
        """There is a JOB row: this creator's own, a helper's, or a tombstone."""
        job_id, leash = attempt.job.job_id, attempt.leash
        head = await self._jobs.head(job_id)
        if head is not None and head.token == attempt.intent.token:
            return await self._created(attempt, head.etag, {})
        await self._indexes.withdraw(attempt.pending)
        if head is not None and head.job is not None:
            # The slots may have been taken once more after the job's end gave them back.
            if head.is_terminal:
                await self._ending.finish(head.job, leash.place)
            await self._indexes.drop(leash.place)
            return Created(job_id, None)
        if not await self._jobs.entomb(job_id):
            await self._indexes.drop(leash.place)
            return None
        if await self._give_up(attempt) or attempt.helps:
            return None
        raise LedgerUnavailable(f"{job_id} was given up; propose another id")

    async def _give_up(self, attempt: _Attempt) -> bool:
        """Whether another job stands, or is being written, under the entry by now."""
        tenant_id, entry, *_ = attempt.reservation
        await self._ending.give_up(attempt.leash.values, attempt.leash.place)
        return (await self._standing(tenant_id, entry)).entry is not None


def _answer(standing: _Standing, reservation: Reservation) -> Created | None:
    """What an entry says, or None if its job is yet to be written."""
    entry, head = standing
    if entry is None:
        return None
    if entry.content_hash != reservation.content_hash:
        raise IdempotencyConflict(entry.job_id)
    return Created(entry.job_id, None) if head else None
