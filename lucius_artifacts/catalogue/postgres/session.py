"""Statements of one transaction on PostgreSQL."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from lucius_artifacts.catalogue.ending import to_its_end
from lucius_artifacts.catalogue.postgres.connections import Connection, Raced, translated
from lucius_artifacts.catalogue.sql.session import Session
from lucius_artifacts.catalogue.sql.tables import Table
from lucius_artifacts.errors import Invalid, Unavailable
from lucius_outbox.message import Message
from lucius_outbox.postgres import enqueue

Row = TypeVar("Row")
_NAME = re.compile(r":(\w+)")


class PostgresSession(Session):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def raced(self) -> Raced | None:
        return self.failure if isinstance(self.failure, Raced) else None

    def moment(self, value: Any) -> datetime:
        assert isinstance(value, datetime)
        return value

    async def rows(self, statement: str, values: Mapping[str, Any]) -> list[Any]:
        with self._noted():
            cursor = await self._connection.execute(_translation(statement), values)
            return await cursor.fetchall()

    async def write(self, statement: str, values: Mapping[str, Any]) -> int:
        with self._noted():
            cursor = await self._connection.execute(_translation(statement), values)
            return cursor.rowcount

    async def insert_all(self, table: Table[Row], rows: Sequence[Row]) -> None:
        """In one round trip, and of rows that JSON can hold: text and numbers."""
        values = json.dumps([table.values(row) for row in rows])
        with self._noted():
            await self._connection.execute(_insert_all(table), (values,))

    async def emit(self, message: Message) -> None:
        with self._noted():
            await enqueue(self._connection, message)

    async def commit(self) -> None:
        """PostgreSQL takes the commit of a failed transaction for a rollback, without a word."""
        self.require_sound()
        with self._noted():
            await to_its_end(self._connection.commit())

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            with translated():
                yield
        except (Invalid, Unavailable) as error:
            self.failure = self.failure or error
            raise


@cache
def _insert_all(table: Table[Any]) -> bytes:
    columns = ", ".join(table.columns)
    source = f"json_populate_recordset(NULL::{table.name}, %s::json)"
    return f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM {source}".encode()  # noqa: S608 - constants of ours


@cache
def _translation(statement: str) -> bytes:
    """With its values named as psycopg wants it."""
    return _NAME.sub(r"%(\1)s", statement).encode()
