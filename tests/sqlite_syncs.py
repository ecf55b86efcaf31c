"""What SQLite syncs for the connections of a program.

A test cannot cut the power, and SQLite syncs in its own C code: what a test can see is how a
connection is set when it commits, and when it is closed.

With a write-ahead log, `synchronous = FULL` (2) syncs the log before a commit returns. NORMAL (1)
syncs it before a checkpoint only, so that a loss of power takes back the last commits; OFF (0)
never does, and may damage the file. Closing matters too, also of a connection that only reads: the
last one copies the log into the file and deletes it.
"""

import sqlite3
from functools import partial
from typing import Any, NamedTuple

import pytest


class Moment(NamedTuple):
    """A commit or a close of some connection, and how the connection was set then."""

    event: str
    journal_mode: str
    synchronous: int


FULL = 2
ALL_SYNCED = {Moment("commit", "wal", FULL), Moment("close", "wal", FULL)}


def watched(monkeypatch: pytest.MonkeyPatch) -> set[Moment]:
    """How all connections that are opened from now on were set whenever it mattered.

    They begin with NORMAL, as where SQLite was built with `DEFAULT_WAL_SYNCHRONOUS=1`.
    """
    moments: set[Moment] = set()

    class Watched(sqlite3.Connection):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            super().execute("PRAGMA synchronous = NORMAL")

        def execute(self, *args: Any) -> sqlite3.Cursor:
            changes, was_open = self.total_changes, self.in_transaction
            cursor = super().execute(*args)
            if not self.in_transaction and (was_open or self.total_changes != changes):
                self._tell("commit")
            return cursor

        def commit(self) -> None:
            self._tell("commit")
            super().commit()

        def close(self) -> None:
            self._tell("close")
            super().close()

        def _tell(self, event: str) -> None:
            (mode,) = super().execute("PRAGMA journal_mode").fetchone()
            (level,) = super().execute("PRAGMA synchronous").fetchone()
            moments.add(Moment(event, mode, level))

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Watched))
    return moments
