"""The ledger in a SQLite file. Several processes may share it; each has one writer."""

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import Self, TypeVar

from lucius_contract import timeouts
from lucius_contract.states import JobState
from lucius_orchestrator.adapters.ledger.outbox_rows import named
from lucius_orchestrator.adapters.ledger.sqlite import reads, writes
from lucius_orchestrator.adapters.ledger.sqlite.directives import SqliteDirectives
from lucius_orchestrator.adapters.ledger.sqlite.group import GroupCommit
from lucius_orchestrator.domain.aggregate import Job
from lucius_orchestrator.domain.decision import AuditEvent, Decision, OutboxKind
from lucius_orchestrator.domain.timers import Due, TimerKind
from lucius_orchestrator.ports.ledger import (
    ALL_LANES,
    Adopter,
    Backlog,
    Claim,
    Created,
    DeadLetterQuery,
    DeadLetterRow,
    DirectiveStatus,
    Found,
    InFlight,
    JobQuery,
    LedgerUnavailable,
    Limits,
    NewJob,
    Page,
    Repair,
    Reservation,
    Stored,
    TrafficReport,
    Turns,
    UnknownSchema,
)
from lucius_outbox.errors import SchemaMismatch
from lucius_outbox.sqlite import schema as outbox_schema
from lucius_outbox.sqlite.journal import create_private, use_wal
from lucius_outbox.sqlite.times import microseconds

T = TypeVar("T")
SCHEMA = outbox_schema.Schema("lucius_ledger", __package__)
_CACHE_KIB = 64 * 1024
_CHECKPOINT_PAGES = 4000


