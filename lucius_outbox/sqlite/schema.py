"""The outbox's tables in a SQLite file."""

import sqlite3
import time
from collections.abc import Iterator

from lucius_outbox.schema import migrations, missing, require_current

MIGRATIONS = migrations(__package__)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables to this release's schema: in the open transaction, or in one of its own."""
    if connection.in_transaction:
        _apply(connection)
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _apply(connection)
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def check(connection: sqlite3.Connection) -> None:
    """SchemaMismatch unless the tables are exactly those of this release."""
    require_current(MIGRATIONS, _version(connection))


def _apply(connection: sqlite3.Connection) -> None:
    for migration in missing(MIGRATIONS, _version(connection)):
        for statement in _statements(migration.sql):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO lucius_outbox_schema VALUES (?, ?, ?)",
            (migration.version, migration.name, time.time_ns() // 1000),
        )


def _version(connection: sqlite3.Connection) -> int:
    table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'lucius_outbox_schema'"
    if connection.execute(table).fetchone() is None:
        if not connection.in_transaction:
            return 0
        connection.execute(
            "CREATE TABLE lucius_outbox_schema"
            " (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)"
        )
    (version,) = connection.execute(
        "SELECT coalesce(max(version), 0) FROM lucius_outbox_schema"
    ).fetchone()
    return int(version)


def _statements(script: str) -> Iterator[str]:
    """One by one, since `executescript` would commit first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
