"""A frozen object is what it is, whatever comes, and whoever freezes it again."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from lucius_artifacts.errors import ArtifactsError, Gone, NotFound
from lucius_artifacts.ports.objects import Objects
from tests.artifacts.objects.stages import KEY, Stage, content_of, frozen, put, soon
from tests.runner.deadlines import DEADLINE


async def test_an_object_is_its_parts_in_the_order_of_their_numbers(objects: Objects) -> None:
    parts = [bytes([number]) * 1000 for number in range(1, 12)]
    content = await frozen(objects, *parts, b"a shorter one")
    assert await content_of(objects) == content
    assert await objects.parts(KEY) == {**dict.fromkeys(range(1, 12), 1000), 12: 13}


async def test_an_empty_object_has_no_parts(objects: Objects) -> None:
    await frozen(objects)
    assert await content_of(objects) == b""
    assert await objects.parts(KEY) == {}
    await objects.freeze(KEY, 0)


async def test_parts_with_other_numbers_are_not_in_the_object(objects: Objects) -> None:
    await objects.begin(KEY)
    for number in (1, 2, 3, 7):
        await put(objects, number, b"%d" % number)
    await objects.freeze(KEY, 2)
    assert await content_of(objects) == b"12"
    assert await objects.parts(KEY) == {1: 1, 2: 1}


async def test_a_missing_part_is_told_and_can_still_be_brought(objects: Objects) -> None:
    await objects.begin(KEY)
    await put(objects, 1, b"one")
    await put(objects, 3, b"three")
    with pytest.raises(NotFound):
        await objects.freeze(KEY, 3)
    assert await objects.parts(KEY) == {1: 3, 3: 5}
    with pytest.raises(NotFound):
        await content_of(objects)
    await put(objects, 2, b"two")
    await objects.freeze(KEY, 3)
    assert await content_of(objects) == b"onetwothree"


async def test_a_place_that_was_never_begun_cannot_be_frozen(objects: Objects) -> None:
    for count in (0, 1):
        with pytest.raises(NotFound):
            await objects.freeze(KEY, count)
    with pytest.raises(NotFound):
        await content_of(objects)


async def test_freezing_again_changes_nothing(stage: Stage) -> None:
    content = await frozen(stage.objects, b"one", b"two")
    await stage.objects.freeze(KEY, 2)
    other = await stage.open()
    await other.freeze(KEY, 2)
    assert await content_of(other) == content
    assert await other.parts(KEY) == {1: 3, 2: 3}
    await other.close()


async def test_a_place_that_is_begun_after_all_does_not_hide_the_object(objects: Objects) -> None:
    """Nobody should; who was slow may."""
    content = await frozen(objects, b"one", b"two")
    await objects.begin(KEY)
    assert await objects.parts(KEY) == {1: 3, 2: 3}
    await objects.freeze(KEY, 2)
    assert await content_of(objects) == content


async def test_two_may_freeze_at_once(stage: Stage) -> None:
    other = await stage.open()
    await stage.objects.begin(KEY)
    await put(stage.objects, 1, b"one")
    await asyncio.gather(stage.objects.freeze(KEY, 1), other.freeze(KEY, 1))
    assert await content_of(stage.objects) == await content_of(other) == b"one"
    await other.close()


async def test_addresses_that_were_handed_out_do_not_change_a_frozen_object(stage: Stage) -> None:
    objects = stage.objects
    await objects.begin(KEY)
    addresses = [await objects.sign_part(KEY, number, 3, soon()) for number in (1, 2, 3)]
    for address in addresses[:2]:
        assert await stage.put(address, b"old")
    await objects.freeze(KEY, 2)
    for address in addresses:
        taken = await stage.put(address, b"new")
        assert not (taken and stage.tells_the_late)
    assert await content_of(objects) == b"oldold"
    assert await objects.parts(KEY) == {1: 3, 2: 3}
    await objects.freeze(KEY, 2)
    assert await content_of(objects) == b"oldold"


async def test_a_part_that_is_on_its_way_while_its_place_is_frozen_is_not_in_it(
    stage: Stage,
) -> None:
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"n"
        has_begun.set()
        await may_end.wait()
        yield b"ew"

    await stage.objects.begin(KEY)
    await put(stage.objects, 1, b"old")
    putting = asyncio.create_task(stage.objects.put_part(KEY, 1, 3, slow()))
    async with asyncio.timeout(DEADLINE):
        await has_begun.wait()
    await stage.objects.freeze(KEY, 1)
    may_end.set()
    (told,) = await asyncio.gather(putting, return_exceptions=True)
    assert isinstance(told, Gone) or not stage.tells_the_late
    assert await content_of(stage.objects) == b"old"


async def test_a_part_that_races_with_freezing_is_in_it_wholly_or_refused(stage: Stage) -> None:
    """And what is read once is read ever after."""
    tries = 60 if stage.streams and stage.tells_the_late else 4
    other = await stage.open()
    for number in range(tries):
        await _race(stage.objects, other, f"race{number}")
    await other.close()


async def _race(objects: Objects, other: Objects, key: str) -> None:
    await objects.begin(key)
    for number in (1, 2):
        await put(objects, number, b"." * 300, key)
    late = [asyncio.create_task(_late(other, letter, key)) for letter in b"abcdef"]
    await objects.freeze(key, 2)
    first = await content_of(objects, key)
    told = await asyncio.gather(*late)
    assert await content_of(objects, key) == first
    assert first[:300] == b"." * 300
    assert len(first) == 600
    assert len(set(first[300:])) == 1
    assert set(told) <= {None, Gone}


async def _late(objects: Objects, letter: int, key: str) -> type[ArtifactsError] | None:
    try:
        await put(objects, 2, bytes([letter]) * 300, key)
    except Gone as gone:
        return type(gone)
    return None
