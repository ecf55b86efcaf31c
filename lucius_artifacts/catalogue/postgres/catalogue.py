"""The catalogue on PostgreSQL. Several processes may share a database; each has a pool."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Self, TypeVar

from psycopg import AsyncConnection

from lucius_artifacts.catalogue.postgres.connections import Connections, Raced, translated
from lucius_artifacts.catalogue.postgres.gate import Gate
from lucius_artifacts.catalogue.postgres.session import PostgresSession
from lucius_artifacts.catalogue.sql.reader import SqlReader
from lucius_artifacts.catalogue.sql.transaction import SqlTransaction
from lucius_artifacts.ports.catalogue import Reader, Transaction
from lucius_outbox.postgres import schema as outbox_schema
from lucius_outbox.retry import EqualJitter, RetryPolicy

T = TypeVar("T")
SCHEMA = outbox_schema.Schema("lucius_artifacts", __package__)
RACES = RetryPolicy(
    max_attempts=12,
    backoff=EqualJitter(timedelta(milliseconds=5), timedelta(milliseconds=500)),
)
"""How often a change that met others is run, and how long it waits for them to be through."""

_AMONG_OTHERS = 2  # runs; later ones meet no other change of this process
_CHANGE = "BEGIN ISOLATION LEVEL SERIALIZABLE"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresCatalogue:
    """Made by `open`."""

    def __init__(self, connections: Connections, races: RetryPolicy) -> None:
        self._connections = connections
        self._races = races
        self._gate = Gate()
        self._chance = Random().random  # noqa: S311 - spreads retries, guards nothing

    @classmethod
    async def open(
        cls,
        conninfo: str,
        *,
        pool_size: int = 10,
        patience: timedelta = timedelta(seconds=10),
        races: RetryPolicy = RACES,
    ) -> Self:
        """Bring the tables to this release's schema: in the schema that the search path finds.

        `patience` is how long a transaction waits for one of `pool_size` connections, and for each
        lock. `Unavailable`, also if a newer release has made the tables.
        """
        connections = Connections(conninfo, pool_size, patience)
        with translated():
            await _migrate(conninfo)
            await connections.open()
        return cls(connections, races)

    async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        attempts = 0
        while True:
            alone = attempts >= _AMONG_OTHERS
            try:
                async with self._gate.alone() if alone else self._gate.among_others():
                    return await self._run(_CHANGE, lambda session: work(SqlTransaction(session)))
            except Raced as race:
                attempts += 1
                await self._pause(attempts, race)

    async def read(self, work: Callable[[Reader], Awaitable[T]]) -> T:
        return await self._run(_READ, lambda session: work(SqlReader(session)))

    async def check(self) -> None:
        async with self._connections.connection() as connection:
            await outbox_schema.check(connection)
            await SCHEMA.check(connection)

    async def close(self) -> None:
        await self._connections.close()

    async def _pause(self, attempts: int, race: Raced) -> None:
        delay = self._races.delay_after(attempts, self._chance())
        if delay is None:
            raise race
        await asyncio.sleep(delay.total_seconds())

    async def _run(self, begin: str, work: Callable[[PostgresSession], Awaitable[T]]) -> T:
        async with self._connections.connection() as connection:
            await connection.execute(begin)
            session = PostgresSession(connection)
            try:
                result = await work(session)
            except Exception as error:
                if session.raced in {None, error}:
                    raise
                raise session.raced from error  # whatever the work has made of it
            await session.commit()
            return result


async def _migrate(conninfo: str) -> None:
    async with await AsyncConnection.connect(conninfo) as connection, connection.transaction():
        await outbox_schema.migrate(connection)
        await SCHEMA.migrate(connection)
