"""Directives of the release before queues, in the ledgers that keep their rows in SQL."""

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from psycopg import AsyncConnection

from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.ports.ledger import Backlog
from tests.ledger.backends import Backend, Clock, PostgresBackend, SqliteBackend
from tests.ledger.jobs import LEASE, World, ids
from tests.ledger.test_queues import OCR, SIS, STRANGE, Turns, claim, claimed, queue, queued

Execute = Callable[[str], Awaitable[list[Any]]]
ROWS = "lucius_outbox_messages"
OF_OLD_RELEASE = f"UPDATE {ROWS} SET queue = ''"


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest) -> Backend:
    backend: Backend = request.getfixturevalue(f"{request.param}_backend")
    return backend


@pytest.fixture
def execute(backend: Backend) -> Execute:
    async def on_sqlite(statement: str) -> list[Any]:
        assert isinstance(backend, SqliteBackend)
        with sqlite3.connect(backend._path) as connection:
            rows = connection.execute(statement).fetchall()
        connection.close()
        return rows

    async def on_postgres(statement: str) -> list[Any]:
        assert isinstance(backend, PostgresBackend)
        async with await AsyncConnection.connect(backend._uri) as connection:
            await connection.execute(f"SET search_path = {backend._schema}".encode())
            cursor = await connection.execute(statement.encode())
            return await cursor.fetchall() if cursor.description else []

    return on_sqlite if isinstance(backend, SqliteBackend) else on_postgres


async def upgrade(backend: Backend, execute: Execute) -> None:
    """Make the tables those of the release before, then open them again."""
    await execute(OF_OLD_RELEASE)
    await execute("DROP TABLE lucius_ledger_reports")
    await execute("ALTER TABLE lucius_ledger_steps DROP COLUMN turn")
    await execute("DELETE FROM lucius_ledger_schema WHERE version >= 2")
    await backend.reopen()


async def test_directives_that_the_release_before_left_behind_get_their_queues(
    backend: Backend, world: World, execute: Execute, clock: Clock
) -> None:
    for tenant in STRANGE:
        await queued(world, tenant, mode=Mode.BURST)
    (lapsing,) = await queued(world, "a", SIS)
    await claim(backend.ledger, Turns({SIS: 1}))
    invocation = await world.create("b", engine=Engine.TEMPORAL)
    await invocation.opened()
    before = await execute(f"SELECT id, queue FROM {ROWS} WHERE queue IS NOT NULL ORDER BY id")
    await upgrade(backend, execute)
    kept = f"SELECT id, queue FROM {ROWS} WHERE queue <> '' ORDER BY id"
    assert await execute(kept) == before
    assert len(before) == len(STRANGE) + 1
    clock.advance(seconds=31)
    assert await claimed(backend.ledger, Turns({})) == [lapsing.job_id]


async def test_a_directive_with_a_nul_does_not_stop_the_migration(
    backend: Backend, world: World, execute: Execute
) -> None:
    (job,) = await queued(world, "a")
    (other,) = await world.create_many(1, "b", workspace_ref={"uri": "a\0\\u0000"})
    await upgrade(backend, execute)
    turns = Turns({OCR: 5, "ocr": 5, "": 5})
    assert sorted(await claimed(backend.ledger, turns)) == sorted(ids([job, other]))


async def test_rows_of_no_queue_are_those_of_a_service_without_a_name(
    backend: Backend, world: World, execute: Execute
) -> None:
    """The oldest first, as many as there is room."""
    ledger = backend.ledger
    old = [*await queued(world, "b", count=2), *await queued(world, "a", count=2)]
    await execute(OF_OLD_RELEASE)
    new = await queued(world, "a")
    assert await claimed(ledger, Turns({})) == []
    assert await claimed(ledger, Turns({"": 3})) == ids(old[:3])
    turns = Turns({"": 3, OCR: 3})
    assert await claimed(ledger, turns) == ids([old[3], *new])
    assert sorted(turns.asked) == ["", OCR]
    assert list(turns.waiting) == [OCR]


async def test_rows_of_no_queue_are_in_the_backlog_of_their_service(
    backend: Backend, world: World, execute: Execute
) -> None:
    first, _ = await queued(world, "a", SIS, count=2)
    await execute(OF_OLD_RELEASE)
    lane, oldest = first.job.route.lane, first.directives[0].created_at
    assert await backend.ledger.backlogs() == [Backlog(SIS, lane, 2, oldest)]


async def test_without_anything_to_claim_the_write_lock_is_not_taken(
    sqlite_backend: SqliteBackend, clock: Clock
) -> None:
    """Neither when no service has room, nor when all rows of the queues are postponed."""
    ledger = sqlite_backend.ledger
    world = World(ledger, clock)
    await queued(world, "a")
    await ledger.postpone(await claim(ledger, Turns({OCR: 1})), "the bus is unavailable")
    await queued(world, "a", SIS)
    impatient = await SqliteLedger.open(sqlite_backend._path, clock=clock)
    other = sqlite3.connect(sqlite_backend._path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    turns = Turns({OCR: 5}, {queue("a"): 5})
    assert await impatient.claim_in_turn(turns, LEASE) == []
    assert turns.waiting == {OCR: [queue("a")]}
    other.close()
    await impatient.close()
