"""The schema and the statements of the SQLite file."""

from functools import cache
from typing import NamedTuple

SCHEMA_VERSION = 1
SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS dedup (
        id INTEGER PRIMARY KEY,
        job_id TEXT NOT NULL,
        step_id TEXT NOT NULL,
        created INTEGER NOT NULL,
        changes INTEGER NOT NULL,
        touched INTEGER NOT NULL,
        unreported INTEGER,
        document TEXT NOT NULL,
        UNIQUE (job_id, step_id)
    )
    """,
    """
    CREATE INDEX IF NOT EXISTS dedup_unreported ON dedup (unreported)
    WHERE unreported IS NOT NULL
    """,
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)

READ = "SELECT document, created, changes FROM dedup WHERE job_id = ? AND step_id = ?"
LAPSED = "SELECT job_id, step_id FROM dedup WHERE unreported < ? ORDER BY unreported LIMIT ?"
OLDEST = "SELECT id, touched FROM dedup WHERE id > ? ORDER BY id LIMIT ?"
PURGE = "DELETE FROM dedup WHERE id > ? AND id <= ? AND touched < ?"

MOST_ROWS = 128  # 7 parameters each: older builds of SQLite allow 999


class Row(NamedTuple):
    """`created` and `changes` are the version: the record is the one that many changes after its
    creation at that microsecond. `unreported` is `until` while a result waits to be reported."""

    job_id: str | None
    step_id: str | None
    created: int
    changes: int
    touched: int
    unreported: int | None
    document: str


NO_ROW = Row(None, None, 0, 0, 0, None, "")


@cache
def write_all(rows: int) -> str:
    """Compare-and-set of all those rows or of none, in one statement. Its parameters are the rows
    (`NO_ROW` for those that are too many) and how many they are.

    One statement, since every statement gives up the interpreter's lock at least twice, and while
    other threads compute, each time costs milliseconds until it is given back.
    """
    values = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * rows)
    names = ", ".join(Row._fields)
    return f"""
    INSERT INTO dedup ({names})
    WITH wanted ({names}) AS (VALUES {values})
    SELECT {names} FROM wanted WHERE job_id IS NOT NULL AND ? = (
        SELECT count(*) FROM wanted AS new
        LEFT JOIN dedup AS old ON old.job_id = new.job_id AND old.step_id = new.step_id
        WHERE new.job_id IS NOT NULL AND CASE new.changes
            WHEN 0 THEN old.id IS NULL
            ELSE old.created = new.created AND old.changes = new.changes - 1
        END
    )
    ON CONFLICT (job_id, step_id) DO UPDATE SET
        created = excluded.created, changes = excluded.changes, touched = excluded.touched,
        unreported = excluded.unreported, document = excluded.document
    """
