"""What was deleted is gone in every phase, and stays gone."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from lucius_artifacts.errors import Gone, NotFound
from lucius_artifacts.ports.objects import Objects
from tests.artifacts.objects.stages import KEY, Stage, content_of, frozen, put, soon


async def _nothing(objects: Objects) -> None: ...


async def _begun(objects: Objects) -> None:
    await objects.begin(KEY)


async def _with_parts(objects: Objects) -> None:
    await objects.begin(KEY)
    await put(objects, 1, b"one")
    await put(objects, 2, b"two")


async def _frozen(objects: Objects) -> None:
    await frozen(objects, b"one", b"two")


PHASES = [_nothing, _begun, _with_parts, _frozen]


@pytest.mark.parametrize("phase", PHASES)
async def test_it_can_be_deleted_in_every_phase_and_again(
    stage: Stage, phase: Callable[[Objects], Awaitable[None]]
) -> None:
    objects = stage.objects
    await phase(objects)
    address = await objects.sign_part(KEY, 1, 3, soon())
    for _ in range(2):
        await objects.delete(KEY)
        assert await objects.parts(KEY) == {}
        with pytest.raises(Gone):
            await put(objects, 1, b"new")
        taken = await stage.put(address, b"new")
        assert not (taken and stage.tells_the_late)
        for count in (0, 1, 2):
            with pytest.raises(NotFound):
                await objects.freeze(KEY, count)
        with pytest.raises(NotFound):
            await content_of(objects)
        assert await objects.parts(KEY) == {}


async def test_an_address_to_read_shows_nothing_of_what_was_deleted(stage: Stage) -> None:
    await frozen(stage.objects, b"one")
    address = await stage.objects.sign_read(KEY, soon(), "text/plain", "one.txt")
    assert await stage.get(address) is not None
    await stage.objects.delete(KEY)
    assert await stage.get(address) is None


async def test_who_freezes_while_it_is_deleted_leaves_nothing(stage: Stage) -> None:
    other = await stage.open()
    for number in range(8 if stage.tells_the_late else 3):
        key = f"race{number}"
        await stage.objects.begin(key)
        await put(stage.objects, 1, b"one", key)
        freezing = asyncio.create_task(other.freeze(key, 1))
        await stage.objects.delete(key)
        (ended,) = await asyncio.gather(freezing, return_exceptions=True)
        assert ended is None or isinstance(ended, NotFound)
        with pytest.raises(NotFound):
            await content_of(stage.objects, key)
        assert await stage.objects.parts(key) == {}
    await other.close()
