"""Waiting that has an end."""

import asyncio
from contextlib import suppress
from datetime import timedelta


async def until_set(event: asyncio.Event, at_most: timedelta) -> None:
    """Return when the event is set, or when the time is over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(at_most.total_seconds()):
            await event.wait()
