"""Callers that go away: nothing is left half done, and the next one finds everything in order."""

import asyncio
from contextlib import suppress

import pytest

from lucius_artifacts.catalogue.ending import to_its_end
from lucius_artifacts.model import Hold
from lucius_artifacts.ports.catalogue import Catalogue, Reader, Transaction
from tests.artifacts import rows
from tests.artifacts.catalogue.asking import ask, message, put, put_in
from tests.artifacts.catalogue.backends import Backend
from tests.artifacts.rows import DIGEST, NOW
from tests.runner.deadlines import DEADLINE


async def write_and_wait(transaction: Transaction, written: asyncio.Event) -> None:
    await put_in(transaction, rows.upload(), rows.blob(), rows.version(), message())
    written.set()
    await asyncio.Event().wait()


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    async with asyncio.timeout(DEADLINE):
        await asyncio.wait([task])
    assert task.cancelled()


async def test_a_change_that_is_cancelled_leaves_nothing_behind(backend: Backend) -> None:
    catalogue, written = backend.catalogue, asyncio.Event()
    change = asyncio.create_task(catalogue.change(lambda t: write_and_wait(t, written)))
    await written.wait()
    await cancelled(change)
    assert await ask(catalogue).upload("up_1") is None
    assert await ask(catalogue).blob(DIGEST) is None
    assert await ask(catalogue).latest_number("acme", "answers") == 0
    assert await backend.told() == []
    await put(catalogue, rows.upload(), rows.blob(), rows.version())


async def test_a_read_that_is_cancelled_leaves_the_next_one_a_view_of_its_own(
    catalogue: Catalogue,
) -> None:
    seen = asyncio.Event()

    async def look_and_wait(reader: Reader) -> None:
        await reader.upload("up_1")
        seen.set()
        await asyncio.Event().wait()

    reading = asyncio.create_task(catalogue.read(look_and_wait))
    await seen.wait()
    await cancelled(reading)
    await put(catalogue, rows.upload())
    assert await ask(catalogue).upload("up_1") == rows.upload()


async def test_one_that_waits_for_another_can_be_cancelled(backend: Backend) -> None:
    other = await backend.reopen()
    written, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(transaction: Transaction) -> None:
        await transaction.put_upload(rows.upload())
        written.set()
        await go_on.wait()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(backend.catalogue.change(slowly))
        await written.wait()
        try:
            for catalogue in (backend.catalogue, other):
                begun = asyncio.Event()
                waiting = asyncio.create_task(
                    catalogue.change(lambda t, at=begun: write_and_wait(t, at))  # type: ignore[misc]
                )
                await asyncio.wait([waiting], timeout=0.02)
                await cancelled(waiting)
        finally:
            go_on.set()
    assert await ask(other).upload("up_1") == rows.upload()
    assert await ask(other).blob(DIGEST) is None
    for catalogue in (backend.catalogue, other):
        await put(catalogue, rows.blob())


async def test_wherever_a_change_is_cancelled_it_has_happened_or_has_not(backend: Backend) -> None:
    """And which of the two is known when it has ended: no commit goes on behind anybody's back."""
    catalogue = backend.catalogue
    for turns in range(40):
        job = f"job_{turns}"
        holds = [Hold(job, "acme", key, NOW) for key in (DIGEST, "0" * 64)]
        change = asyncio.create_task(put(catalogue, *holds))
        await asyncio.wait([change], timeout=turns / 4000)
        change.cancel()
        with suppress(asyncio.CancelledError):
            await change
        there = await held(catalogue, job)
        assert len(set(there)) == 1
        await put(catalogue, rows.upload())
        assert await held(catalogue, job) == there


async def held(catalogue: Catalogue, job_id: str) -> list[bool]:
    async def look(reader: Reader) -> list[bool]:
        return [await reader.hold(job_id, key) is not None for key in (DIGEST, "0" * 64)]

    return await catalogue.read(look)


async def test_what_must_end_ends_before_the_cancellation_is_heard() -> None:
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(to_its_end(answer))
    for _ in range(3):
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    answer.set_result("done")
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert answer.result() == "done"


async def test_what_must_end_may_fail_with_or_without_a_cancellation() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await to_its_end(fail())
    waiting = asyncio.ensure_future(to_its_end(fail()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
