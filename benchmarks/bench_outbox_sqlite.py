"""The outbox on SQLite, beside plain SQL: see `benchmarks.outbox`.

Two batches are in flight. They take turns on the store's one thread and connection, so no more is
done at a time than in the floor; but that thread need not wait for the event loop in between.
"""

import asyncio
import json
import sqlite3
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from benchmarks.outbox import BATCH, LEASE, ROWS, compare, dispatch_all, messages, payload
from lucius_outbox.message import new_ids
from lucius_outbox.sqlite import SqliteStore, enqueue_all, migrate

TARGET = 0.6
_MICROSECONDS = 1_000_000

FLOOR_SCHEMA = """
CREATE TABLE floor (
    id TEXT PRIMARY KEY, namespace TEXT NOT NULL, topic TEXT NOT NULL, tenant_id TEXT,
    dedupe_key TEXT, payload TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'pending',
    attempts INTEGER NOT NULL DEFAULT 0, next_attempt_at INTEGER NOT NULL, locked_by TEXT,
    locked_until INTEGER, last_error TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX floor_dedupe ON floor (namespace, topic, dedupe_key)
    WHERE dedupe_key IS NOT NULL;
CREATE INDEX floor_due ON floor (next_attempt_at, id) WHERE status = 'pending';
CREATE INDEX floor_leases ON floor (locked_until) WHERE status = 'processing';
"""
FLOOR_INSERT = """
INSERT INTO floor (id, namespace, topic, tenant_id, dedupe_key, payload, next_attempt_at,
                   created_at, updated_at)
VALUES (?, 'bench', 'directives', 'acme', ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
FLOOR_CLAIM = """
UPDATE floor SET status = 'processing', attempts = attempts + 1, locked_by = ?, locked_until = ?,
                 updated_at = ?
WHERE id IN (
    SELECT id FROM (
        SELECT id FROM floor WHERE status = 'processing' AND locked_until < ? AND attempts < 10
        ORDER BY locked_until LIMIT ?
    )
    UNION ALL
    SELECT id FROM (
        SELECT id FROM floor WHERE status = 'pending' AND next_attempt_at <= ? AND attempts < 10
        ORDER BY next_attempt_at, id LIMIT ?
    )
    LIMIT ?
)
RETURNING id, topic, tenant_id, dedupe_key, payload, attempts
"""
FLOOR_ACK = """
UPDATE floor SET status = 'delivered', locked_by = NULL, locked_until = NULL, updated_at = ?
WHERE id = ? AND locked_by = ? AND status = 'processing'
"""


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def now() -> int:
    return time.time_ns() // 1000


def floor_enqueue(connection: sqlite3.Connection) -> None:
    round_no = uuid4().hex
    for start in range(0, ROWS, BATCH):
        connection.execute("BEGIN IMMEDIATE")
        at = now()
        ids = new_ids(BATCH)
        keys = [f"acme/{round_no}/{start + number}" for number in range(BATCH)]
        bodies = [json.dumps(payload(number)) for number in range(BATCH)]
        rows = [(*row, at, at, at) for row in zip(ids, keys, bodies, strict=True)]
        connection.executemany(FLOOR_INSERT, rows)
        connection.execute("COMMIT")


def floor_dispatch(connection: sqlite3.Connection) -> None:
    worker, lease = str(uuid4()), int(LEASE.total_seconds()) * _MICROSECONDS
    while True:
        at = now()
        values = (worker, at + lease, at, at, BATCH, at, BATCH, BATCH)
        rows = connection.execute(FLOOR_CLAIM, values).fetchall()
        if not rows:
            return
        claims = [(*row[:4], json.loads(row[4]), row[5]) for row in rows]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(FLOOR_ACK, [(now(), claim[0], worker) for claim in claims])
        connection.execute("COMMIT")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "library.db"), Path(folder, "floor.db")
        producer, hand_producer, hand_worker = connect(ours), connect(theirs), connect(theirs)
        migrate(producer)
        hand_producer.executescript(FLOOR_SCHEMA)

        async def library() -> None:
            round_no = uuid4().hex
            for start in range(0, ROWS, BATCH):
                producer.execute("BEGIN IMMEDIATE")
                enqueue_all(producer, messages(start, round_no))
                producer.execute("COMMIT")
            async with SqliteStore(ours, "bench") as store:
                await dispatch_all(store, concurrency=2)

        async def floor() -> None:
            floor_enqueue(hand_producer)
            floor_dispatch(hand_worker)

        await compare("outbox_sqlite", TARGET, library, floor)


if __name__ == "__main__":
    asyncio.run(main())
