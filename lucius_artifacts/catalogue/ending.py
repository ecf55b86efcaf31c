"""What must not be broken off half-way."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def to_its_end(work: Awaitable[T]) -> T:
    """Its result. A cancellation that comes meanwhile is raised when the work has ended, so that
    whoever is cancelled in a commit leaves it done or undone, and not under way."""
    ending = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not ending.done():
        try:
            await asyncio.wait([ending])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return ending.result()
    ending.exception()  # looked at, so that nobody warns of it
    raise cancelled
