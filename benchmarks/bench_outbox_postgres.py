"""The outbox on PostgreSQL, beside plain SQL: see `benchmarks.outbox`.

One batch is in flight at a time, as in the floor. Both insert a batch as one JSON text, the fastest
way there is: `executemany` takes more than three times as long.
"""

import asyncio
import json
from typing import Any
from uuid import uuid4

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from benchmarks.outbox import BATCH, LEASE, ROWS, compare, dispatch_all, messages, payload
from lucius_outbox.message import new_ids
from lucius_outbox.postgres import PostgresStore, enqueue_all, migrate
from tests.postgres import postgres_server

TARGET = 0.8

FLOOR_SCHEMA = """
CREATE TABLE floor (
    id uuid PRIMARY KEY, namespace text NOT NULL, topic text NOT NULL, tenant_id text,
    dedupe_key text, payload jsonb NOT NULL, status text NOT NULL DEFAULT 'pending',
    attempts integer NOT NULL DEFAULT 0, next_attempt_at timestamptz NOT NULL DEFAULT now(),
    locked_by uuid, locked_until timestamptz, last_error text,
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX floor_dedupe ON floor (namespace, topic, dedupe_key)
    WHERE dedupe_key IS NOT NULL;
CREATE INDEX floor_due ON floor (next_attempt_at, id) WHERE status = 'pending';
CREATE INDEX floor_leases ON floor (locked_until) WHERE status = 'processing';
"""
FLOOR_INSERT = """
INSERT INTO floor (id, namespace, topic, tenant_id, dedupe_key, payload)
SELECT id, 'bench', 'directives', 'acme', dedupe_key, payload
FROM json_to_recordset(%s::json) AS m (id uuid, dedupe_key text, payload jsonb)
ON CONFLICT DO NOTHING
"""
FLOOR_CLAIM = """
WITH expired AS (
    SELECT id FROM floor WHERE status = 'processing' AND locked_until < now() AND attempts < 10
    ORDER BY locked_until LIMIT %(batch)s FOR UPDATE SKIP LOCKED
), due AS (
    SELECT id FROM floor WHERE status = 'pending' AND next_attempt_at <= now() AND attempts < 10
    ORDER BY next_attempt_at, id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
)
UPDATE floor SET status = 'processing', attempts = attempts + 1, locked_by = %(worker)s,
                 locked_until = now() + %(lease)s, updated_at = now()
WHERE id = ANY(ARRAY(SELECT id FROM expired UNION ALL SELECT id FROM due LIMIT %(batch)s))
RETURNING id, topic, tenant_id, dedupe_key, payload, attempts
"""
FLOOR_ACK = """
UPDATE floor SET status = 'delivered', locked_by = NULL, locked_until = NULL, updated_at = now()
WHERE id = ANY(%s) AND locked_by = %s AND status = 'processing'
"""


async def floor_enqueue(connection: AsyncConnection[Any]) -> None:
    round_no = uuid4().hex
    for start in range(0, ROWS, BATCH):
        async with connection.transaction():
            rows = [
                {"id": id, "dedupe_key": f"acme/{round_no}/{number}", "payload": payload(number)}
                for number, id in enumerate(new_ids(BATCH), start=start)
            ]
            await connection.execute(FLOOR_INSERT, (json.dumps(rows),))


async def floor_dispatch(connection: AsyncConnection[Any]) -> None:
    worker = uuid4()
    while True:
        cursor = await connection.execute(
            FLOOR_CLAIM, {"worker": worker, "lease": LEASE, "batch": BATCH}
        )
        claims = await cursor.fetchall()
        if not claims:
            return
        await connection.execute(FLOOR_ACK, ([claim[0] for claim in claims], worker))


async def main() -> None:
    with postgres_server() as uri:
        async with (
            AsyncConnectionPool[AsyncConnection[Any]](
                uri, min_size=3, max_size=4, open=False, kwargs={"autocommit": True}
            ) as pool,
            await AsyncConnection.connect(uri, autocommit=True) as producer,
            await AsyncConnection.connect(uri, autocommit=True) as hand_producer,
            await AsyncConnection.connect(uri, autocommit=True) as hand_worker,
        ):
            await migrate(producer)
            await hand_producer.execute(FLOOR_SCHEMA)

            async def library() -> None:
                round_no = uuid4().hex
                for start in range(0, ROWS, BATCH):
                    async with producer.transaction():
                        await enqueue_all(producer, messages(start, round_no))
                await dispatch_all(PostgresStore(pool, "bench"), concurrency=1)

            async def floor() -> None:
                await floor_enqueue(hand_producer)
                await floor_dispatch(hand_worker)

            await compare("outbox_postgres", TARGET, library, floor)


if __name__ == "__main__":
    asyncio.run(main())
