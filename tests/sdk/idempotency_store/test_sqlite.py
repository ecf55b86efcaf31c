"""The SQLite file: shared, killed, locked, full of old records, or no database at all."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from lucius_sdk.idempotency_store import (
    RETENTION,
    ClaimState,
    Conflict,
    StepKey,
    StoreUnavailable,
    StoreUnusable,
)
from lucius_sdk.idempotency_store.sqlite import SqliteStore
from lucius_sdk.idempotency_store.sqlite.file import SqliteFile
from lucius_sdk.testing.clock import FakeClock
from tests import sqlite_syncs
from tests.runner.deadlines import DEADLINE, PROCESS_DEADLINE
from tests.sdk.idempotency_store.steps import KEY, key, record

ROOT = Path(__file__).parents[3]
SOON = timedelta(milliseconds=50)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some" / "folder" / "dedup.db"


def writer(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.sdk.idempotency_store.writer", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """As by another process that writes and does not come to an end."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.close()


def frames(path: Path) -> int:
    """Of the write-ahead log: at least two for each commit."""
    connection = sqlite3.connect(path)
    _, frames, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    connection.close()
    return int(frames)


def rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT count(*) FROM dedup").fetchone()
    connection.close()
    return int(count)


def test_two_processes_on_one_file_never_have_the_same_claim(path: Path) -> None:
    """Both also make the file."""
    count = 300
    processes = [writer("claim", str(path), owner, str(count)) for owner in ("a", "b")]
    printed = [process.communicate(timeout=PROCESS_DEADLINE)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    claimed = [int(line) for text in printed for line in text.split()]
    assert sorted(claimed) == list(range(count))


@pytest.mark.parametrize("after", [1, 57, 400])
async def test_a_kill_loses_nothing_that_was_answered(path: Path, after: int) -> None:
    process = writer("write", str(path))
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(after)]
    process.send_signal(signal.SIGKILL)
    lines += process.stdout.read().splitlines(keepends=True)
    process.stdout.close()
    process.wait()
    answered = [map(int, line.split()) for line in lines if line.endswith("\n")]
    store = SqliteStore(path)
    for number, epoch in answered:
        found = await store.read(key(number))
        assert found is not None
        assert found.record.epoch >= epoch
    await store.write(StepKey("job", "after"), record(), None)
    await store.close()


async def test_what_is_written_at_once_is_one_commit(path: Path) -> None:
    store = SqliteStore(path)
    await store.write(KEY, record(), None)
    before = frames(path)
    await asyncio.gather(*(store.write(key(100 + n), record(), None) for n in range(100)))
    assert frames(path) - before < 100
    await store.close()


async def test_a_conflict_in_a_group_costs_one_more_try_and_no_more(path: Path) -> None:
    store = SqliteStore(path)
    await store.write(key(5), record(), None)
    before = frames(path)
    writes = [store.write(key(n), record(), None) for n in range(100)]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 1
    assert frames(path) - before < 100
    await store.close()


async def test_a_text_that_cannot_be_stored_fails_alone(path: Path) -> None:
    store = SqliteStore(path)
    keys = [key(1), StepKey("job_\ud800", "step_01"), key(2)]
    writes = [store.write(one, record(), None) for one in keys]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [str, UnicodeEncodeError, str]
    await store.check()
    await store.close()


async def test_a_writer_of_another_process_is_waited_for(path: Path) -> None:
    store = SqliteStore(path, patience=timedelta(seconds=30))
    await store.check()
    lock = locked(path)
    lock.__enter__()
    writing = asyncio.create_task(store.write(KEY, record(), None))
    done, _ = await asyncio.wait([writing], timeout=SOON.total_seconds())
    assert not done
    lock.__exit__(None, None, None)
    async with asyncio.timeout(DEADLINE):
        await writing
    await store.close()


async def test_a_file_that_stays_locked_is_unavailable_and_nothing_of_the_group_happened(
    path: Path,
) -> None:
    store = SqliteStore(path, patience=SOON)
    await store.check()
    with locked(path):
        writes = [store.write(key(n), record(), None) for n in range(10)]
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        with pytest.raises(StoreUnavailable):
            await store.check()
    assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)
    assert len({id(outcome) for outcome in outcomes}) == 10
    assert rows(path) == 0
    await store.write(KEY, record(), None)
    await store.close()


@pytest.mark.parametrize("is_contended", [True, False])
async def test_a_full_disk_is_unavailable_and_nothing_of_the_group_happened(
    path: Path, is_contended: bool
) -> None:
    store = SqliteStore(path)
    await store.write(key(0), record(), None)
    await store._ask(_no_more_pages)
    first = 0 if is_contended else 1
    writes = [store.write(key(n), record(), None) for n in range(first, 100)]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)
    assert rows(path) == 1
    await store.write(key(1), record(), None)
    await store.close()


