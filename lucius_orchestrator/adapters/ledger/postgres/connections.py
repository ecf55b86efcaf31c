"""The connections of one process: a pool for the verbs, and one of its own for whoever listens.

Errors of the driver end here: what leaves is an error of the ledger.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import AsyncClientCursor, AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from lucius_orchestrator.adapters.ledger.postgres import statements as sql
from lucius_orchestrator.ports.ledger import LedgerUnavailable, Saturated, Scope, UnknownSchema
from lucius_outbox.errors import SchemaMismatch
from lucius_outbox.publishing import is_cancelled
from lucius_outbox.redaction import redacted

Connection = AsyncConnection[Any]
_FULL = {f"lucius_ledger_full_{scope.lower()}": scope for scope in Scope}
_PREPARED = 250  # statements per connection: an update has as many forms as it can have fields
_RECONNECT = 1.0  # seconds
_LISTEN = 1.0  # seconds until a cancellation that the driver has swallowed is noticed
_log = logging.getLogger(__name__)


class Connections:
    """`patience` is how long a verb waits for a connection, and for each lock."""

    def __init__(self, conninfo: str, size: int, patience: timedelta) -> None:
        self._conninfo = conninfo
        self._patience = patience
        self._pool = AsyncConnectionPool[Connection](
            conninfo,
            kwargs={"autocommit": True},
            min_size=min(2, size),
            max_size=size,
            timeout=patience.total_seconds(),
            configure=self._configure,
            open=False,
        )

    async def open(self) -> None:
        await self._pool.open()

    async def close(self) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """In autocommit mode: one statement is one round trip."""
        with translated():
            async with self._pool.connection() as connection:
                try:
                    yield connection
                finally:
                    await _close_if_interrupted(connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["Transaction"]:
        async with self.connection() as connection:
            await connection.execute("BEGIN")
            transaction = Transaction(connection)
            yield transaction  # after an error the pool rolls back
            await transaction.commit()

    async def listen(self, names: Collection[str], wake: Callable[[], None]) -> None:
        """On a connection of its own: the pool would lack it for as long as somebody listens."""
        while True:
            try:
                await self._listen(names, wake)
            except psycopg.Error as error:
                _log.warning("ledger.listen_lost", extra={"error": redacted(str(error))})
                await asyncio.sleep(_RECONNECT)

    async def _listen(self, names: Collection[str], wake: Callable[[], None]) -> None:
        connecting = AsyncConnection.connect(self._conninfo, autocommit=True)
        async with await connecting as connection:
            await connection.execute(sql.LISTEN)
            wake()  # for what was committed while nobody listened
            while True:
                async with aclosing(connection.notifies(timeout=_LISTEN)) as notices:
                    async for notice in notices:
                        if notice.payload in names:
                            wake()
                if is_cancelled():
                    raise asyncio.CancelledError

    async def _configure(self, connection: Connection) -> None:
        connection.prepared_max = _PREPARED
        milliseconds = self._patience // timedelta(milliseconds=1)
        await connection.execute(sql.CONFIGURE, (f"{milliseconds}ms",))


class Transaction:
    """Begun. Statements that lock what everybody wants are kept for the end: they travel with the
    commit, so that nobody waits for this client."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._statements: list[str] = []
        self._values: list[Any] = []

    def at_the_end(self, statement: str, *values: Any) -> None:
        self._statements.append(statement)
        self._values += values

    async def commit(self) -> None:
        script = ";".join([*self._statements, "COMMIT"])
        # Values are bound by the client: the server takes several statements only without any.
        await AsyncClientCursor(self.connection).execute(script.encode(), self._values)


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
        raise UnknownSchema(f"PostgreSQL: {error}") from error
    except SchemaMismatch as error:
        raise UnknownSchema(str(error)) from error
    except psycopg.Error as error:
        scope = _FULL.get(error.diag.constraint_name or "")
        if scope is not None:
            raise Saturated(scope) from error
        raise LedgerUnavailable(f"PostgreSQL: {error}") from error


async def _close_if_interrupted(connection: Connection) -> None:
    """In the middle of a statement nothing else can be asked; the pool makes a new connection."""
    if connection.info.transaction_status is TransactionStatus.ACTIVE:
        await connection.close()
