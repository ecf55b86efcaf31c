"""CPU of a claim with a million delivered rows in the table, beside that with a thousand.

Counted is the CPU of the client's process, and on PostgreSQL that of the server's process for the
connection as well (read from /proc, so on Linux only). The worse of the two databases is reported.
"""

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

from psycopg import AsyncConnection

from benchmarks.outbox import BATCH, LEASE, messages
from benchmarks.report import ROUNDS, report
from lucius_outbox import RetryPolicy, postgres, sqlite
from tests.postgres import postgres_server

TARGET = 1.3
FEW, MANY = 1_000, 1_000_000
CLAIMS = 50

POSTGRES_FILL = """
INSERT INTO lucius_outbox_messages (id, namespace, topic, tenant_id, dedupe_key, payload, status)
SELECT gen_random_uuid(), 'bench', 'directives', 'acme', 'acme/old/' || n,
       '{"jobId": "job_1", "attempt_no": 1}', 'delivered'
FROM generate_series(1, %s) AS n
"""
SQLITE_FILL = """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT ?)
INSERT INTO lucius_outbox_messages (id, namespace, topic, tenant_id, dedupe_key, payload, status,
                                    next_attempt_at, created_at, updated_at)
SELECT lower(hex(randomblob(16))), 'bench', 'directives', 'acme', 'acme/old/' || n,
       '{"jobId": "job_1", "attempt_no": 1}', 'delivered', 0, 0, 0
FROM numbers
"""
FORGET = "DELETE FROM lucius_outbox_messages WHERE status = 'processing'"

Measure = Callable[[], Awaitable[float]]
"""CPU seconds of CLAIMS claims of full batches."""


async def growth(few: Measure, many: Measure) -> tuple[float, float]:
    """Median CPU of one claim, in microseconds, with few and with many delivered rows."""
    costs: dict[Measure, list[float]] = {few: [], many: []}
    for _ in range(ROUNDS):
        for measure, found in costs.items():
            found.append(await measure() / CLAIMS * 1e6)
    return median(costs[few]), median(costs[many])


def sqlite_measure(path: Path, delivered: int) -> Measure:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    sqlite.migrate(connection)
    connection.execute(SQLITE_FILL, (delivered,))
    rows = sqlite.SqliteRows("bench", policy=RetryPolicy())

    async def measure() -> float:
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(CLAIMS):
            sqlite.enqueue_all(connection, messages(0, uuid4().hex))
        connection.execute("COMMIT")
        before = time.process_time()
        for _ in range(CLAIMS):
            connection.execute("BEGIN IMMEDIATE")
            claims = rows.claim_batch(connection, BATCH, LEASE)
            connection.execute("COMMIT")
            assert len(claims) == BATCH
        spent = time.process_time() - before
        connection.execute(FORGET)
        return spent

    return measure


async def postgres_measure(
    admin: AsyncConnection[Any], connection: AsyncConnection[Any], delivered: int
) -> Measure:
    await postgres.migrate(connection)
    await connection.execute(POSTGRES_FILL, (delivered,))
    await connection.execute("VACUUM ANALYZE lucius_outbox_messages")
    rows = postgres.PostgresRows("bench", policy=RetryPolicy())
    pid = connection.info.backend_pid

    def cpu() -> float:
        nanoseconds = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
        return nanoseconds / 1e9 + time.process_time()

    async def measure() -> float:
        async with connection.transaction():
            for _ in range(CLAIMS):
                await postgres.enqueue_all(connection, messages(0, uuid4().hex))
        before = cpu()
        for _ in range(CLAIMS):
            claims = await rows.claim_batch(connection, BATCH, LEASE)
            assert len(claims) == BATCH
        spent = cpu() - before
        await connection.execute(FORGET)
        await admin.execute("CHECKPOINT")  # so that its writing falls into no measurement
        return spent

    return measure


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        on_sqlite = await growth(
            sqlite_measure(Path(folder, "few.db"), FEW),
            sqlite_measure(Path(folder, "many.db"), MANY),
        )
    with postgres_server() as uri:
        async with (
            await AsyncConnection.connect(uri, autocommit=True) as admin,
            await AsyncConnection.connect(
                uri, autocommit=True, options="-c search_path=few"
            ) as few,
            await AsyncConnection.connect(
                uri, autocommit=True, options="-c search_path=many"
            ) as many,
        ):
            await admin.execute("CREATE SCHEMA few; CREATE SCHEMA many")
            on_postgres = await growth(
                await postgres_measure(admin, few, FEW), await postgres_measure(admin, many, MANY)
            )
    for name, (small, large) in (("SQLite", on_sqlite), ("PostgreSQL", on_postgres)):
        print(
            f"{name:<12}{small:>8,.0f} µs of CPU a claim of {BATCH} rows with {FEW:,} delivered,"
            f" {large:,.0f} µs with {MANY:,}: x {large / small:.2f}"
        )
    ratios = {
        "sqlite": on_sqlite[1] / on_sqlite[0],
        "postgres": on_postgres[1] / on_postgres[0],
    }
    report("outbox_growth", max(ratios.values()), TARGET, at_most=True, **ratios)


if __name__ == "__main__":
    asyncio.run(main())
