"""One producer or dispatcher, as a process that may be killed at any moment.

    python -m tests.outbox.crash_process produce|dispatch ADDRESS JOURNAL NAME FIRST

ADDRESS is a PostgreSQL connection string or a path of a SQLite file. Every message has its own
number; the row `effects(n)` is committed or rolled back together with it, and is written after it:
a message that got out too early would be without its effect.
"""

import asyncio
import logging
import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from lucius_outbox import (
    Claimed,
    Delays,
    Dispatcher,
    DispatchSettings,
    Failure,
    Message,
    RetryPolicy,
    Store,
    postgres,
    sqlite,
)
from tests.runner.deadlines import PROCESS_DEADLINE

NAMESPACE = "crash"
POLICY = RetryPolicy(
    max_attempts=50, backoff=Delays([timedelta(milliseconds=20)]), max_reclaims=1000
)
SETTINGS = DispatchSettings(
    batch_size=50,
    concurrency=2,
    lease=timedelta(seconds=1),
    poll_interval=timedelta(milliseconds=20),
    retention=None,
)
ROLLED_BACK = 0.1
AMBIGUOUS = 0.01
KEYED = 0.2
KEYS = 5
AHEAD = 600
BACKLOG = "SELECT count(*) FROM lucius_outbox_messages WHERE status = 'pending'"


class Journal:
    """A file of this process alone, written line by line: what a kill tears off is its end."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, *fields: object) -> None:
        os.write(self._file, ("\t".join(map(str, fields)) + "\n").encode())


def messages(name: str, numbers: Sequence[int]) -> list[Message]:
    return [
        Message(
            NAMESPACE,
            "t",
            {"n": number},
            dedupe_key=f"{name}/{number}",
            ordering_key=f"{name}-{number % KEYS}" if random.random() < KEYED else None,
        )
        for number in numbers
    ]


class OnSqlite:
    def __init__(self, address: str) -> None:
        self._connection = sqlite3.connect(address, timeout=PROCESS_DEADLINE, isolation_level=None)

    async def transaction(self, batch: list[Message], effects: list[int], ending: str) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        sqlite.enqueue_all(self._connection, batch)
        self._connection.executemany("INSERT INTO effects VALUES (?)", [(n,) for n in effects])
        self._connection.execute(ending)

    async def backlog(self) -> int:
        (count,) = self._connection.execute(BACKLOG).fetchone()
        return int(count)


class OnPostgres:
    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection

    async def transaction(self, batch: list[Message], effects: list[int], ending: str) -> None:
        await postgres.enqueue_all(self._connection, batch)
        async with self._connection.cursor() as cursor:
            await cursor.executemany("INSERT INTO effects VALUES (%s)", [(n,) for n in effects])
        await self._connection.execute(ending.encode())

    async def backlog(self) -> int:
        cursor = await self._connection.execute(BACKLOG.encode())
        row = await cursor.fetchone()
        await self._connection.commit()
        return int(row[0]) if row else 0


async def produce(database: OnSqlite | OnPostgres, journal: Journal, name: str, first: int) -> None:
    """Until it is killed, never far ahead of the dispatchers."""
    while True:
        while await database.backlog() > AHEAD:
            await asyncio.sleep(0.01)
        numbers = range(first, first + random.randint(1, 20))
        first = numbers.stop
        ending = "ROLLBACK" if random.random() < ROLLED_BACK else "COMMIT"
        await database.transaction(messages(name, numbers), list(numbers), ending)
        journal.write("produced", len(numbers))


async def dispatch(store: Store, journal: Journal) -> None:
    """Until it is told to stop; then it ends with 0 and holds nothing."""

    async def publish(claims: Sequence[Claimed]) -> list[Failure]:
        failures = []
        for claimed in claims:
            ambiguous = random.random() < AMBIGUOUS
            journal.write(
                "published",
                claimed.payload["n"],
                claimed.id,
                store.worker_id,
                claimed.claim_no,
                int(ambiguous),
                time.monotonic_ns(),
                claimed.ordering_key or "",
            )
            if ambiguous:
                failures.append(Failure(claimed, "the answer was lost"))
        await asyncio.sleep(0)
        return failures

    async with Dispatcher(store, publish, SETTINGS) as dispatcher:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()
        await dispatcher.stop()


async def main(role: str, address: str, path: str, name: str, first: str) -> None:
    journal = Journal(path)
    if role == "produce" and address.startswith("/"):
        await produce(OnSqlite(address), journal, name, int(first))
    elif role == "produce":
        async with await AsyncConnection.connect(address) as connection:
            await produce(OnPostgres(connection), journal, name, int(first))
    elif address.startswith("/"):
        wait = timedelta(seconds=PROCESS_DEADLINE)
        store = sqlite.SqliteStore(address, NAMESPACE, policy=POLICY, busy_timeout=wait)
        async with store:
            await dispatch(store, journal)
    else:
        async with AsyncConnectionPool[AsyncConnection[Any]](
            address, min_size=1, max_size=5, open=False
        ) as pool:
            await dispatch(postgres.PostgresStore(pool, NAMESPACE, policy=POLICY), journal)


if __name__ == "__main__":
    logging.getLogger("lucius_outbox").setLevel(logging.ERROR)
    asyncio.run(main(*sys.argv[1:]))
