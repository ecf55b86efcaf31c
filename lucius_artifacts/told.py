"""A catalogue that tells what was committed through it."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from lucius_artifacts.ports.catalogue import Catalogue, Reader, Transaction
from lucius_artifacts.telemetry import Telemetry
from lucius_outbox.message import Message

T = TypeVar("T")


class ToldCatalogue:
    """Each event that goes to the outbox is counted and logged, once its transaction is committed:
    so that what was rolled back, or run more than once, is told as often as it happened."""

    def __init__(self, catalogue: Catalogue, telemetry: Telemetry) -> None:
        self._catalogue = catalogue
        self._telemetry = telemetry

    async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        emitted: list[Message] = []

        async def watched(rows: Transaction) -> T:
            emitted.clear()
            return await work(cast(Transaction, _Watched(rows, emitted)))

        result = await self._catalogue.change(watched)
        self._telemetry.committed(emitted)
        return result

    async def read(self, work: Callable[[Reader], Awaitable[T]]) -> T:
        return await self._catalogue.read(work)

    async def check(self) -> None:
        await self._catalogue.check()

    async def close(self) -> None:
        await self._catalogue.close()


class _Watched:
    """A transaction as it is, but for what it emits."""

    def __init__(self, rows: Transaction, emitted: list[Message]) -> None:
        self._rows = rows
        self._emitted = emitted

    async def emit(self, message: Message) -> None:
        await self._rows.emit(message)
        self._emitted.append(message)

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._rows, verb)