def _no_more_pages(file: SqliteFile) -> None:
    """For this connection; the next has no limit."""
    with file._connected() as connection:
        connection.execute("PRAGMA max_page_count = 1")


async def test_reading_does_not_wait_for_writers(path: Path) -> None:
    store = SqliteStore(path, patience=SOON)
    await store.write(KEY, record(), None)
    with locked(path):
        assert await store.read(KEY) is not None
        assert await store.lapsed_results(record().until, 1) == []
    await store.close()


async def test_old_records_are_purged_as_new_ones_come(path: Path, clock: FakeClock) -> None:
    store = SqliteStore(path, now=clock.now)
    await asyncio.gather(*(store.write(key(n), record(), None) for n in range(450)))
    touched = StepKey("job", "touched")
    version = await store.write(touched, record(), None)
    clock.advance(RETENTION.total_seconds() / 2)
    await store.write(touched, record(epoch=2), version)
    clock.advance(RETENTION.total_seconds() / 2 + 1)
    for start in range(1000, 1500, 100):
        new = range(start, start + 100)
        await asyncio.gather(*(store.write(key(n), record(), None) for n in new))
    assert await store.read(touched) is not None
    await store.close()
    assert rows(path) == 501


async def test_nothing_is_purged_before_its_time(path: Path, clock: FakeClock) -> None:
    store = SqliteStore(path, now=clock.now)
    await store.write(KEY, record(ClaimState.REPORTED), None)
    clock.advance(RETENTION.total_seconds())
    for start in range(1000, 1500, 100):
        new = range(start, start + 100)
        await asyncio.gather(*(store.write(key(n), record(), None) for n in new))
    assert await store.read(KEY) is not None
    await store.close()


async def test_a_record_that_was_purged_and_came_again_has_another_version(
    path: Path, clock: FakeClock
) -> None:
    """So whoever held the old one writes nothing."""
    store = SqliteStore(path, now=clock.now)
    old = await store.write(KEY, record(), None)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DELETE FROM dedup")
    connection.close()
    clock.advance(1)
    new = await store.write(KEY, record(), None)
    assert new != old
    with pytest.raises(Conflict):
        await store.write(KEY, record(epoch=2), old)
    await store.close()


async def test_a_file_that_was_removed_fails_the_check(path: Path) -> None:
    store = SqliteStore(path)
    await store.check()
    path.unlink()
    with pytest.raises(StoreUnavailable):
        await store.check()
    await store.close()


async def test_a_file_that_is_no_database_is_unusable_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir or Madam, " * 100)
    store = SqliteStore(path)
    with pytest.raises(StoreUnusable):
        await store.write(KEY, record(), None)
    await store.close()
    assert path.read_text().startswith("Dear Sir")


async def test_a_file_of_a_newer_release_is_unusable(path: Path) -> None:
    store = SqliteStore(path)
    await store.check()
    await store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    store = SqliteStore(path)
    with pytest.raises(StoreUnusable):
        await store.check()
    await store.close()


async def test_a_folder_that_cannot_be_made_is_unavailable_until_it_can(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    store = SqliteStore(tmp_path / "taken" / "dedup.db")
    with pytest.raises(StoreUnavailable):
        await store.read(KEY)
    (tmp_path / "taken").unlink()
    await store.write(KEY, record(), None)
    await store.close()


async def test_what_was_answered_survives_a_loss_of_power(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store commits and closes with a write-ahead log and `synchronous = FULL`: NORMAL would
    lose the last commits. See `sqlite_syncs`."""
    moments = sqlite_syncs.watched(monkeypatch)
    store = SqliteStore(path)
    await store.write(KEY, record(), None)
    await store.close()
    assert moments == sqlite_syncs.ALL_SYNCED


async def test_no_thread_is_left_when_it_is_closed(path: Path) -> None:
    before = set(threading.enumerate())
    store = SqliteStore(path)
    await store.check()
    (thread,) = set(threading.enumerate()) - before
    await store.close()
    thread.join(DEADLINE)
    assert not thread.is_alive()


def test_a_loop_that_ends_without_closing_leaves_nobody_waiting(path: Path) -> None:
    async def write() -> None:
        await SqliteStore(path).write(KEY, record(), None)

    asyncio.run(write())

    async def read() -> None:
        store = SqliteStore(path)
        assert await store.read(KEY) is not None
        await store.close()

    asyncio.run(read())
