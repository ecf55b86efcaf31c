"""One connection in a thread of its own, so that no fsync stops the event loop.

What the thread is asked for it does in that order. So whoever goes away in the middle of something
asks for a rollback, and the next one's transaction begins after it.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any, TypeVar

from lucius_artifacts.catalogue.ending import to_its_end
from lucius_artifacts.catalogue.sql.session import Session
from lucius_artifacts.catalogue.sql.statements import insert
from lucius_artifacts.catalogue.sql.tables import Table
from lucius_artifacts.errors import Invalid, Unavailable
from lucius_outbox.errors import SchemaMismatch
from lucius_outbox.message import Message
from lucius_outbox.sqlite import enqueue
from lucius_outbox.sqlite.times import microseconds, moment

T = TypeVar("T")
Row = TypeVar("Row")


class Line:
    """One transaction at a time. `connection` is used by nobody else, and is closed with it."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection = connection
        self._thread = ThreadPoolExecutor(1, name)
        self._turn = asyncio.Lock()
        self._closed = False

    @asynccontextmanager
    async def transaction(self, begin: str) -> AsyncIterator["SqliteSession"]:
        """Committed at the end; rolled back when the body raises."""
        async with self._turn:
            if self._closed:
                raise Unavailable("the catalogue is closed")
            await self._begin(begin)
            session = SqliteSession(self, self._connection)
            try:
                yield session
                session.require_sound()
                await self.run(self._commit)
            except BaseException:
                # The thread comes to it after a commit that was under way: that one is ended.
                await to_its_end(self.run(self._roll_back))
                raise

    async def run(self, work: Callable[[], T]) -> T:
        """In the thread. A caller that is cancelled does not wait for it, nor is it undone."""

        def guarded() -> T:
            with translated():
                return work()

        return await asyncio.shield(
            asyncio.get_running_loop().run_in_executor(self._thread, guarded)
        )

    async def close(self) -> None:
        """After the transaction that is open."""
        async with self._turn:
            if self._closed:
                return
            self._closed = True
            await to_its_end(self.run(self._connection.close))
            self._thread.shutdown()

    async def _begin(self, begin: str) -> None:
        try:
            await self.run(lambda: self._connection.execute(begin))
        except asyncio.CancelledError:
            # Not waited for: it may be long until another process lets it begin.
            self._thread.submit(self._roll_back)
            raise

    def _commit(self) -> None:
        require_open(self._connection)
        self._connection.commit()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.rollback()


class SqliteSession(Session):
    def __init__(self, line: Line, connection: sqlite3.Connection) -> None:
        self._line = line
        self._connection = connection

    def moment(self, value: Any) -> datetime:
        return moment(value)

    async def rows(self, statement: str, values: Mapping[str, Any]) -> list[Any]:
        bound = _bound(values)
        return await self.run(lambda c: c.execute(statement, bound).fetchall())

    async def write(self, statement: str, values: Mapping[str, Any]) -> int:
        bound = _bound(values)
        return await self.run(lambda c: c.execute(statement, bound).rowcount)

    async def insert_all(self, table: Table[Row], rows: Sequence[Row]) -> None:
        bound = [_bound(table.values(row)) for row in rows]
        await self.run(lambda c: c.executemany(insert(table), bound))

    async def emit(self, message: Message) -> None:
        await self.run(lambda c: enqueue(c, message))

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def in_transaction() -> T:
            require_open(self._connection)
            return work(self._connection)

        try:
            return await self._line.run(in_transaction)
        except (Invalid, Unavailable) as error:
            self.failure = self.failure or error
            raise


def require_open(connection: sqlite3.Connection) -> None:
    """Some errors, a full disk say, end a transaction by themselves; what comes then would commit
    statement by statement."""
    if not connection.in_transaction:
        raise Unavailable("SQLite: the transaction has ended")


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise Unavailable(f"SQLite: {error}") from error
    except SchemaMismatch as error:
        raise Unavailable(str(error)) from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise Invalid("value", f"cannot be kept by SQLite: {error}") from error


def _bound(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: microseconds(value) if isinstance(value, datetime) else value
        for name, value in values.items()
    }
