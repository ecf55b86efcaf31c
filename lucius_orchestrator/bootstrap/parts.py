"""What runs until it is stopped, and the world it runs in."""

import asyncio
import gc
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from lucius_orchestrator.engine.engine import World


class Part(Protocol):
    """Something that runs until it is stopped."""

    async def run(self) -> None: ...

    async def stop(self) -> None: ...


class After:
    """A part that begins when an event is set. The event must be set at a stop too, else nobody
    would end the wait."""

    def __init__(self, event: asyncio.Event, part: Part) -> None:
        self._event = event
        self._part = part
        self._has_begun = False
        self._is_stopping = False

    async def run(self) -> None:
        await self._event.wait()
        if not self._is_stopping:
            self._has_begun = True
            await self._part.run()

    async def stop(self) -> None:
        self._is_stopping = True
        if self._has_begun:
            await self._part.stop()


class Entropy:
    """Randomness of the operating system, fetched in advance: every decision needs a little."""

    _AT_ONCE = 4096

    def __init__(self) -> None:
        self._bytes = b""
        self._used = 0

    def __call__(self, size: int) -> bytes:
        start, self._used = self._used, self._used + size
        if self._used > len(self._bytes):
            self._bytes = os.urandom(max(self._AT_ONCE, size))
            start, self._used = 0, size
        return self._bytes[start : self._used]


def real_world() -> World:
    return World(clock=partial(datetime.now, UTC), entropy=Entropy(), chance=random.random)


def calm_the_collector() -> None:
    """For a process that serves: what exists now stays, and garbage with cycles is rare. Otherwise
    a tenth of the time is spent on looking through jobs in flight."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@asynccontextmanager
async def running(parts: Sequence[Part]) -> AsyncIterator[None]:
    """Run the parts beside the body; they are stopped in the order in which they are named, and
    begin in the opposite one. A part that fails ends the body."""
    async with asyncio.TaskGroup() as tasks:
        for part in reversed(parts):
            tasks.create_task(part.run())
        await asyncio.sleep(0)  # so that each has begun before it can be stopped
        try:
            yield
        finally:
            for part in parts:
                await part.stop()
