"""The store on a SQLite file: every verb is a transaction of its own."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from os import PathLike
from types import TracebackType
from typing import Self, TypeVar

from lucius_outbox.errors import LeaseLost, SchemaMismatch, StoreUnavailable
from lucius_outbox.message import Claimed, Dead, Failure
from lucius_outbox.retry import RetryPolicy
from lucius_outbox.sqlite import schema
from lucius_outbox.sqlite.journal import create_private, use_wal
from lucius_outbox.sqlite.rows import OnDead, SqliteRows
from lucius_outbox.store import Buried, Replayed, TopicStats
from lucius_outbox.telemetry import replayed

T = TypeVar("T")


class SqliteStore:
    """One connection, used by one thread of its own, so that no fsync stops the event loop.

    Close it, or use it as `async with`. Several stores, in several processes, may share a file.
    `busy_timeout` is how long a verb waits for another writer before it is StoreUnavailable.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        namespace: str,
        *,
        policy: RetryPolicy | None = None,
        on_dead: OnDead | None = None,
        clock: Callable[[], datetime] | None = None,
        chance: Callable[[], float] | None = None,
        busy_timeout: timedelta = timedelta(seconds=5),
    ) -> None:
        self._rows = SqliteRows(
            namespace,
            policy=policy or RetryPolicy(),
            on_dead=on_dead,
            clock=clock,
            chance=chance,
        )
        self._path = path
        self._busy_timeout = busy_timeout
        self._thread = ThreadPoolExecutor(1, f"outbox-{namespace}")
        self._opened: sqlite3.Connection | None = None
        self._wakes: list[Callable[[], None]] = []

    @property
    def namespace(self) -> str:
        return self._rows.namespace

    @property
    def worker_id(self) -> str:
        return self._rows.worker_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._opened is not None:
            await self._in_thread(self._opened.close)
            self._opened = None
        self._thread.shutdown()

    def wake(self) -> None:
        """Say that rows were committed to this file. From any thread; no call is too many."""
        for wake in list(self._wakes):
            wake()

    async def listen(self, wake: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()

        def signal() -> None:
            loop.call_soon_threadsafe(wake)

        self._wakes.append(signal)
        try:
            await asyncio.Event().wait()
        finally:
            self._wakes.remove(signal)

    async def check_schema(self) -> None:
        await self._in_thread(lambda: schema.check(self._connection()))

    async def claim_batch(self, size: int, lease: timedelta) -> list[Claimed]:
        def claim() -> list[Claimed]:
            if not self._rows.claimable(self._connection()):
                return []
            with self._transaction() as transaction:
                return self._rows.claim_batch(transaction, size, lease)

        return await self._in_thread(claim)

    async def ack(self, claims: Sequence[Claimed]) -> None:
        await self._write(lambda transaction: self._rows.ack(transaction, claims))

    async def nack(self, failures: Sequence[Failure]) -> Buried:
        return await self._write(lambda transaction: self._rows.nack(transaction, failures))

    async def release(self, claims: Sequence[Claimed]) -> None:
        await self._write(lambda transaction: self._rows.release(transaction, claims))

    async def extend(self, claims: Sequence[Claimed], lease: timedelta) -> None:
        await self._write(lambda transaction: self._rows.extend(transaction, claims, lease))

    async def sweep_dead(self, limit: int = 100) -> Buried:
        return await self._write(lambda transaction: self._rows.sweep_dead(transaction, limit))

    async def replay(self, ids: Sequence[str], *, by: str, reason: str) -> int:
        count = await self._write(
            lambda transaction: self._rows.replay(transaction, ids, by=by, reason=reason)
        )
        replayed(self.namespace, count, by, reason)
        self.wake()
        return count

    async def forbid_replay(self, forbidden: bool = True) -> None:
        await self._write(lambda transaction: self._rows.forbid_replay(transaction, forbidden))

    async def replays(self, limit: int = 100) -> list[Replayed]:
        return await self._read(lambda connection: self._rows.replays(connection, limit))

    async def dead(self, limit: int = 100) -> list[Dead]:
        return await self._read(lambda connection: self._rows.dead(connection, limit))

    async def stats(self, *, delivered: bool = False) -> list[TopicStats]:
        return await self._read(
            lambda connection: self._rows.stats(connection, delivered=delivered)
        )

    async def prune(self, older_than: timedelta, limit: int = 1000) -> int:
        return await self._write(
            lambda transaction: self._rows.prune(transaction, older_than, limit)
        )

    async def _read(self, verb: Callable[[sqlite3.Connection], T]) -> T:
        return await self._in_thread(lambda: verb(self._connection()))

    async def _write(self, verb: Callable[[sqlite3.Connection], T]) -> T:
        def write() -> T:
            with self._transaction() as transaction:
                return verb(transaction)

        return await self._in_thread(write)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        def guarded() -> T:
            try:
                return work()
            except sqlite3.Error as error:
                raise _translated(error) from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, guarded)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Commits also when some leases were lost: the other rows are settled all the same."""
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except LeaseLost:
            connection.commit()
            raise
        except BaseException:
            connection.rollback()
            raise
        connection.commit()

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            create_private(self._path)
            self._opened = sqlite3.connect(
                self._path, timeout=self._busy_timeout.total_seconds(), isolation_level=None
            )
            use_wal(self._opened, self._busy_timeout)
            self._opened.execute("PRAGMA synchronous = FULL")
        return self._opened


def _translated(error: sqlite3.Error) -> Exception:
    if "no such table: lucius_outbox" in str(error):
        return SchemaMismatch(0, len(schema.MIGRATIONS))
    return StoreUnavailable(f"SQLite: {error}")
