"""Both databases behind one face, so that every test runs on both."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from lucius_outbox import Dead, Message, Receipt, RetryPolicy, Store, postgres, sqlite
from lucius_outbox.sqlite.times import moment
from tests.runner.deadlines import DEADLINE

TABLE = "lucius_outbox_messages"
NAMESPACE = "tests"
_TIMES = ("next_attempt_at", "locked_until", "created_at", "updated_at")


class Clock:
    """Stands still until it is moved; begins after every real time that `enqueue` may write."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC) + timedelta(hours=1)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **duration: float) -> None:
        self.now += timedelta(**duration)


class Backend(Protocol):
    name: str

    def store(
        self,
        clock: Callable[[], datetime] | None = None,
        *,
        namespace: str = NAMESPACE,
        policy: RetryPolicy | None = None,
        on_dead_insert: str | None = None,
    ) -> Store:
        """`on_dead_insert` names a table into which the id of each dead row goes."""

    def transaction(self, *, commit: bool = True) -> Any:
        """`async with` it: a transaction of a team, committed or rolled back at the end."""

    async def enqueue(self, transaction: Any, *messages: Message) -> list[Receipt]: ...

    async def execute(self, transaction: Any, statement: str) -> list[Any]: ...

    async def rows(self) -> list[dict[str, Any]]:
        """Every row of the outbox, in the order of commits."""

    async def close(self) -> None: ...


class SqliteBackend:
    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "outbox.db"
        self._stack = AsyncExitStack()
        with self._connect() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            sqlite.migrate(connection)
        connection.close()

    def store(
        self,
        clock: Callable[[], datetime] | None = None,
        *,
        namespace: str = NAMESPACE,
        policy: RetryPolicy | None = None,
        on_dead_insert: str | None = None,
    ) -> sqlite.SqliteStore:
        def on_dead(transaction: sqlite3.Connection, dead: Dead) -> None:
            transaction.execute(f"INSERT INTO {on_dead_insert} VALUES (?)", (dead.id,))

        store = sqlite.SqliteStore(
            self.path,
            namespace,
            policy=policy,
            on_dead=on_dead if on_dead_insert else None,
            clock=clock,
        )
        self._stack.push_async_callback(store.close)
        return store

    @asynccontextmanager
    async def transaction(self, *, commit: bool = True) -> AsyncIterator[sqlite3.Connection]:
        connection = self._connect()
        try:
            yield connection
            (connection.commit if commit else connection.rollback)()
        finally:
            connection.close()

    async def enqueue(self, transaction: Any, *messages: Message) -> list[Receipt]:
        return sqlite.enqueue_all(transaction, messages)

    async def execute(self, transaction: Any, statement: str) -> list[Any]:
        rows: list[Any] = transaction.execute(statement).fetchall()
        return rows

    async def rows(self) -> list[dict[str, Any]]:
        async with self.transaction() as connection:
            connection.row_factory = sqlite3.Row
            rows = [dict(row) for row in connection.execute(f"SELECT * FROM {TABLE} ORDER BY seq")]
        return [
            {
                name: moment(value) if name in _TIMES and value is not None else value
                for name, value in row.items()
            }
            for row in rows
        ]

    async def close(self) -> None:
        await self._stack.aclose()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=DEADLINE)


class PostgresBackend:
    name = "postgres"

    def __init__(self, uri: str, schema: str) -> None:
        self.uri = make_conninfo(uri, options=f"-c search_path={schema}")
        self.pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
            self.uri, min_size=1, max_size=12, open=False
        )
        self._schema = schema

    async def open(self) -> None:
        await self.pool.open()
        async with self.pool.connection() as connection:
            await connection.execute(f"CREATE SCHEMA {self._schema}")
            await postgres.migrate(connection)

    def store(
        self,
        clock: Callable[[], datetime] | None = None,
        *,
        namespace: str = NAMESPACE,
        policy: RetryPolicy | None = None,
        on_dead_insert: str | None = None,
    ) -> postgres.PostgresStore:
        async def on_dead(transaction: AsyncConnection[Any], dead: Dead) -> None:
            await transaction.execute(f"INSERT INTO {on_dead_insert} VALUES (%s)", (dead.id,))

        return postgres.PostgresStore(
            self.pool,
            namespace,
            policy=policy,
            on_dead=on_dead if on_dead_insert else None,
            clock=clock,
        )

    @asynccontextmanager
    async def transaction(self, *, commit: bool = True) -> AsyncIterator[AsyncConnection[Any]]:
        async with self.pool.connection() as connection:
            yield connection
            if not commit:
                await connection.rollback()

    async def enqueue(self, transaction: Any, *messages: Message) -> list[Receipt]:
        return await postgres.enqueue_all(transaction, messages)

    async def execute(self, transaction: Any, statement: str) -> list[Any]:
        cursor = await transaction.execute(statement)
        return await cursor.fetchall() if cursor.description else []

    async def rows(self) -> list[dict[str, Any]]:
        async with self.pool.connection() as connection:
            cursor = connection.cursor(row_factory=dict_row)
            await cursor.execute(f"SELECT * FROM {TABLE} ORDER BY seq")
            return [
                {**row, "id": str(row["id"]), "locked_by": _text(row["locked_by"])}
                for row in await cursor.fetchall()
            ]

    async def close(self) -> None:
        async with self.pool.connection() as connection:
            await connection.execute(f"DROP SCHEMA {self._schema} CASCADE")
        await self.pool.close()


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def message(number: int = 0, **fields: Any) -> Message:
    return Message(**{"namespace": NAMESPACE, "topic": "t", "payload": {"n": number}, **fields})


async def commit(backend: Backend, *messages: Message) -> Sequence[Receipt]:
    """Enqueue in a transaction that does nothing else."""
    async with backend.transaction() as transaction:
        return await backend.enqueue(transaction, *messages)


def numbers(rows: Sequence[Any]) -> list[int]:
    return [row.payload["n"] for row in rows]
