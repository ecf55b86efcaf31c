"""The outbox's tables in a PostgreSQL schema: the one that the connection's search path finds."""

from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from lucius_outbox.schema import migrations, missing, require_current

MIGRATIONS = migrations(__package__)
_LOCK = 0x6C75636975730001  # "lucius", 1: two processes that start together migrate in turn


async def migrate(connection: AsyncConnection[Any]) -> None:
    """Bring the tables to this release's schema: in the open transaction, or in one of its own."""
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        await cursor.execute(
            "CREATE TABLE IF NOT EXISTS lucius_outbox_schema (version integer PRIMARY KEY,"
            " name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        for migration in missing(MIGRATIONS, await _version(connection)):
            await cursor.execute(migration.sql.encode())
            await cursor.execute(
                "INSERT INTO lucius_outbox_schema (version, name) VALUES (%s, %s)",
                (migration.version, migration.name),
            )


async def check(connection: AsyncConnection[Any]) -> None:
    """SchemaMismatch unless the tables are exactly those of this release."""
    require_current(MIGRATIONS, await _version(connection))


async def _version(connection: AsyncConnection[Any]) -> int:
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute("SELECT to_regclass('lucius_outbox_schema') IS NULL")
        if await cursor.fetchone() == (True,):
            return 0
        await cursor.execute("SELECT coalesce(max(version), 0) FROM lucius_outbox_schema")
        row = await cursor.fetchone()
        return int(row[0]) if row else 0
