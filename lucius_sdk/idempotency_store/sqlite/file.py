"""The SQLite file. Everything here runs in one thread of the store."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from lucius_outbox.sqlite.journal import create_private
from lucius_sdk.idempotency_store.errors import (
    Conflict,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from lucius_sdk.idempotency_store.port import Stored, microseconds, next_version
from lucius_sdk.idempotency_store.records import ClaimState, Record, StepKey, decode, encode
from lucius_sdk.idempotency_store.sqlite import statements
from lucius_sdk.idempotency_store.sqlite.statements import MOST_ROWS, NO_ROW, Row

_BITE = 200  # rows that are looked at together
_PURGE_AFTER = 100  # written rows; fewer than a bite, so that purging keeps up with them
_WAIT = 0.01
_BEYOND_REPAIR = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


class SqliteFile:
    """Opened when it is first used, and again after an error. `patience` is how many seconds it
    waits for writers of other processes."""

    def __init__(
        self, path: Path, retention: timedelta, now: Callable[[], datetime], patience: float
    ) -> None:
        self._path = path
        self._retention = retention
        self._now = now
        self._patience = patience
        self._opened: sqlite3.Connection | None = None
        self._written = _PURGE_AFTER  # the first bite is due at once
        self._purged_to = 0

    def read(self, key: StepKey) -> Stored | None:
        with self._connected() as connection:
            found = connection.execute(statements.READ, key).fetchone()
        return None if found is None else Stored(decode(found[0]), f"{found[1]}.{found[2]}")

    def lapsed_results(self, before: datetime, limit: int) -> list[StepKey]:
        with self._connected() as connection:
            found = connection.execute(statements.LAPSED, (microseconds(before), limit)).fetchall()
        return [StepKey(*row) for row in found]

    def row(self, key: StepKey, record: Record, expected: str | None) -> Row:
        """What `write` will write. This may be called in any thread."""
        now, is_unreported = self._now(), record.state is ClaimState.COMPLETED
        created, changes = next_version(expected, now).split(".")
        unreported = microseconds(record.until) if is_unreported else None
        version = int(created), int(changes)
        return Row(*key, *version, microseconds(now), unreported, encode(record))

    def write(self, rows: Sequence[Row]) -> list[str | Exception]:
        """The new version of each, or its conflict, once all are durable."""
        with self._connected() as connection:
            self._written += len(rows)
            if _are_written(connection, rows):
                return [_version(row) for row in rows]
            return _written_singly(connection, rows)

    def check(self) -> None:
        """Nobody else keeps the file locked; and it is there, for SQLite itself would go on writing
        to one that was removed."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("COMMIT")
        if not self._path.exists():
            raise StoreUnavailable(f"the file {self._path} has gone")

    def purge(self) -> None:
        """A bite if it is due, from the oldest rows on; and from the beginning again where it meets
        one that is still kept."""
        if self._written < _PURGE_AFTER:
            return
        before = microseconds(self._now() - self._retention)
        with self._connected() as connection:
            rows = connection.execute(statements.OLDEST, (self._purged_to, _BITE)).fetchall()
            last_id, last_touched = rows[-1] if rows else (0, before)
            if any(touched < before for _, touched in rows):
                connection.execute(statements.PURGE, (self._purged_to, last_id, before))
        self._purged_to = last_id if last_touched < before else 0
        self._written = 0

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """An error closes the connection, which rolls back; the next verb opens it anew."""
        try:
            if self._opened is None:
                self._opened = self._open()
            yield self._opened
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise _translated(error) from error

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_private(self._path)
        connection = sqlite3.connect(self._path, timeout=self._patience, isolation_level=None)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        self._use_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > statements.SCHEMA_VERSION:
            raise StoreUnusable(f"{self._path} was written by a newer release of the SDK")
        if version < statements.SCHEMA_VERSION:
            with _transaction(connection):
                for statement in statements.SCHEMA:
                    connection.execute(statement)

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """SQLite does not wait by itself where two processes make a new file at once."""
        end = time.monotonic() + self._patience
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > end:
                    raise
                time.sleep(_WAIT)
            else:
                return


def _are_written(connection: sqlite3.Connection, rows: Sequence[Row]) -> bool:
    """All in one statement, or nothing: then one conflicts, or cannot be told from another."""
    keys = {row[:2] for row in rows}
    if len(keys) < len(rows) or len(rows) > MOST_ROWS:
        return False
    try:
        return _changes_of(connection, rows) == len(rows)
    except UnicodeError:  # text that has no UTF-8: its own write shall fail, and no other
        return False


def _written_singly(connection: sqlite3.Connection, rows: Iterable[Row]) -> list[str | Exception]:
    with _transaction(connection):
        return [_outcome(connection, row) for row in rows]


def _outcome(connection: sqlite3.Connection, row: Row) -> str | Exception:
    try:
        if _changes_of(connection, [row]):
            return _version(row)
    except UnicodeError as error:
        return error
    return Conflict(f"step {row.step_id} of {row.job_id} was written by another")


def _changes_of(connection: sqlite3.Connection, rows: Sequence[Row]) -> int:
    size = 1 << (len(rows) - 1).bit_length()  # few sizes, so that their statements stay prepared
    padded = [*rows, *[NO_ROW] * (size - len(rows))]
    values = [value for row in padded for value in row]
    return connection.execute(statements.write_all(size), (*values, len(rows))).rowcount


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Of which an error makes an end by closing the connection."""
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("COMMIT")


def _version(row: Row) -> str:
    return f"{row.created}.{row.changes}"


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _translated(error: Exception) -> StoreError:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BEYOND_REPAIR:
        return StoreUnusable(f"SQLite: {error}")
    return StoreUnavailable(f"SQLite: {error}")
