"""Migrations, and schemas that do not fit."""

import asyncio
import sqlite3
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool

import lucius_outbox.postgres.schema as postgres_schema
import lucius_outbox.sqlite.schema as sqlite_schema
from lucius_outbox import (
    Dispatcher,
    InvalidSettings,
    SchemaMismatch,
    StoreUnavailable,
    postgres,
    sqlite,
)
from lucius_outbox.schema import Migration, migrations
from tests.outbox.backends import (
    Backend,
    SqliteBackend,
    commit,
    message,
)
from tests.outbox.test_dispatcher import Recorder

NEXT = Migration(3, "next", "CREATE TABLE added (n integer);")


@pytest.mark.parametrize("schema", [sqlite_schema, postgres_schema])
def test_migrations_are_numbered_without_gaps(schema: ModuleType) -> None:
    known = schema.MIGRATIONS
    assert [migration.version for migration in known] == list(range(1, len(known) + 1))


def package_of_migrations(folder: Path, *names: str) -> None:
    (folder / "migrations").mkdir(parents=True)
    (folder / "__init__.py").touch()
    for name in names:
        (folder / "migrations" / name).write_text("SELECT 1;")


def test_a_gap_in_the_numbers_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package_of_migrations(tmp_path / "gappy", "0002_second.sql", "notes.txt")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError, match="not numbered"):
        migrations("gappy")


def test_migrations_are_in_the_order_of_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = list(range(1, 30))
    package_of_migrations(tmp_path / "many", *(f"{each:04}_step.sql" for each in reversed(numbers)))
    monkeypatch.syspath_prepend(tmp_path)
    assert [migration.version for migration in migrations("many")] == numbers


async def migrate(backend: Backend) -> None:
    async with backend.transaction() as transaction:
        if isinstance(backend, SqliteBackend):
            sqlite.migrate(transaction)
        else:
            await postgres.migrate(transaction)


async def test_migrating_twice_changes_nothing(backend: Backend) -> None:
    await commit(backend, message(1))
    await migrate(backend)
    assert len(await backend.rows()) == 1
    await backend.store().check_schema()


async def test_a_new_migration_is_applied_to_what_is_there(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    await commit(backend, message(1))
    schema = sqlite_schema if isinstance(backend, SqliteBackend) else postgres_schema
    monkeypatch.setattr(schema.OUTBOX, "migrations", (*schema.MIGRATIONS, NEXT))
    with pytest.raises(SchemaMismatch, match=r"version 2, not 3: call migrate\(\)"):
        await backend.store().check_schema()
    await migrate(backend)
    await backend.store().check_schema()
    async with backend.transaction() as transaction:
        await backend.execute(transaction, "INSERT INTO added VALUES (1)")
    assert len(await backend.rows()) == 1


async def test_a_failed_migration_leaves_nothing_behind(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = sqlite_schema if isinstance(backend, SqliteBackend) else postgres_schema
    broken = NEXT._replace(sql=NEXT.sql + "\nSELECT nonsense FROM nowhere;")
    monkeypatch.setattr(schema.OUTBOX, "migrations", (*schema.MIGRATIONS, broken))
    with pytest.raises(Exception, match="nowhere"):
        await migrate(backend)
    async with backend.transaction() as transaction:
        versions = await backend.execute(transaction, "SELECT version FROM lucius_outbox_schema")
        await backend.execute(transaction, "CREATE TABLE added (n integer)")
    assert versions == [(1,), (2,)]


async def test_a_schema_of_a_newer_release_stops_the_start(backend: Backend) -> None:
    async with backend.transaction() as transaction:
        await backend.execute(
            transaction, "INSERT INTO lucius_outbox_schema VALUES (99, 'later', current_timestamp)"
        )
    with pytest.raises(SchemaMismatch, match="install the release"):
        await migrate(backend)
    with pytest.raises(SchemaMismatch):
        await Dispatcher(backend.store(), Recorder()).run()
    with pytest.raises(SchemaMismatch):
        async with Dispatcher(backend.store(), Recorder()):
            pass


async def test_a_file_without_the_tables_says_so(tmp_path: Path) -> None:
    async with sqlite.SqliteStore(tmp_path / "empty.db", "n") as store:
        with pytest.raises(SchemaMismatch, match="migrate"):
            await store.check_schema()
        with pytest.raises(SchemaMismatch, match="migrate"):
            await store.stats()


async def test_a_database_without_the_tables_says_so(postgres_uri: str) -> None:
    address = make_conninfo(postgres_uri, options="-c search_path=nothing_here")
    async with AsyncConnectionPool[AsyncConnection[Any]](address, max_size=4, open=False) as pool:
        on_postgres = postgres.PostgresStore(pool, "n")
        with pytest.raises(SchemaMismatch, match="migrate"):
            await on_postgres.check_schema()
        with pytest.raises(SchemaMismatch, match="migrate"):
            await on_postgres.stats()


async def test_processes_that_start_together_migrate_in_turn(postgres_uri: str) -> None:
    address = make_conninfo(postgres_uri, options="-c search_path=together")

    async def start() -> None:
        async with await AsyncConnection.connect(address) as connection:
            await postgres.migrate(connection)

    async with await AsyncConnection.connect(address, autocommit=True) as connection:
        await connection.execute("CREATE SCHEMA together")
        await asyncio.gather(*(start() for _ in range(5)))
        cursor = await connection.execute("SELECT version FROM lucius_outbox_schema")
        assert await cursor.fetchall() == [(1,), (2,)]
        await connection.execute("DROP SCHEMA together CASCADE")


def test_sqlite_joins_a_transaction_that_is_open(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "outbox.db", isolation_level=None)
    connection.execute("BEGIN")
    sqlite.migrate(connection)
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    connection.close()


async def test_a_database_that_is_away_is_named_so(tmp_path: Path, postgres_uri: str) -> None:
    async with sqlite.SqliteStore(tmp_path / "no" / "folder.db", "n") as store:
        with pytest.raises(StoreUnavailable, match="SQLite"):
            await store.stats()
    pool = AsyncConnectionPool[AsyncConnection[Any]](postgres_uri, max_size=4, open=False)
    with pytest.raises(StoreUnavailable, match="PostgreSQL"):
        await postgres.PostgresStore(pool, "n").stats()


async def test_a_writer_that_does_not_let_go_is_named_so(sqlite_backend: SqliteBackend) -> None:
    await commit(sqlite_backend, message(1))
    impatient = sqlite.SqliteStore(sqlite_backend.path, "tests", busy_timeout=timedelta(0))
    async with impatient, sqlite_backend.transaction() as transaction:
        transaction.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            await impatient.claim_batch(1, timedelta(seconds=1))


async def test_a_pool_of_one_is_refused(postgres_uri: str) -> None:
    pool = AsyncConnectionPool[AsyncConnection[Any]](
        postgres_uri, min_size=1, max_size=1, open=False
    )
    with pytest.raises(InvalidSettings, match="max_size"):
        postgres.PostgresStore(pool, "n")
