"""The store on PostgreSQL: every verb is a transaction of its own, on a connection of a pool."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from lucius_outbox.errors import InvalidSettings, LeaseLost, SchemaMismatch, StoreUnavailable
from lucius_outbox.message import Claimed, Dead, Failure
from lucius_outbox.postgres import schema
from lucius_outbox.postgres import statements as sql
from lucius_outbox.postgres.rows import OnDead, PostgresRows, Transaction
from lucius_outbox.retry import RetryPolicy
from lucius_outbox.store import Buried, Replayed, TopicStats
from lucius_outbox.telemetry import listen_lost, replayed

T = TypeVar("T")
Pool = AsyncConnectionPool[Any]
_RECONNECT = 1.0  # seconds


class PostgresStore:
    """Works on the caller's pool, and leaves it open. One connection of it listens for commits
    while a dispatcher runs, so the pool must allow at least two."""

    def __init__(
        self,
        pool: Pool,
        namespace: str,
        *,
        policy: RetryPolicy | None = None,
        on_dead: OnDead | None = None,
        clock: Callable[[], datetime] | None = None,
        chance: Callable[[], float] | None = None,
    ) -> None:
        if pool.max_size < 2:
            raise InvalidSettings("the pool needs max_size >= 2: one connection listens")
        self._pool = pool
        self._rows = PostgresRows(
            namespace,
            policy=policy or RetryPolicy(),
            on_dead=on_dead,
            clock=clock,
            chance=chance,
        )

    @property
    def namespace(self) -> str:
        return self._rows.namespace

    @property
    def worker_id(self) -> str:
        return self._rows.worker_id

    async def listen(self, wake: Callable[[], None]) -> None:
        while True:
            try:
                await self._listen(wake)
            except StoreUnavailable as error:
                listen_lost(self.namespace, error)
                await asyncio.sleep(_RECONNECT)

    async def check_schema(self) -> None:
        async with self._connection() as connection:
            await schema.check(connection)

    async def claim_batch(self, size: int, lease: timedelta) -> list[Claimed]:
        async with self._connection() as connection:
            return await self._rows.claim_batch(connection, size, lease)

    async def ack(self, claims: Sequence[Claimed]) -> None:
        # Rows of one claim without keys are one statement, which needs no transaction around it.
        kinds = {(claimed.claim_no, claimed.ordering_key) for claimed in claims}
        if len(kinds) == 1 and claims[0].ordering_key is None:
            async with self._connection() as connection:
                await self._rows.ack(connection, claims)
        else:
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
        return count

    async def forbid_replay(self, forbidden: bool = True) -> None:
        await self._write(lambda transaction: self._rows.forbid_replay(transaction, forbidden))

    async def replays(self, limit: int = 100) -> list[Replayed]:
        async with self._connection() as connection:
            return await self._rows.replays(connection, limit)

    async def dead(self, limit: int = 100) -> list[Dead]:
        async with self._connection() as connection:
            return await self._rows.dead(connection, limit)

    async def stats(self, *, delivered: bool = False) -> list[TopicStats]:
        async with self._connection() as connection:
            return await self._rows.stats(connection, delivered=delivered)

    async def prune(self, older_than: timedelta, limit: int = 1000) -> int:
        async with self._connection() as connection:
            return await self._rows.prune(connection, older_than, limit)

    async def _listen(self, wake: Callable[[], None]) -> None:
        async with self._connection() as connection:
            await connection.execute(f"LISTEN {sql.CHANNEL}")
            try:
                wake()  # for what was committed while nobody listened
                async with aclosing(connection.notifies()) as notices:
                    async for notice in notices:
                        if notice.payload == self.namespace:
                            wake()
            finally:
                if not connection.broken:
                    await connection.execute(f"UNLISTEN {sql.CHANNEL}")

    async def _write(self, verb: Callable[[Transaction], Awaitable[T]]) -> T:
        """Commits also when some leases were lost: the other rows are settled all the same."""
        lost: LeaseLost
        async with self._connection() as connection, connection.transaction():
            try:
                return await verb(connection)
            except LeaseLost as error:
                lost = error
        raise lost

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """In autocommit mode, so that one statement is one round trip."""
        try:
            async with self._pool.connection() as connection:
                autocommit = connection.autocommit
                await connection.set_autocommit(True)
                try:
                    yield connection
                finally:
                    await _give_back(connection, autocommit)
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
            raise SchemaMismatch(0, len(schema.MIGRATIONS)) from error
        except (psycopg.Error, PoolTimeout, PoolClosed) as error:
            raise StoreUnavailable(f"PostgreSQL: {error}") from error


async def _give_back(connection: AsyncConnection[Any], autocommit: bool) -> None:
    """As it came; one that was interrupted at work is closed, and the pool makes a new one."""
    if connection.info.transaction_status is TransactionStatus.IDLE:
        await connection.set_autocommit(autocommit)
    else:
        await connection.close()
