"""Storage whose every call is a moment at which the world may change.

Coroutines are driven by hand. Each call pauses before and after its effect; whoever drives may let
it go on, let another one go on in between, end it there as a crash does, or have the call fail:
before its effect, or after it, as when the answer is lost.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from datetime import datetime
from enum import Enum
from types import coroutine
from typing import Any, TypeVar

from lucius_artifacts.catalogue.memory import MemoryCatalogue
from lucius_artifacts.errors import Unavailable
from lucius_artifacts.objects.memory import MemoryObjects
from lucius_artifacts.ports.catalogue import Reader, Transaction
from lucius_artifacts.ports.objects import SignedRequest

T = TypeVar("T")


class Answer(Enum):
    GO_ON = "go on"
    FAIL = "fail"


@coroutine
def pause() -> Generator[None, Answer | None, Answer | None]:
    return (yield)


async def moment() -> None:
    if await pause() is Answer.FAIL:
        raise Unavailable("storage is away")


async def _staged(effect: Awaitable[T]) -> T:
    try:
        await moment()
    except BaseException:
        _close(effect)
        raise
    result = await effect
    await moment()
    return result


def _close(effect: Awaitable[Any]) -> None:
    closing = getattr(effect, "close", None)
    if closing is not None:
        closing()


class StagedCatalogue:
    def __init__(self, inner: MemoryCatalogue) -> None:
        self._inner = inner

    async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        return await _staged(self._inner.change(work))

    async def read(self, work: Callable[[Reader], Awaitable[T]]) -> T:
        return await _staged(self._inner.read(work))

    async def check(self) -> None:
        await self._inner.check()

    async def close(self) -> None:
        await self._inner.close()


class StagedObjects:
    def __init__(self, inner: MemoryObjects) -> None:
        self._inner = inner
        self.largest_part = inner.largest_part
        self.most_parts = inner.most_parts

    async def begin(self, key: str) -> None:
        await _staged(self._inner.begin(key))

    async def sign_part(
        self, key: str, number: int, length: int, expires_at: datetime
    ) -> SignedRequest:
        return await self._inner.sign_part(key, number, length, expires_at)

    async def put_part(
        self, key: str, number: int, length: int, content: AsyncIterator[bytes]
    ) -> None:
        await _staged(self._inner.put_part(key, number, length, content))

    async def parts(self, key: str) -> dict[int, int]:
        return await _staged(self._inner.parts(key))

    async def freeze(self, key: str, count: int) -> None:
        await _staged(self._inner.freeze(key, count))

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Byte by byte, with a moment before each: what is read may be changed underneath."""
        offset = start
        while True:
            await moment()
            piece = [chunk async for chunk in self._inner.read(key, offset, offset + 1)]
            if not piece or offset == end:
                return
            yield piece[0]
            offset += 1

    async def sign_read(
        self, key: str, expires_at: datetime, media_type: str, file_name: str
    ) -> SignedRequest:
        return await self._inner.sign_read(key, expires_at, media_type, file_name)

    async def delete(self, key: str) -> None:
        await _staged(self._inner.delete(key))

    async def check(self) -> None:
        await self._inner.check()

    async def close(self) -> None:
        await self._inner.close()
