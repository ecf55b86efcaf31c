"""From what arrives in small chunks to what is written in large ones."""

from collections.abc import AsyncGenerator, AsyncIterator

from lucius_artifacts.objects.keys import not_as_long

BATCH = 2 * 1024 * 1024
"""Bytes that are written at once: one batch is, while the next one is received."""


async def batches(
    content: AsyncIterator[bytes], number: int, length: int, size: int = BATCH
) -> AsyncGenerator[list[bytes], None]:
    """`Invalid` as soon as it is known that the content is not `length` bytes long."""
    batch: list[bytes] = []
    held, left = 0, length
    async for chunk in content:
        left -= len(chunk)
        if left < 0:
            raise not_as_long(number, length)
        batch.append(chunk)
        held += len(chunk)
        if held >= size:
            yield batch
            batch, held = [], 0
    if left:
        raise not_as_long(number, length)
    yield batch
