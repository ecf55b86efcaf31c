"""Threads for what blocks, so that the event loop never does."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from lucius_artifacts.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")
_THREADS = 16


class Threads:
    """Of one storage. An error of the operating system is `Unavailable`, whatever it is."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="objects")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result is the caller's alone. A thread keeps what its work returned until it comes to
        run again, and on a busy machine many would keep a chunk each."""
        result: list[T] = []
        await self.start(lambda: result.append(work(*args, **kwargs)))
        return result.pop()

    async def finish(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `run`, but it is done also if nobody waits for it any more."""
        return await asyncio.shield(self.start(work, *args, **kwargs))

    def start(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        call = partial(_told, partial(work, *args, **kwargs))
        try:
            started = loop.run_in_executor(self._pool, call)
        except RuntimeError as error:
            raise Unavailable("the storage of objects was closed") from error
        started.add_done_callback(_heard)
        return started

    async def close(self) -> None:
        await asyncio.to_thread(self._pool.shutdown)


def _told(work: Callable[[], T]) -> T:
    try:
        return work()
    except OSError as error:
        raise Unavailable(f"the folder of objects cannot be used: {error.strerror}") from error


def _heard(started: "asyncio.Future[T]") -> None:
    """Nobody may be there any more to hear of an error."""
    if not started.cancelled():
        started.exception()
