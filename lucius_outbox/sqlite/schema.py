"""Tables in a SQLite file, brought to this release's version by numbered migrations."""

import sqlite3
import time
from collections.abc import Iterator

from lucius_outbox.schema import migrations, missing, require_current


class Schema:
    """The tables whose migrations lie in a package; `<prefix>_schema` remembers which ran."""

    def __init__(self, prefix: str, package: str) -> None:
        self.migrations = migrations(package)
        self._prefix = prefix
        self._table = f"{prefix}_schema"

    def migrate(self, connection: sqlite3.Connection) -> None:
        """Bring the tables to this release's schema: in the open transaction, or in an own one."""
        if connection.in_transaction:
            self._apply(connection)
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._apply(connection)
        except BaseException:
            connection.rollback()
            raise
        connection.commit()

    def check(self, connection: sqlite3.Connection) -> None:
        """SchemaMismatch unless the tables are exactly those of this release."""
        require_current(self._prefix, self.migrations, self._version(connection))

    def _apply(self, connection: sqlite3.Connection) -> None:
        for migration in missing(self._prefix, self.migrations, self._version(connection)):
            for statement in _statements(migration.sql):
                connection.execute(statement)
            connection.execute(
                f"INSERT INTO {self._table} VALUES (?, ?, ?)",  # noqa: S608 - a constant of ours
                (migration.version, migration.name, time.time_ns() // 1000),
            )

    def _version(self, connection: sqlite3.Connection) -> int:
        table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
        if connection.execute(table, (self._table,)).fetchone() is None:
            if not connection.in_transaction:
                return 0
            connection.execute(
                f"CREATE TABLE {self._table}"
                " (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)"
            )
        newest = f"SELECT coalesce(max(version), 0) FROM {self._table}"  # noqa: S608 - as above
        (version,) = connection.execute(newest).fetchone()
        return int(version)


OUTBOX = Schema("lucius_outbox", __package__)
MIGRATIONS = OUTBOX.migrations
migrate = OUTBOX.migrate
check = OUTBOX.check


def _statements(script: str) -> Iterator[str]:
    """One by one, since `executescript` would commit first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
