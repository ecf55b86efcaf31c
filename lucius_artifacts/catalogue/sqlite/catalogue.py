"""The catalogue in a SQLite file. Several processes may share it; one of them writes at a time."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import timedelta
from os import PathLike
from typing import Self, TypeVar

from lucius_artifacts.catalogue.sql.reader import SqlReader
from lucius_artifacts.catalogue.sql.transaction import SqlTransaction
from lucius_artifacts.catalogue.sqlite.line import Line, translated
from lucius_artifacts.ports.catalogue import Reader, Transaction
from lucius_outbox.sqlite import schema as outbox_schema
from lucius_outbox.sqlite.journal import create_private, use_wal

T = TypeVar("T")
SCHEMA = outbox_schema.Schema("lucius_artifacts", __package__)


class SqliteCatalogue:
    """Made by `open`. Readers have a connection of their own, and do not wait for writers."""

    def __init__(self, writer: Line, reader: Line) -> None:
        self._writer = writer
        self._reader = reader

    @classmethod
    async def open(
        cls, path: str | PathLike[str], *, patience: timedelta = timedelta(seconds=10)
    ) -> Self:
        """Open the file, make it if need be, and bring its tables to this release's schema.

        `patience` is how long a change waits for those of other processes. `Unavailable`, also if
        a newer release has made the tables.
        """
        with translated():
            await asyncio.to_thread(_migrate, path, patience)
            writer = Line(_connect(path, patience), "catalogue-write")
            return cls(writer, Line(_connect(path, patience), "catalogue-read"))

    async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self._writer.transaction("BEGIN IMMEDIATE") as session:
            return await work(SqlTransaction(session))

    async def read(self, work: Callable[[Reader], Awaitable[T]]) -> T:
        async with self._reader.transaction("BEGIN") as session:
            return await work(SqlReader(session))

    async def check(self) -> None:
        async with self._reader.transaction("BEGIN") as session:
            await session.run(_check)

    async def close(self) -> None:
        await self._writer.close()
        await self._reader.close()


def _check(connection: sqlite3.Connection) -> None:
    outbox_schema.check(connection)
    SCHEMA.check(connection)


def _connect(path: str | PathLike[str], patience: timedelta) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=patience.total_seconds(), isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _migrate(path: str | PathLike[str], patience: timedelta) -> None:
    create_private(path)
    connection = _connect(path, patience)
    try:
        use_wal(connection, patience)
        connection.execute("BEGIN IMMEDIATE")
        outbox_schema.migrate(connection)
        SCHEMA.migrate(connection)
        connection.commit()
    finally:
        connection.close()
