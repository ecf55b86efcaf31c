"""Every adapter is in this suite, can be checked, and refuses what no storage has."""

from collections.abc import Awaitable, Callable

import pytest

from lucius_artifacts.errors import Invalid
from lucius_artifacts.ports.objects import Objects
from tests.artifacts.objects.stages import (
    KEY,
    adapters_in_the_suite,
    adapters_in_the_tree,
    chunks,
    content_of,
    soon,
)


def test_every_adapter_is_in_this_suite() -> None:
    assert adapters_in_the_tree() == adapters_in_the_suite()


async def test_a_storage_that_can_be_used_passes_its_check(objects: Objects) -> None:
    await objects.check()
    await objects.begin(KEY)
    await objects.check()


VERBS: dict[str, Callable[[Objects, str], Awaitable[object]]] = {
    "begin": lambda objects, key: objects.begin(key),
    "sign_part": lambda objects, key: objects.sign_part(key, 1, 1, soon()),
    "put_part": lambda objects, key: objects.put_part(key, 1, 1, chunks(b"x")),
    "parts": lambda objects, key: objects.parts(key),
    "freeze": lambda objects, key: objects.freeze(key, 1),
    "read": lambda objects, key: content_of(objects, key),
    "sign_read": lambda objects, key: objects.sign_read(key, soon(), "text/plain", "a.txt"),
    "delete": lambda objects, key: objects.delete(key),
}


@pytest.mark.parametrize("key", ["", ".", "..", "../ob_1", "a/b", "a.b", "ob\n", "ob\x00", "ö"])
async def test_what_is_no_key_is_refused_by_every_verb(objects: Objects, key: str) -> None:
    for verb in VERBS.values():
        with pytest.raises(Invalid) as refused:
            await verb(objects, key)
        assert refused.value.field == "key"


async def test_parts_have_numbers_and_sizes_that_the_storage_can_keep(objects: Objects) -> None:
    await objects.begin(KEY)
    most, largest = objects.most_parts, objects.largest_part
    for number, length in [(0, 1), (-1, 1), (most + 1, 1), (1, 0), (1, -1), (1, largest + 1)]:
        with pytest.raises(Invalid):
            await objects.sign_part(KEY, number, length, soon())
        with pytest.raises(Invalid):
            await objects.put_part(KEY, number, length, chunks(b"x"))
    assert await objects.parts(KEY) == {}
