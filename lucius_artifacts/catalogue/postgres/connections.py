"""The connections of one process. Errors of the driver end here."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import AsyncConnection, errors
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from lucius_artifacts.errors import Invalid, Unavailable
from lucius_outbox.errors import SchemaMismatch

Connection = AsyncConnection[Any]
_RACES = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)

# Whoever reads a whole table at SERIALIZABLE is in the way of all who write to it, and of a small
# table the planner would rather read all: so it is held to the indexes, which bring every page in
# its order. Its estimates are absurd then, and no reason to compile anything.
_CONFIGURE = """
SELECT set_config('TimeZone', 'UTC', false),
       set_config('DateStyle', 'ISO', false),
       set_config('idle_in_transaction_session_timeout', '60s', false),
       set_config('lock_timeout', %s, false),
       set_config('enable_seqscan', 'off', false),
       set_config('enable_bitmapscan', 'off', false),
       set_config('jit', 'off', false)
"""


class Raced(Unavailable):
    """The transaction met another one: run alone it might succeed."""


class Connections:
    """`patience` is how long a transaction waits for a connection, and for each lock."""

    def __init__(self, conninfo: str, size: int, patience: timedelta) -> None:
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
        """In autocommit mode. When the body raises, its transaction is rolled back."""
        with translated():
            async with self._pool.connection() as connection:
                try:
                    yield connection
                finally:
                    await _close_if_interrupted(connection)

    async def _configure(self, connection: Connection) -> None:
        milliseconds = self._patience // timedelta(milliseconds=1)
        await connection.execute(_CONFIGURE, (f"{milliseconds}ms",))


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except _RACES as error:
        raise Raced(f"PostgreSQL: {error}") from error
    except (errors.DataError, UnicodeEncodeError) as error:
        raise Invalid("value", f"cannot be kept by PostgreSQL: {error}") from error
    except psycopg.Error as error:
        raise Unavailable(f"PostgreSQL: {error}") from error
    except SchemaMismatch as error:
        raise Unavailable(str(error)) from error


async def _close_if_interrupted(connection: Connection) -> None:
    """In the middle of a statement nothing else can be asked; the pool makes a new connection."""
    if connection.info.transaction_status is TransactionStatus.ACTIVE:
        await connection.close()
