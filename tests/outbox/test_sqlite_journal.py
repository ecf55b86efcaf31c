"""Several may begin with one new file, and no commit to it is lost with the power."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from lucius_outbox.sqlite.journal import use_wal
from tests import sqlite_syncs
from tests.outbox.backends import SqliteBackend, commit, message

LONG = timedelta(seconds=30)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new.db"


@pytest.fixture
def other(path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody who makes the file, and has it for itself."""
    with closing(_connect(path)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield connection


class Watched(sqlite3.Connection):
    """Says when it was refused something."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.refused = Event()

    def execute(self, *args: Any) -> sqlite3.Cursor:
        try:
            return super().execute(*args)
        except sqlite3.OperationalError:
            self.refused.set()
            raise


def _connect(path: Path) -> Watched:
    """One that never waits by itself."""
    return sqlite3.connect(
        path, timeout=0, isolation_level=None, check_same_thread=False, factory=Watched
    )


def test_whoever_finds_a_new_file_locked_waits_for_it(
    path: Path, other: sqlite3.Connection
) -> None:
    with closing(_connect(path)) as connection, ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(use_wal, connection, LONG)
        assert connection.refused.wait(LONG.total_seconds())
        other.rollback()
        waiting.result()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.usefixtures("other")
def test_no_longer_than_it_is_told_to(path: Path) -> None:
    with (
        closing(_connect(path)) as connection,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        use_wal(connection, timedelta(0))


def test_what_waiting_does_not_mend_is_told_at_once(path: Path) -> None:
    path.write_bytes(b"")
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        use_wal(connection, LONG)


async def test_what_a_store_answered_survives_a_loss_of_power(
    sqlite_backend: SqliteBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store commits and closes with a write-ahead log and `synchronous = FULL`. With NORMAL the
    last acknowledgements could be lost, and their messages would go out again. See `sqlite_syncs`.
    """
    await commit(sqlite_backend, message(1), message(2))
    moments = sqlite_syncs.watched(monkeypatch)
    async with sqlite_backend.store() as store:
        first, second = await store.claim_batch(2, LONG)
        await store.ack([first])
        await store.release([second])
    assert moments == sqlite_syncs.ALL_SYNCED
