"""What only SQLite has: one file, one writer, a thread for each connection."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lucius_artifacts.catalogue.sqlite import SqliteCatalogue
from lucius_artifacts.catalogue.sqlite.line import Line
from lucius_artifacts.errors import Unavailable
from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger
from lucius_outbox.sqlite.times import microseconds
from tests import sqlite_syncs
from tests.artifacts import rows
from tests.artifacts.catalogue import plans
from tests.artifacts.catalogue.asking import ask, put
from tests.artifacts.catalogue.backends import SqliteBackend
from tests.artifacts.rows import DIGEST, NOW
from tests.runner.deadlines import DEADLINE


@contextmanager
def writer(backend: SqliteBackend) -> Iterator[sqlite3.Connection]:
    """Another process that holds the write lock."""
    with closing(sqlite3.connect(backend.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.rollback()


async def test_a_writer_that_does_not_let_go_is_named_so(sqlite_backend: SqliteBackend) -> None:
    impatient = await sqlite_backend.open(patience=timedelta(milliseconds=10))
    with writer(sqlite_backend):
        with pytest.raises(Unavailable, match="locked"):
            await put(impatient, rows.upload())
        assert await ask(impatient).upload("up_1") is None
        await impatient.check()
    await put(impatient, rows.upload())
    assert await ask(impatient).upload("up_1") == rows.upload()
    await impatient.close()


async def test_a_change_waits_for_the_writer_of_another_process(
    sqlite_backend: SqliteBackend,
) -> None:
    with writer(sqlite_backend):
        change = asyncio.create_task(put(sqlite_backend.catalogue, rows.upload()))
        await asyncio.wait([change], timeout=0.02)
        assert not change.done()
    await change
    assert await ask(sqlite_backend.catalogue).upload("up_1") == rows.upload()


async def test_who_is_cancelled_waiting_for_a_writer_goes_at_once_and_takes_no_lock(
    sqlite_backend: SqliteBackend,
) -> None:
    patient = await sqlite_backend.open(patience=timedelta(seconds=2 * DEADLINE))
    with writer(sqlite_backend):
        change = asyncio.create_task(put(patient, rows.upload()))
        await asyncio.wait([change], timeout=0.02)
        change.cancel()
        async with asyncio.timeout(DEADLINE):
            with pytest.raises(asyncio.CancelledError):
                await change
    await patient.close()
    await put(sqlite_backend.catalogue, rows.blob())
    with writer(sqlite_backend) as connection:
        count = "SELECT count(*) FROM lucius_artifacts_uploads"
        assert connection.execute(count).fetchone() == (0,)
    assert await ask(sqlite_backend.catalogue).blob(DIGEST) == rows.blob()


async def test_a_file_is_written_ahead_and_closed_for_good(sqlite_backend: SqliteBackend) -> None:
    await put(sqlite_backend.catalogue, rows.upload())
    with closing(sqlite3.connect(sqlite_backend.path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    await sqlite_backend.catalogue.close()
    assert [path.name for path in sqlite_backend.path.parent.iterdir()] == ["catalogue.db"]


async def test_what_was_changed_survives_a_loss_of_power(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both connections commit and close with a write-ahead log and `synchronous = FULL`: NORMAL
    would lose the last commits. See `sqlite_syncs`."""
    moments = sqlite_syncs.watched(monkeypatch)
    catalogue = await SqliteCatalogue.open(tmp_path / "catalogue.db")
    await put(catalogue, rows.upload())
    assert await ask(catalogue).upload("up_1") == rows.upload()
    await catalogue.close()
    assert moments == sqlite_syncs.ALL_SYNCED


async def test_a_path_that_is_no_database_is_named_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="SQLite"):
        await SqliteCatalogue.open(tmp_path / "no" / "folder.db")
    (tmp_path / "letter.db").write_text("Dear Sir or Madam, " * 100)
    with pytest.raises(Unavailable, match="not a database"):
        await SqliteCatalogue.open(tmp_path / "letter.db")


@pytest.mark.parametrize(("prefix", "version"), [("lucius_artifacts", 2), ("lucius_outbox", 2)])
async def test_a_schema_of_a_newer_release_is_refused(
    sqlite_backend: SqliteBackend, prefix: str, version: int
) -> None:
    with closing(sqlite3.connect(sqlite_backend.path)) as connection, connection:
        connection.execute(f"INSERT INTO {prefix}_schema VALUES (99, 'later', 0)")
    expected = (
        f"the schema {prefix} has version 99, not {version}: install the release that made it"
    )
    with pytest.raises(Unavailable, match=expected):
        await sqlite_backend.open()
    with pytest.raises(Unavailable, match=expected):
        await sqlite_backend.catalogue.check()


