"""Transactions one after the other: that is as serializable as can be."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from lucius_artifacts.catalogue.memory.reader import MemoryReader
from lucius_artifacts.catalogue.memory.rows import Journal, Rows
from lucius_artifacts.catalogue.memory.transaction import MemoryTransaction
from lucius_artifacts.errors import Unavailable
from lucius_artifacts.ports.catalogue import Reader, Transaction
from lucius_outbox.message import Message

T = TypeVar("T")


class MemoryCatalogue:
    """Another one with the same `rows` is what another process would open."""

    def __init__(self, rows: Rows | None = None) -> None:
        self.rows = rows or Rows()
        self._closed = False

    @property
    def messages(self) -> list[Message]:
        """What was emitted and committed, in order; a dedupe key once, as in the outbox."""
        return list(self.rows.messages.values())

    async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self._turn():
            journal = Journal()
            try:
                result = await work(MemoryTransaction(self.rows, journal))
                journal.require_sound()
            except BaseException:
                journal.undo()
                raise
            return result

    async def read(self, work: Callable[[Reader], Awaitable[T]]) -> T:
        async with self._turn():
            return await work(MemoryReader(self.rows))

    async def check(self) -> None:
        if self._closed:
            raise Unavailable("the catalogue is closed")

    async def close(self) -> None:
        self._closed = True

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        async with self.rows.turn:
            await self.check()
            yield
