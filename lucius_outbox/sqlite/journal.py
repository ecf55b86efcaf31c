"""A SQLite file, and its write-ahead log."""

import os
import sqlite3
import time
from contextlib import suppress
from datetime import timedelta

_PAUSE = 0.01  # seconds
_OWNER_ONLY = 0o600


def create_private(path: str | os.PathLike[str]) -> None:
    """Make the file, unless it is there, so that its owner alone may read it, whatever the umask.
    SQLite gives its journals the mode of the file. What prevents it SQLite will say itself.

    A file that exists is neither opened nor changed: closing it would drop the locks that other
    connections of this process have on it, and its mode may be what an operator wants.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_ONLY))


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
