"""Where the parts are put together."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Protocol

from lucius_orchestrator.engine.engine import World


class Part(Protocol):
    """Something that runs until it is stopped."""

    async def run(self) -> None: ...

    async def stop(self) -> None: ...


def real_world() -> World:
    return World(clock=lambda: datetime.now(UTC), entropy=os.urandom, chance=random.random)


@asynccontextmanager
async def running(parts: Sequence[Part]) -> AsyncIterator[None]:
    """Run the parts beside the body; they are stopped in the order in which they are named. A part
    that fails ends the body."""
    async with asyncio.TaskGroup() as tasks:
        for part in parts:
            tasks.create_task(part.run())
        await asyncio.sleep(0)  # so that each has begun before it can be stopped
        try:
            yield
        finally:
            for part in parts:
                await part.stop()
