"""Any range of a frozen object, in chunks that fit into memory."""

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from lucius_artifacts.errors import NotFound
from lucius_artifacts.ports.objects import CHUNK, Objects
from tests.artifacts.objects.stages import KEY, Stage, content_of, frozen, put

RANGES = [
    (0, None),
    (0, 0),
    (0, 1),
    (3, 4),
    (3, 5),
    (2, 7),
    (4, None),
    (9, 10),
    (9, 99),
    (10, None),
    (11, 12),
    (5, 3),
]


async def test_every_range_can_be_read(objects: Objects) -> None:
    content = await frozen(objects, b"0123", b"4567", b"89")
    for start, end in RANGES:
        assert await content_of(objects, KEY, start, end) == content[start:end]


async def test_an_object_has_no_bytes_before_it_is_frozen(objects: Objects) -> None:
    await objects.begin(KEY)
    await put(objects, 1, b"one")
    for key in (KEY, "another"):
        with pytest.raises(NotFound):
            await anext(objects.read(key))


async def test_no_chunk_is_larger_than_what_may_be_in_memory(objects: Objects) -> None:
    content = await frozen(objects, b"a" * (CHUNK + 5), b"b" * 7)
    sizes = [len(chunk) async for chunk in objects.read(KEY, 1)]
    assert max(sizes) <= CHUNK
    assert sum(sizes) == len(content) - 1


async def test_two_may_read_at_once(objects: Objects) -> None:
    content = await frozen(objects, b"one", b"two")
    first, second = await asyncio.gather(content_of(objects), content_of(objects))
    assert first == second == content


async def test_memory_stays_small_however_large_a_part_is(stage: Stage) -> None:
    if not stage.streams:
        return
    size, block = 32 * 1024**2, 64 * 1024

    async def large() -> AsyncIterator[bytes]:
        for number in range(size // block):
            yield bytes([number % 256]) * block

    await stage.objects.begin(KEY)
    gc.collect()
    tracemalloc.start()
    try:
        await stage.objects.put_part(KEY, 1, size, large())
        await stage.objects.freeze(KEY, 1)
        read = 0
        async for chunk in stage.objects.read(KEY):
            read += len(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read == size
    assert peak < 4 * CHUNK
