"""The ledger on PostgreSQL. Several processes may share a database; each has a pool."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Self, TypeVar

from psycopg import AsyncConnection

from lucius_contract import timeouts
from lucius_contract.states import JobState
from lucius_orchestrator.adapters.ledger.outbox_rows import LOOKED_FOR, named
from lucius_orchestrator.adapters.ledger.postgres import reads, writes
from lucius_orchestrator.adapters.ledger.postgres.connections import (
    Connection,
    Connections,
    Transaction,
    translated,
)
from lucius_orchestrator.adapters.ledger.postgres.directives import PostgresDirectives
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
    Limits,
    NewJob,
    Page,
    Repair,
    Reservation,
    Stored,
    TrafficReport,
    Turns,
)
from lucius_outbox.postgres import schema as outbox_schema

T = TypeVar("T")
SCHEMA = outbox_schema.Schema("lucius_ledger", __package__)


class PostgresLedger:
    """Made by `open`. Most verbs are one statement and one round trip; those that write rows of the
    outbox too are transactions."""

    def __init__(
        self,
        connections: Connections,
        directives: PostgresDirectives,
        clock: Callable[[], datetime],
    ) -> None:
        self._connections = connections
        self._directives = directives
        self._clock = clock

    @classmethod
    async def open(
        cls,
        conninfo: str,
        *,
        clock: Callable[[], datetime] | None = None,
        dispatch_backoff: Sequence[timedelta] = timeouts.DISPATCH_BACKOFF,
        pool_size: int = 10,
        patience: timedelta = timedelta(seconds=10),
    ) -> Self:
        """Bring the tables to this release's schema: in the schema that the search path finds.

        Without a `clock` leases are measured by the database's. `patience` is how long a verb waits
        for one of `pool_size` connections, and for each lock. UnknownSchema, LedgerUnavailable.
        """
        directives = PostgresDirectives(dispatch_backoff, clock)
        connections = Connections(conninfo, pool_size, patience)
        with translated():
            await _migrate(conninfo, directives)
            await connections.open()
        return cls(connections, directives, clock or _utc_now)

    async def create(
        self, reservation: Reservation, build: Callable[[str], NewJob], limits: Limits
    ) -> Created:
        return await self._write(
            lambda t: writes.create(t, self._directives, reservation, build, limits)
        )

    async def load(self, job_id: str) -> Stored | None:
        return await self._run(lambda c: reads.load(c, job_id))

    async def commit(
        self, stored: Stored, decision: Decision, claim: Claim | None = None
    ) -> Stored:
        settles = claim is not None and bool(decision.marks)
        if not (settles or decision.wakes_dispatcher or writes.tells(stored, decision)):
            return await self._run(lambda c: writes.commit(c, stored, decision))
        return await self._write(
            lambda t: writes.commit_with_outbox(t, self._directives, stored, decision, claim)
        )

    async def ready(self) -> None:
        """Commits do not wait for each other."""

    async def reschedule(self, stored: Stored, due: Due | None = None) -> Stored:
        return await self._run(lambda c: writes.reschedule(c, stored, due))

    async def find(self, tenant_id: str, entry: str) -> Found | None:
        return await self._run(lambda c: reads.find(c, tenant_id, entry))

    async def jobs(self, query: JobQuery) -> Page[Job]:
        return await self._run(lambda c: reads.jobs(c, query))

    async def events(self, job_id: str, after: int = 0, limit: int = 100) -> list[AuditEvent]:
        return await self._run(lambda c: reads.events(c, job_id, after, limit))

    async def due(
        self, kinds: Collection[TimerKind], before: datetime, limit: int
    ) -> list[tuple[str, Due]]:
        return await self._run(lambda c: reads.due(c, kinds, before, limit))

    async def in_states(self, states: Collection[JobState], limit: int) -> list[str]:
        return await self._run(lambda c: reads.in_states(c, states, limit))

    async def ended(self, before: datetime, limit: int) -> list[str]:
        return await self._run(lambda c: reads.ended(c, before, limit))

    async def remove(self, stored: Stored) -> None:
        await self._run(lambda c: writes.remove(c, stored))

    async def lead(self, lanes: Collection[int], _lease: timedelta) -> frozenset[int]:
        return frozenset(lanes)

    async def claim(
        self,
        kind: OutboxKind,
        size: int,
        lease: timedelta,
        _lanes: Collection[int] = ALL_LANES,
    ) -> list[Claim]:
        return await self._run(lambda c: self._directives.claim(c, kind, size, lease))

    async def claim_in_turn(
        self, turns: Turns, lease: timedelta, _lanes: Collection[int] = ALL_LANES
    ) -> list[Claim]:
        return await self._run(lambda c: self._directives.claim_in_turn(c, turns, lease))

    async def take(
        self, job_id: str, step_id: str, attempt_no: int, lease: timedelta
    ) -> Claim | None:
        async with self._connections.connection() as connection:
            stored = await reads.load(connection, job_id)
            name = named(stored, step_id, attempt_no)
            if stored is None or name is None:
                return None
            return await self._directives.take(connection, stored, name, lease)

    def adopt(self, _kind: OutboxKind, _lease: timedelta, _adopter: Adopter) -> Callable[[], None]:
        return lambda: None

    async def release(self, claims: Sequence[Claim]) -> None:
        await self._run(lambda c: self._directives.release(c, claims))

    async def postpone(self, claims: Sequence[Claim], error: str) -> None:
        await self._run(lambda c: self._directives.postpone(c, claims, error))

    async def discard(self, claims: Sequence[Claim]) -> None:
        await self._run(lambda c: self._directives.discard(c, claims))

    async def directive(self, job_id: str, step_id: str, attempt_no: int) -> DirectiveStatus | None:
        async with self._connections.connection() as connection:
            name = named(await reads.load(connection, job_id), step_id, attempt_no)
            return await self._directives.status(connection, name) if name else None

    async def in_flight(self, tenant_id: str | None = None) -> InFlight:
        return await self._run(lambda c: reads.in_flight(c, tenant_id))

    async def backlog(self) -> dict[int, int]:
        return await self._run(self._directives.backlog)

    async def backlogs(self) -> list[Backlog]:
        return await self._run(self._directives.backlogs)

    async def publish_report(self, report: TrafficReport) -> None:
        await self._run(lambda c: writes.publish_report(c, report))

    async def reports(self, since: datetime) -> list[TrafficReport]:
        return await self._run(lambda c: reads.reports(c, since))

    async def withdraw_report(self, process_id: str) -> None:
        await self._run(lambda c: writes.withdraw_report(c, process_id))

    async def dead_letters(self, query: DeadLetterQuery) -> Page[DeadLetterRow]:
        return await self._run(lambda c: reads.dead_letters(c, query))

    async def bury(self, letter: DeadLetterRow) -> bool:
        return await self._run(lambda c: writes.bury(c, letter))

    async def mark_redriven(self, job_id: str, by: str) -> int:
        return await self._run(lambda c: writes.mark_redriven(c, job_id, by))

    async def repair(self, limit: int) -> list[Repair]:
        if not await self._run(lambda c: writes.miscounted(c, limit)):
            return []
        return await self._write(lambda t: writes.recount(t, limit))

    async def prune(self, before: datetime, limit: int) -> int:
        age = self._clock() - before
        return await self._run(lambda c: writes.prune(c, self._directives, before, age, limit))

    async def check(self) -> None:
        async with self._connections.connection() as connection:
            await outbox_schema.check(connection)
            await SCHEMA.check(connection)

    async def listen(self, wake: Callable[[], None]) -> None:
        await self._connections.listen(LOOKED_FOR, wake)

    async def close(self) -> None:
        await self._connections.close()

    async def _run(self, verb: Callable[[Connection], Awaitable[T]]) -> T:
        """Statements that each commit by themselves."""
        async with self._connections.connection() as connection:
            return await verb(connection)

    async def _write(self, verb: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self._connections.transaction() as transaction:
            return await verb(transaction)


async def _migrate(conninfo: str, directives: PostgresDirectives) -> None:
    async with await AsyncConnection.connect(conninfo) as connection, connection.transaction():
        await outbox_schema.migrate(connection)
        await SCHEMA.migrate(connection)
        await directives.forbid_replay(connection)


def _utc_now() -> datetime:
    return datetime.now(UTC)
