"""Waiting that has an end."""

import asyncio
import types
from collections.abc import Awaitable, Generator
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

R = TypeVar("R")
Steps = Generator[Any, Any, R]


async def until_set(event: asyncio.Event, at_most: timedelta) -> None:
    """Return when the event is set, or when the time is over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(at_most.total_seconds()):
            await event.wait()


@types.coroutine
def in_time(awaitable: Awaitable[R], seconds: float) -> Steps[R]:
    """What it returns; `TimeoutError` if it takes longer. The time begins when it first waits: a
    timer for what never does would cost as much as all the rest of it."""
    steps = awaitable.__await__()
    try:
        waits_for = next(steps)
    except StopIteration as ended:
        result: R = ended.value
        return result
    return (yield from _rest(steps, waits_for, seconds).__await__())


async def _rest(steps: Steps[R], waits_for: object, seconds: float) -> R:
    async with asyncio.timeout(seconds):
        return await _resumed(steps, waits_for)


@types.coroutine
def _resumed(steps: Steps[R], waits_for: object) -> Steps[R]:
    """Goes on with what has begun already."""
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:
                waits_for = steps.throw(error)
            else:
                waits_for = steps.send(sent)
    except StopIteration as ended:
        result: R = ended.value
        return result
