"""Group commit: writes of many callers in one transaction, so that durability costs one fsync.

A caller's write waits in a queue. Whoever finds nobody at work takes all that wait and commits them
together; what arrives during the commit is the next group. Every caller is answered after the
commit, also those whose write failed or found a conflict: what they were told depends on writes of
the same group. A commit that fails fails all of them.

Each member succeeds or fails as if under a savepoint of its own. But a savepoint makes SQLite copy
every page that is changed under it, which costs more than the change; and members that fail hardly
ever have changed anything: they find a conflict in their first statement. So a group is first run
without. If a member fails after it has changed something, all is rolled back and the group is run
again, this time each under its savepoint.

The statements run in the event loop's thread and only the commit, which waits for the disk, in
another. The other way round, each of the many short statements would give up the interpreter's lock
and a busy loop would give it back milliseconds later.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from lucius_orchestrator.ports.ledger import LedgerUnavailable

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], Any]
_AT_ONCE = 512  # members of a group: bounds how long the loop is kept from other things
_ROUNDS = 16
"""Turns of the loop between two groups. An answer sets off work: a directive goes out, a service in
this process replies to it. What comes of it in so many turns is decided and written together."""


class _Member(NamedTuple):
    work: Work
    answer: asyncio.Future[Any]


class _Outcome(NamedTuple):
    member: _Member
    value: Any
    error: Exception | None


class GroupCommit:
    """The one writer of this process. `connection` is used by nobody else, in autocommit mode and
    with a busy timeout of zero; `patience` is how many seconds a group waits for writers of other
    processes."""

    def __init__(self, connection: sqlite3.Connection, patience: float) -> None:
        self._connection = connection
        self._patience = patience
        self._waiting: deque[_Member] = deque()
        self._thread = ThreadPoolExecutor(1, "ledger-commit")
        self._patient: list[asyncio.Future[None]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._closed = False

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run the work in a transaction; return what it returned once that is durable."""
        if self._closed:
            raise LedgerUnavailable("the ledger is closed")
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Member(work, answer))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        return await answer

    async def ready(self) -> None:
        """Wait for the group that is being written; what is asked for then belongs to the next."""
        if self._flushing is not None:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._patient.append(turn)
            await turn

    async def close(self) -> None:
        """Finish what was asked for, then close the connection."""
        if self._closed:
            return
        self._closed = True
        if self._flushing is not None:
            await self._flushing
        self._connection.close()
        self._thread.shutdown()

    async def _flush(self) -> None:
        try:
            await self._gather()
            while self._waiting:
                await self._flush_group()
                await self._gather()
        finally:
            self._flushing = None
            self._let_in()

    async def _gather(self) -> None:
        """Whoever is ready to write by the end belongs to the next group."""
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
        self._let_in()
        await asyncio.sleep(0)

    def _let_in(self) -> None:
        patient, self._patient = self._patient, []
        for turn in patient:
            if not turn.done():
                turn.set_result(None)

    async def _flush_group(self) -> None:
        count = min(len(self._waiting), _AT_ONCE)
        members = [self._waiting.popleft() for _ in range(count)]
        try:
            await self._begin()
            outcomes = self._run_together(members) or await self._run_apart(members)
            await self._in_thread(self._connection.commit)
        except (sqlite3.Error, LedgerUnavailable) as error:
            self._roll_back()
            outcomes = [_failed(member, error) for member in members]
        except BaseException:  # the loop ends: nobody shall wait for an answer that never comes
            for member in members:
                member.answer.cancel()
            raise
        for outcome in outcomes:
            _tell(outcome)

    async def _begin(self) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            await self._in_thread(self._begin_patiently)

    def _begin_patiently(self) -> None:
        self._connection.execute(f"PRAGMA busy_timeout = {int(self._patience * 1000)}")
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        finally:
            self._connection.execute("PRAGMA busy_timeout = 0")

    def _run_together(self, members: Sequence[_Member]) -> list[_Outcome] | None:
        """None if one has failed half-way."""
        connection, outcomes = self._connection, []
        for member in members:
            changes = connection.total_changes
            try:
                outcomes.append(_Outcome(member, member.work(connection), None))
            except Exception as error:
                if not connection.in_transaction or connection.total_changes != changes:
                    return None
                outcomes.append(_failed(member, error))
        return outcomes

    async def _run_apart(self, members: Sequence[_Member]) -> list[_Outcome]:
        self._roll_back()
        await self._begin()
        return [self._run_alone(member) for member in members]

    def _run_alone(self, member: _Member) -> _Outcome:
        connection = self._connection
        connection.execute("SAVEPOINT member")
        try:
            value = member.work(connection)
        except Exception as error:
            if not connection.in_transaction:  # the whole transaction is gone: disk full, say
                raise LedgerUnavailable(f"SQLite: {error}") from error
            connection.execute("ROLLBACK TO member")
            return _failed(member, error)
        finally:
            if connection.in_transaction:
                connection.execute("RELEASE member")
        return _Outcome(member, value, None)

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.rollback()

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _failed(member: _Member, error: Exception) -> _Outcome:
    if not isinstance(error, sqlite3.Error):
        return _Outcome(member, None, error)
    unavailable = LedgerUnavailable(f"SQLite: {error}")
    unavailable.__cause__ = error
    return _Outcome(member, None, unavailable)


def _tell(outcome: _Outcome) -> None:
    member, value, error = outcome
    if member.answer.done():  # its caller was cancelled
        return
    if error is None:
        member.answer.set_result(value)
    else:
        member.answer.set_exception(error)