async def test_the_tables_lie_beside_those_of_the_ledger(tmp_path: Path) -> None:
    ledger = await SqliteLedger.open(tmp_path / "lucius.db")
    catalogue = await SqliteCatalogue.open(tmp_path / "lucius.db")
    await put(catalogue, rows.upload())
    await ledger.check()
    await catalogue.check()
    await catalogue.close()
    await ledger.close()


INSERT = "INSERT INTO things VALUES (:n)"


@pytest.fixture
async def things(tmp_path: Path) -> AsyncIterator[sqlite3.Connection]:
    """To be the connection of a line."""
    path = tmp_path / "things.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as things:
        things.execute("PRAGMA journal_mode = WAL")
        things.execute("CREATE TABLE things (n INTEGER)")
        yield things


async def test_a_transaction_that_ended_by_itself_writes_nothing_more(
    things: sqlite3.Connection,
) -> None:
    """Where a full disk, say, makes SQLite roll back."""
    line = Line(things, "test")

    async def end_early(statement: str) -> None:
        async with line.transaction("BEGIN IMMEDIATE") as session:
            await session.write(INSERT, {"n": 1})
            await session.run(lambda c: c.rollback())
            if statement:
                await session.write(statement, {"n": 2})

    for statement in (INSERT, ""):
        with pytest.raises(Unavailable, match="ended"):
            await end_early(statement)
    async with line.transaction("BEGIN") as session:
        assert await session.rows("SELECT count(*) FROM things", {}) == [(0,)]
    await line.close()


async def test_a_commit_that_was_begun_has_ended_when_its_caller_is_gone(
    things: sqlite3.Connection, tmp_path: Path
) -> None:
    committing, go_on = threading.Event(), threading.Event()

    def stop_at_commit(statement: str) -> None:
        if statement == "COMMIT":
            committing.set()
            go_on.wait(DEADLINE)

    async def insert() -> None:
        async with line.transaction("BEGIN IMMEDIATE") as session:
            await session.write(INSERT, {"n": 1})

    things.set_trace_callback(stop_at_commit)
    line = Line(things, "test")
    inserting = asyncio.create_task(insert())
    await asyncio.to_thread(committing.wait, DEADLINE)
    for _ in range(3):
        inserting.cancel()
        await asyncio.wait([inserting], timeout=0.01)
        assert not inserting.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await inserting
    with closing(sqlite3.connect(tmp_path / "things.db")) as other:
        assert other.execute("SELECT count(*) FROM things").fetchone() == (1,)
    await line.close()


async def test_the_event_loop_goes_on_while_a_change_waits(sqlite_backend: SqliteBackend) -> None:
    with writer(sqlite_backend):
        change = asyncio.create_task(put(sqlite_backend.catalogue, rows.upload()))
        for _ in range(50):
            await asyncio.wait([change], timeout=0.001)
        assert not change.done()
    await change


async def test_no_verb_reads_a_whole_table(sqlite_backend: SqliteBackend) -> None:
    values = plans.values(now=microseconds(NOW), needed_before=microseconds(NOW))
    await plans.fill(sqlite_backend.catalogue)
    with closing(sqlite3.connect(sqlite_backend.path)) as connection:
        for statistics in ("SELECT 1", "ANALYZE"):
            connection.execute(statistics)
            for name, statement in plans.statements().items():
                plan = _explained(connection, statement, values)
                whole = [step for step in plan if _reads_all(step)]
                assert not whole or name in plans.WHOLE, f"{name}: {plan}"
                assert name == "REFERENCES" or "TEMP" not in str(plan), f"{name}: {plan}"


def _explained(connection: sqlite3.Connection, statement: str, values: dict[str, Any]) -> list[str]:
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


def _reads_all(step: str) -> bool:
    """Or an index that holds one row at most, or a subquery with a limit."""
    few = ("lucius_artifacts_runs_current", "SCAN page", "SCAN by_", "SCAN CONSTANT ROW")
    return step.startswith("SCAN") and not any(part in step for part in few)
