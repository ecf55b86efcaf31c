"""Tables in a PostgreSQL schema (the one that the connection's search path finds), brought to this
release's version by numbered migrations."""

from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from lucius_outbox.schema import migrations, missing, require_current

_LOCK = 0x6C75636975730001  # "lucius", 1: two processes that start together migrate in turn


class Schema:
    """The tables whose migrations lie in a package; `<prefix>_schema` remembers which ran."""

    def __init__(self, prefix: str, package: str) -> None:
        self.migrations = migrations(package)
        self._prefix = prefix
        self._table = f"{prefix}_schema"

    async def migrate(self, connection: AsyncConnection[Any]) -> None:
        """Bring the tables to this release's schema: in the open transaction, or in an own one."""
        async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            await cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} (version integer PRIMARY KEY,"
                " name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())".encode()
            )
            found = await self._version(connection)
            for migration in missing(self._prefix, self.migrations, found):
                await cursor.execute(migration.sql.encode())
                await cursor.execute(
                    f"INSERT INTO {self._table} (version, name) VALUES (%s, %s)".encode(),  # noqa: S608 - a constant of ours
                    (migration.version, migration.name),
                )

    async def check(self, connection: AsyncConnection[Any]) -> None:
        """SchemaMismatch unless the tables are exactly those of this release."""
        require_current(self._prefix, self.migrations, await self._version(connection))

    async def _version(self, connection: AsyncConnection[Any]) -> int:
        async with connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute("SELECT to_regclass(%s) IS NULL", (self._table,))
            if await cursor.fetchone() == (True,):
                return 0
            newest = f"SELECT coalesce(max(version), 0) FROM {self._table}"  # noqa: S608 - as above
            await cursor.execute(newest.encode())
            row = await cursor.fetchone()
            return int(row[0]) if row else 0


OUTBOX = Schema("lucius_outbox", __package__)
MIGRATIONS = OUTBOX.migrations
migrate = OUTBOX.migrate
check = OUTBOX.check
