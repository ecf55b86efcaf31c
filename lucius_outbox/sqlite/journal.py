"""The write-ahead log of a SQLite file."""

import sqlite3
import time
from datetime import timedelta

_PAUSE = 0.01  # seconds


def use_wal(connection: sqlite3.Connection, patience: timedelta) -> None:
    """The connection's own timeout is not enough: where several processes make a new file at once,
    SQLite tells some of them that it is locked without waiting."""
    end = time.monotonic() + patience.total_seconds()
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() >= end:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