class SqliteLedger:
    """Made by `open`. Reads of one job happen in the event loop, since they take microseconds;
    lists and scans in a thread; writes in groups (see `group`)."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        directives: SqliteDirectives,
        patience: timedelta,
    ) -> None:
        self._directives = directives
        self._reader = connect()
        self._scanner = connect()
        self._writer = GroupCommit(connect(), patience.total_seconds())
        self._thread = ThreadPoolExecutor(1, "ledger-scan")
        self._wakes: list[Callable[[], None]] = []
        self._closed = False

    @classmethod
    async def open(
        cls,
        path: str | PathLike[str],
        *,
        clock: Callable[[], datetime] | None = None,
        dispatch_backoff: Sequence[timedelta] = timeouts.DISPATCH_BACKOFF,
        patience: timedelta = timedelta(seconds=10),
    ) -> Self:
        """Open the file, make it if need be, and bring its tables to this release's schema.

        `patience` is how long a write waits for other processes. UnknownSchema, LedgerUnavailable.
        """

        def connect() -> sqlite3.Connection:
            return _connect(path)

        now = clock or _utc_now
        directives = SqliteDirectives(dispatch_backoff, now, clock_is_injected=clock is not None)
        try:
            await asyncio.to_thread(_migrate, path, directives, patience)
            return cls(connect, directives, patience)
        except SchemaMismatch as error:
            raise UnknownSchema(str(error)) from error
        except sqlite3.Error as error:
            raise LedgerUnavailable(f"SQLite: {error}") from error

    async def create(
        self, reservation: Reservation, build: Callable[[str], NewJob], limits: Limits
    ) -> Created:
        created, births = await self._writer.write(
            lambda transaction: writes.create(
                transaction, self._directives, reservation, build, limits
            )
        )
        self._directives.hand_over(births.claims)
        if births.are_waiting:
            self._wake()
        return created

    async def load(self, job_id: str) -> Stored | None:
        try:
            return reads.load(self._reader, job_id)
        except sqlite3.Error as error:
            raise LedgerUnavailable(f"SQLite: {error}") from error

    async def commit(
        self, stored: Stored, decision: Decision, claim: Claim | None = None
    ) -> Stored:
        after, births = await self._writer.write(
            lambda transaction: writes.commit(
                transaction, self._directives, stored, decision, claim
            )
        )
        self._directives.hand_over(births.claims)
        if births.are_waiting or (decision.wakes_dispatcher and not decision.outbox):
            self._wake()
        return after

    async def ready(self) -> None:
        await self._writer.ready()

    async def reschedule(self, stored: Stored, due: Due | None = None) -> Stored:
        return await self._writer.write(lambda t: writes.reschedule(t, stored, due))

    async def find(self, tenant_id: str, entry: str) -> Found | None:
        return await self._scan(lambda c: reads.find(c, tenant_id, entry))

    async def jobs(self, query: JobQuery) -> Page[Job]:
        return await self._scan(lambda c: reads.jobs(c, query))

    async def events(self, job_id: str, after: int = 0, limit: int = 100) -> list[AuditEvent]:
        return await self._scan(lambda c: reads.events(c, job_id, after, limit))

    async def due(
        self, kinds: Collection[TimerKind], before: datetime, limit: int
    ) -> list[tuple[str, Due]]:
        return await self._scan(lambda c: reads.due(c, kinds, microseconds(before), limit))

    async def in_states(self, states: Collection[JobState], limit: int) -> list[str]:
        return await self._scan(lambda c: reads.in_states(c, states, limit))

    async def ended(self, before: datetime, limit: int) -> list[str]:
        return await self._scan(lambda c: reads.ended(c, microseconds(before), limit))

    async def remove(self, stored: Stored) -> None:
        await self._writer.write(lambda t: writes.remove(t, self._directives, stored))

    async def lead(self, lanes: Collection[int], _lease: timedelta) -> frozenset[int]:
        return frozenset(lanes)

    async def claim(
        self,
        kind: OutboxKind,
        size: int,
        lease: timedelta,
        _lanes: Collection[int] = ALL_LANES,
    ) -> list[Claim]:
        if not await self._has_claimable(kind):
            return []
        return await self._writer.write(lambda t: self._directives.claim(t, kind, size, lease))

    async def claim_in_turn(
        self, turns: Turns, lease: timedelta, _lanes: Collection[int] = ALL_LANES
    ) -> list[Claim]:
        try:
            sizes = self._directives.allotted(self._reader, turns)
            if not self._directives.has_claimable_in(self._reader, sizes):
                return []
        except sqlite3.Error as error:
            raise LedgerUnavailable(f"SQLite: {error}") from error
        return await self._writer.write(lambda t: self._directives.claim_queues(t, sizes, lease))

    async def take(
        self, job_id: str, step_id: str, attempt_no: int, lease: timedelta
    ) -> Claim | None:
        def take(transaction: sqlite3.Connection) -> Claim | None:
            stored = reads.load(transaction, job_id)
            name = named(stored, step_id, attempt_no)
            if stored is None or name is None:
                return None
            return self._directives.take(transaction, stored, name, lease)

        return await self._writer.write(take)

    def adopt(self, kind: OutboxKind, lease: timedelta, adopter: Adopter) -> Callable[[], None]:
        return self._directives.adopt(kind, lease, adopter)

    async def release(self, claims: Sequence[Claim]) -> None:
        await self._writer.write(lambda t: self._directives.release(t, claims))
        self._wake()

    async def postpone(self, claims: Sequence[Claim], error: str) -> None:
        await self._writer.write(lambda t: self._directives.postpone(t, claims, error))

    async def discard(self, claims: Sequence[Claim]) -> None:
        await self._writer.write(lambda t: self._directives.discard(t, claims))

    async def directive(self, job_id: str, step_id: str, attempt_no: int) -> DirectiveStatus | None:
        name = named(await self.load(job_id), step_id, attempt_no)
        if name is None:
            return None
        return await self._scan(lambda c: self._directives.status(c, name))

    async def in_flight(self, tenant_id: str | None = None) -> InFlight:
        return await self._scan(lambda c: reads.in_flight(c, tenant_id))

    async def backlog(self) -> dict[int, int]:
        return await self._scan(self._directives.backlog)

    async def backlogs(self) -> list[Backlog]:
        return await self._scan(self._directives.backlogs)

    async def publish_report(self, report: TrafficReport) -> None:
        await self._writer.write(lambda t: writes.publish_report(t, report))

    async def reports(self, since: datetime) -> list[TrafficReport]:
        return await self._scan(lambda c: reads.reports(c, microseconds(since)))

    async def withdraw_report(self, process_id: str) -> None:
        await self._writer.write(lambda t: writes.withdraw_report(t, process_id))

    async def dead_letters(self, query: DeadLetterQuery) -> Page[DeadLetterRow]:
        return await self._scan(lambda c: reads.dead_letters(c, query))

    async def bury(self, letter: DeadLetterRow) -> bool:
        return await self._writer.write(lambda t: writes.bury(t, letter))

    async def mark_redriven(self, job_id: str, by: str) -> int:
        return await self._writer.write(lambda t: writes.mark_redriven(t, job_id, by))

    async def repair(self, limit: int) -> list[Repair]:
        return await self._writer.write(lambda t: writes.repair(t, limit))

    async def prune(self, before: datetime, limit: int) -> int:
        return await self._writer.write(lambda t: writes.prune(t, self._directives, before, limit))

    async def check(self) -> None:
        def check(connection: sqlite3.Connection) -> None:
            SCHEMA.check(connection)
            outbox_schema.check(connection)

        try:
            await self._scan(check)
        except SchemaMismatch as error:
            raise UnknownSchema(str(error)) from error

    async def listen(self, wake: Callable[[], None]) -> None:
        """Hears commits of this process only."""
        self._wakes.append(wake)
        try:
            await asyncio.Event().wait()
        finally:
            self._wakes.remove(wake)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._writer.close()
        self._thread.shutdown()
        self._reader.close()
        self._scanner.close()

    async def _has_claimable(self, kind: OutboxKind) -> bool:
        try:
            return self._directives.has_claimable(self._reader, kind)
        except sqlite3.Error as error:
            raise LedgerUnavailable(f"SQLite: {error}") from error

    async def _scan(self, read: Callable[[sqlite3.Connection], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, read, self._scanner)
        except (sqlite3.Error, RuntimeError) as error:
            raise LedgerUnavailable(f"SQLite: {error}") from error

    def _wake(self) -> None:
        for wake in self._wakes:
            wake()


def _connect(path: str | PathLike[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    return connection


def _migrate(path: str | PathLike[str], directives: SqliteDirectives, patience: timedelta) -> None:
    create_private(path)
    connection = sqlite3.connect(path, timeout=patience.total_seconds(), isolation_level=None)
    try:
        use_wal(connection, patience)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        outbox_schema.migrate(connection)
        SCHEMA.migrate(connection)
        directives.forbid_replay(connection)
        connection.commit()
    finally:
        connection.close()


def _utc_now() -> datetime:
    return datetime.now(UTC)
