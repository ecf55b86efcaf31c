"""Claims and settlements that meet in mid-transaction. PostgreSQL only: SQLite has one writer."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection

from lucius_outbox import Claimed, RetryPolicy
from lucius_outbox.postgres import PostgresRows, enqueue_all
from lucius_outbox.postgres import statements as sql
from tests.outbox.backends import NAMESPACE, TABLE, PostgresBackend, commit, message, numbers
from tests.runner.deadlines import DEADLINE

LEASE = timedelta(seconds=30)


class Worker:
    """Rows of one worker, in a transaction that stays open until the test commits it."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self.connection = connection
        self.rows = PostgresRows(NAMESPACE, policy=RetryPolicy())

    async def claim(self, size: int = 10) -> list[Claimed]:
        return await self.rows.claim_batch(self.connection, size, LEASE)

    async def ack(self, claims: list[Claimed]) -> None:
        await self.rows.ack(self.connection, claims)


class Workers:
    def __init__(self, backend: PostgresBackend, stack: AsyncExitStack) -> None:
        self._backend = backend
        self._stack = stack

    async def new(self) -> Worker:
        connection = await AsyncConnection.connect(self._backend.uri)
        await connection.execute("SET lock_timeout = '20s'")  # rather than to hang
        await connection.commit()
        await self._stack.enter_async_context(connection)
        return Worker(connection)


@pytest.fixture
async def workers(postgres_backend: PostgresBackend) -> Any:
    async with AsyncExitStack() as stack:
        yield Workers(postgres_backend, stack)


async def is_blocked(observer: AsyncConnection[Any], waiting: AsyncConnection[Any]) -> None:
    """Until PostgreSQL says that one connection waits for another."""
    query = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
    async with asyncio.timeout(DEADLINE):
        while True:
            cursor = await observer.execute(query, (waiting.info.backend_pid,))
            if await cursor.fetchone() == (True,):
                return
            await asyncio.sleep(0.01)


async def test_a_claim_passes_over_rows_that_another_claim_has_locked(
    postgres_backend: PostgresBackend, workers: Workers
) -> None:
    await commit(postgres_backend, *map(message, range(4)))
    one, two = await workers.new(), await workers.new()
    assert numbers(await one.claim(2)) == [0, 1]  # not committed
    assert numbers(await two.claim(10)) == [2, 3]
    await one.connection.rollback()
    assert numbers(await two.claim(10)) == [0, 1]


async def test_a_claim_that_sets_rows_aside_while_the_earlier_one_is_acked_loses_nothing(
    postgres_backend: PostgresBackend, workers: Workers
) -> None:
    """The ack waits for the claim, and then brings back what the claim has set aside."""
    await commit(postgres_backend, message(0, ordering_key="k"))
    holder, claimer, later = [await workers.new() for _ in range(3)]
    first = await holder.claim()
    await holder.connection.commit()
    await commit(postgres_backend, message(1, ordering_key="k"), message(2, ordering_key="k"))

    assert await claimer.claim() == []  # both are set aside, not committed yet
    acking = asyncio.create_task(holder.ack(first))
    await is_blocked(later.connection, holder.connection)
    await claimer.connection.commit()
    await acking
    await holder.connection.commit()

    assert numbers(await later.claim()) == [1]


async def test_a_claim_during_an_uncommitted_ack_sets_nothing_aside(
    postgres_backend: PostgresBackend, workers: Workers
) -> None:
    """Nobody would bring it back: the ack has already looked for the next row of the key."""
    await commit(postgres_backend, message(0, ordering_key="k"))
    holder, claimer, later = [await workers.new() for _ in range(3)]
    first = await holder.claim()
    await holder.connection.commit()
    await holder.ack(first)  # not committed, and saw no other row of the key
    await commit(postgres_backend, message(1, ordering_key="k"))

    assert await claimer.claim() == []
    await claimer.connection.commit()
    await holder.connection.commit()

    assert numbers(await later.claim()) == [1]


async def test_a_message_enqueued_during_an_ack_is_claimed_after_it(
    postgres_backend: PostgresBackend, workers: Workers
) -> None:
    await commit(postgres_backend, message(0, ordering_key="k"))
    holder, producer, later = [await workers.new() for _ in range(3)]
    first = await holder.claim()
    await holder.connection.commit()
    await enqueue_all(producer.connection, [message(1, ordering_key="k")])  # not committed
    await holder.ack(first)
    await holder.connection.commit()
    await producer.connection.commit()
    assert numbers(await later.claim()) == [1]


async def test_the_loser_of_a_race_waits_for_the_winner_and_takes_over_if_it_rolls_back(
    postgres_backend: PostgresBackend, workers: Workers
) -> None:
    winner, loser, observer = [await workers.new() for _ in range(3)]
    event = [message(1, dedupe_key="event")]
    (won,) = await enqueue_all(winner.connection, event)
    losing = asyncio.create_task(enqueue_all(loser.connection, event))
    await is_blocked(observer.connection, loser.connection)
    await winner.connection.rollback()
    (taken_over,) = await losing
    await loser.connection.commit()
    assert won.id is not None
    assert [row["id"] for row in await postgres_backend.rows()] == [taken_over.id]


async def test_no_claim_reads_the_whole_table(postgres_backend: PostgresBackend) -> None:
    """Neither with fresh statistics nor with those of an empty table."""
    rows = PostgresRows(NAMESPACE, policy=RetryPolicy())
    values = rows._values({"size": 100, "lease": LEASE, "claim_no": 1})
    ids = {"ids": sql.uuids(["00000000-0000-7000-8000-000000000000"] * 100)}
    async with postgres_backend.transaction() as connection:
        await connection.execute(
            f"INSERT INTO {TABLE} (id, namespace, topic, payload, status)"
            " SELECT gen_random_uuid(), 'tests', 't', '{}', 'delivered'"
            " FROM generate_series(1, 20000)"
        )
        for statistics in ("", f"ANALYZE {TABLE}"):
            if statistics:
                await connection.execute(statistics)
            for statement in (sql.CLAIM, sql.ACK, sql.RELEASE, sql.EXTEND):
                cursor = await connection.execute(
                    f"EXPLAIN {statement}".encode(), {**values, **ids}
                )
                plan = "\n".join(row[0] for row in await cursor.fetchall())
                assert f"Seq Scan on {TABLE}" not in plan, plan
