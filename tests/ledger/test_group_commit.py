"""Group commit: many writes, one transaction, each as if alone, answered when durable."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from lucius_orchestrator.adapters.ledger.sqlite.group import GroupCommit
from lucius_orchestrator.ports.ledger import Conflict, LedgerUnavailable
from tests.runner.deadlines import DEADLINE

Work = Callable[[sqlite3.Connection], Any]


class Watched(sqlite3.Connection):
    """Tells when it commits, and can be made to fail or to wait there."""

    commits = 0
    failure: sqlite3.Error | None = None
    before_commit: Callable[[], None] | None = None

    def commit(self) -> None:
        if self.before_commit is not None:
            self.before_commit()
        if self.failure is not None:
            raise self.failure
        super().commit()
        self.commits += 1


def connect(path: Path) -> Watched:
    connection = sqlite3.connect(
        path, timeout=0, isolation_level=None, check_same_thread=False, factory=Watched
    )
    connection.execute("PRAGMA journal_mode = WAL")
    return connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "group.db"
    connection = connect(file)
    connection.execute("CREATE TABLE notes (n INTEGER PRIMARY KEY)")
    connection.close()
    return file


@pytest.fixture
def connection(path: Path) -> Watched:
    return connect(path)


@pytest.fixture
async def group(connection: Watched) -> AsyncIterator[GroupCommit]:
    writer = GroupCommit(connection, patience=DEADLINE)
    yield writer
    connection.failure = connection.before_commit = None
    await writer.close()


def held_at_commit(connection: Watched) -> tuple[asyncio.Event, asyncio.Event]:
    """The first event is set when the commit begins, which then waits for the second."""
    loop, begun, go_on = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def wait() -> None:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(DEADLINE)

    connection.before_commit = wait
    return begun, go_on


def note(number: int) -> Work:
    return lambda transaction: transaction.execute("INSERT INTO notes VALUES (?)", (number,))


def notes(path: Path) -> list[int]:
    connection = sqlite3.connect(path)
    try:
        return [n for (n,) in connection.execute("SELECT n FROM notes ORDER BY n")]
    finally:
        connection.close()


async def outcomes(group: GroupCommit, *works: Work) -> list[Any]:
    async with asyncio.timeout(DEADLINE):
        return await asyncio.gather(*map(group.write, works), return_exceptions=True)


def half_way(number: int, error: Exception) -> Work:
    def work(transaction: sqlite3.Connection) -> None:
        transaction.execute("INSERT INTO notes VALUES (?)", (number,))
        raise error

    return work


def refused(transaction: sqlite3.Connection) -> None:
    raise Conflict("job_1")


async def test_writes_that_come_together_share_one_commit(
    group: GroupCommit, connection: Watched, path: Path
) -> None:
    await outcomes(group, *map(note, range(100)))
    assert notes(path) == list(range(100))
    assert connection.commits == 1


async def test_what_arrives_during_a_commit_is_the_next_group(
    group: GroupCommit, connection: Watched
) -> None:
    begun, go_on = held_at_commit(connection)
    first = asyncio.create_task(group.write(note(0)))
    await asyncio.wait_for(begun.wait(), DEADLINE)
    connection.before_commit = None
    others = [asyncio.create_task(group.write(note(n))) for n in (1, 2, 3)]
    go_on.set()
    await asyncio.gather(first, *others)
    assert connection.commits == 2


async def test_nobody_is_answered_before_the_commit(
    group: GroupCommit, connection: Watched
) -> None:
    """Neither who wrote nor who found a conflict."""
    begun, go_on = held_at_commit(connection)
    tasks = [asyncio.create_task(group.write(work)) for work in (note(1), refused)]
    await asyncio.wait_for(begun.wait(), DEADLINE)
    assert [task.done() for task in tasks] == [False, False]
    go_on.set()
    await asyncio.wait(tasks, timeout=DEADLINE)
    assert tasks[0].exception() is None
    assert isinstance(tasks[1].exception(), Conflict)


async def test_a_member_that_is_refused_disturbs_no_other(group: GroupCommit, path: Path) -> None:
    answers = await outcomes(group, note(1), refused, note(2))
    assert isinstance(answers[1], Conflict)
    assert notes(path) == [1, 2]


@pytest.mark.parametrize("error", [Conflict("job_1"), TypeError("a defect")])
async def test_a_member_that_fails_half_way_leaves_nothing_and_disturbs_no_other(
    group: GroupCommit, connection: Watched, path: Path, error: Exception
) -> None:
    answers = await outcomes(group, note(1), half_way(7, error), note(2), half_way(8, error))
    assert answers[1] is error
    assert answers[3] is error
    assert notes(path) == [1, 2]
    assert connection.commits == 1


async def test_a_statement_that_fails_is_told_to_its_own_caller(
    group: GroupCommit, path: Path
) -> None:
    answers = await outcomes(group, note(1), note(1), note(2))
    assert isinstance(answers[1], LedgerUnavailable)
    assert notes(path) == [1, 2]


async def test_a_commit_that_fails_fails_all_and_the_next_group_goes_on(
    group: GroupCommit, connection: Watched, path: Path
) -> None:
    connection.failure = sqlite3.OperationalError("disk I/O error")
    answers = await outcomes(group, note(1), refused, note(2))
    assert [type(answer) for answer in answers] == [LedgerUnavailable] * 3
    connection.failure = None
    await outcomes(group, note(3))
    assert notes(path) == [3]


async def test_a_transaction_that_sqlite_gives_up_fails_all(group: GroupCommit, path: Path) -> None:
    def full(transaction: sqlite3.Connection) -> None:
        transaction.execute("INSERT INTO notes VALUES (9)")
        transaction.rollback()  # as SQLite does by itself when the disk is full
        raise sqlite3.OperationalError("database or disk is full")

    answers = await outcomes(group, note(1), full, note(2))
    assert [type(answer) for answer in answers] == [LedgerUnavailable] * 3
    assert notes(path) == []
    await outcomes(group, note(3))
    assert notes(path) == [3]


async def test_a_group_waits_for_the_writer_of_another_process(
    group: GroupCommit, path: Path
) -> None:
    other = connect(path)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(group.write(note(1)))
    await asyncio.sleep(0)
    other.execute("INSERT INTO notes VALUES (2)")
    other.commit()
    other.close()
    await asyncio.wait_for(writing, DEADLINE)
    assert notes(path) == [1, 2]


async def test_a_writer_that_never_ends_is_unavailable(path: Path) -> None:
    other = connect(path)
    other.execute("BEGIN IMMEDIATE")
    group = GroupCommit(connect(path), patience=0.01)
    with pytest.raises(LedgerUnavailable):
        await group.write(note(1))
    other.rollback()
    other.close()
    await group.write(note(2))
    await group.close()
    assert notes(path) == [2]


async def test_a_caller_that_gave_up_disturbs_nobody(group: GroupCommit, path: Path) -> None:
    tasks = [asyncio.create_task(group.write(note(n))) for n in (1, 2)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.wait(tasks, timeout=DEADLINE)
    assert 2 in notes(path)


async def test_closing_finishes_what_was_asked_for(connection: Watched, path: Path) -> None:
    group = GroupCommit(connection, patience=DEADLINE)
    writing = asyncio.create_task(group.write(note(1)))
    await asyncio.sleep(0)
    await group.close()
    await writing
    assert notes(path) == [1]
    with pytest.raises(LedgerUnavailable):
        await group.write(note(2))
    await group.close()


async def test_ready_waits_for_the_group_that_is_being_written(
    group: GroupCommit, connection: Watched
) -> None:
    await group.ready()
    begun, go_on = held_at_commit(connection)
    writing = asyncio.create_task(group.write(note(1)))
    await asyncio.wait_for(begun.wait(), DEADLINE)
    waiting = asyncio.create_task(group.ready())
    await asyncio.sleep(0)
    assert not waiting.done()
    connection.before_commit = None
    go_on.set()
    await asyncio.wait_for(asyncio.gather(writing, waiting), DEADLINE)


async def test_when_the_loop_ends_nobody_waits_for_ever(
    connection: Watched, path: Path, group: GroupCommit
) -> None:
    begun, go_on = held_at_commit(connection)
    writing = asyncio.create_task(group.write(note(1)))
    await asyncio.wait_for(begun.wait(), DEADLINE)
    flushing = next(task for task in asyncio.all_tasks() if "_flush" in repr(task.get_coro()))
    flushing.cancel()
    await asyncio.wait({writing, flushing}, timeout=DEADLINE)
    assert writing.cancelled()
    go_on.set()
    async with asyncio.timeout(DEADLINE):
        while connection.commits == 0:  # the thread needs the loop to see that it may go on
            await asyncio.sleep(0)
