"""Parts come in any order, come again, and are there wholly or not at all."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from lucius_artifacts.errors import Gone, Invalid
from lucius_artifacts.ports.objects import Objects
from tests.artifacts.objects.stages import KEY, Stage, chunks, content_of, frozen, put
from tests.runner.deadlines import DEADLINE


async def test_parts_come_in_any_order(objects: Objects) -> None:
    await objects.begin(KEY)
    for number, part in [(3, b"ccc"), (1, b"a"), (2, b"bb")]:
        await put(objects, number, part)
    assert await objects.parts(KEY) == {1: 1, 2: 2, 3: 3}
    await objects.freeze(KEY, 3)
    assert await content_of(objects) == b"abbccc"


async def test_a_place_that_is_begun_again_keeps_its_parts(stage: Stage) -> None:
    await stage.objects.begin(KEY)
    await put(stage.objects, 1, b"first")
    await (other := await stage.open()).begin(KEY)
    assert await other.parts(KEY) == {1: 5}
    await other.close()


async def test_a_part_that_comes_again_replaces_the_one_before(objects: Objects) -> None:
    await objects.begin(KEY)
    await put(objects, 1, b"the longer one")
    await put(objects, 1, b"shorter")
    assert await objects.parts(KEY) == {1: 7}
    await objects.freeze(KEY, 1)
    assert await content_of(objects) == b"shorter"


@pytest.mark.parametrize("size", [3, 5, 64 * 1024 + 1, 3 * 1024 * 1024])
async def test_a_part_of_another_length_leaves_the_one_before(objects: Objects, size: int) -> None:
    await objects.begin(KEY)
    await put(objects, 1, b"here")
    with pytest.raises(Invalid) as refused:
        await objects.put_part(KEY, 1, 4, chunks(b"x" * size))
    assert refused.value.field == "part"
    assert await objects.parts(KEY) == {1: 4}
    await objects.freeze(KEY, 1)
    assert await content_of(objects) == b"here"


async def test_a_part_whose_first_chunk_is_whole_and_whose_second_is_too_much_is_not_there(
    objects: Objects,
) -> None:
    await objects.begin(KEY)
    with pytest.raises(Invalid):
        await objects.put_part(KEY, 1, 4, chunks(b"herefour", size=4))
    assert await objects.parts(KEY) == {}


async def test_content_that_does_not_end_is_not_taken_for_long(objects: Objects) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b"x" * 64 * 1024
        pytest.fail("far more than was announced was taken")

    await objects.begin(KEY)
    with pytest.raises(Invalid):
        await objects.put_part(KEY, 1, 100_000, endless())
    assert await objects.parts(KEY) == {}


class Lost(OSError):
    """The connection to the client."""


async def test_a_part_whose_content_breaks_off_leaves_the_one_before(objects: Objects) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 3_000_000
        raise Lost

    await objects.begin(KEY)
    await put(objects, 1, b"here")
    with pytest.raises(Lost):
        await objects.put_part(KEY, 1, 4_000_000, broken())
    assert await objects.parts(KEY) == {1: 4}


async def test_a_part_that_nobody_waits_for_any_more_leaves_the_one_before(
    objects: Objects,
) -> None:
    arrived = asyncio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        yield b"x" * 3_000_000
        arrived.set()
        await asyncio.Event().wait()

    await objects.begin(KEY)
    await put(objects, 1, b"here")
    putting = asyncio.create_task(objects.put_part(KEY, 1, 4_000_000, stuck()))
    async with asyncio.timeout(DEADLINE):
        await asyncio.wait(
            [putting, asyncio.create_task(arrived.wait())], return_when=asyncio.FIRST_COMPLETED
        )
    putting.cancel()
    await asyncio.wait([putting])
    assert putting.cancelled()
    assert await objects.parts(KEY) == {1: 4}


async def test_there_are_no_parts_without_a_place(objects: Objects) -> None:
    with pytest.raises(Gone):
        await put(objects, 1, b"x")
    assert await objects.parts(KEY) == {}


async def test_a_frozen_object_takes_no_part(objects: Objects) -> None:
    await frozen(objects, b"one", b"two")
    for number in (1, 2, 3):
        with pytest.raises(Gone):
            await put(objects, number, b"new")
    assert await content_of(objects) == b"onetwo"


async def test_keys_keep_out_of_each_others_way(objects: Objects) -> None:
    for key in ("a", "A-_0", "b"):
        await objects.begin(key)
        await put(objects, 1, key.encode(), key)
    await objects.freeze("a", 1)
    await objects.delete("b")
    assert await objects.parts("A-_0") == {1: 4}
    assert await content_of(objects, "a") == b"a"
