"""Waiting with an end."""

import asyncio

import pytest

from lucius_bus.waiting import in_time

LONG = 60.0


async def at_once() -> str:
    return "done"


async def when(event: asyncio.Event) -> str:
    await event.wait()
    await asyncio.sleep(0)
    return "done"


async def test_what_need_not_wait_sets_no_timer() -> None:
    assert await in_time(at_once(), -1) == "done"


async def test_what_waits_goes_on_where_it_was() -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(_waiting(event))
    await asyncio.sleep(0)
    event.set()
    assert await waiting == "done"


async def _waiting(event: asyncio.Event) -> str:
    return await in_time(when(event), LONG)


async def test_what_waits_too_long_is_cancelled_and_may_clean_up() -> None:
    told: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            told.append("cleaned up")

    with pytest.raises(TimeoutError):
        await in_time(endless(), 0.001)
    assert told == ["cleaned up"]


async def test_an_error_comes_out_before_and_after_a_wait() -> None:
    async def fail(*, after_a_wait: bool) -> None:
        if after_a_wait:
            await asyncio.sleep(0)
        raise LookupError

    for after_a_wait in (False, True):
        with pytest.raises(LookupError):
            await in_time(fail(after_a_wait=after_a_wait), LONG)


async def test_who_is_cancelled_meanwhile_is_cancelled_and_not_late() -> None:
    task = asyncio.create_task(_waiting(asyncio.Event()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_future_may_be_waited_for() -> None:
    future = asyncio.get_running_loop().create_future()
    future.get_loop().call_soon(future.set_result, 7)
    assert await in_time(future, LONG) == 7
