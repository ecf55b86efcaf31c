"""What was hashed while parts still came is what is stored, or is hashed again."""

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from lucius_artifacts.errors import NotFound, Unavailable
from lucius_artifacts.objects.files.hashing import Hashing, Hashings
from lucius_artifacts.objects.files.objects import FileObjects
from tests.artifacts.objects.stages import FileStage

KEY = "ob_1"
PARTS = {1: b"one.", 2: b"two.", 3: b"end"}


@pytest.fixture
def objects(files_stage: FileStage) -> FileObjects:
    found = files_stage.objects
    assert isinstance(found, FileObjects)
    return found


async def _bytes(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _put(objects: FileObjects, *parts: tuple[int, bytes]) -> None:
    await objects.begin(KEY)
    for number, content in parts:
        await objects.put_part(KEY, number, len(content), _bytes(content))


async def _digest(objects: FileObjects) -> tuple[str, int]:
    await objects.freeze(KEY, len(PARTS))
    return await objects.digest(KEY)


def _expected(parts: dict[int, bytes]) -> tuple[str, int]:
    content = b"".join(parts[number] for number in sorted(parts))
    return sha256(content).hexdigest(), len(content)


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 1, 3)])
async def test_parts_are_hashed_in_their_order_whatever_the_order_in_which_they_come(
    objects: FileObjects, order: tuple[int, ...]
) -> None:
    await _put(objects, *((number, PARTS[number]) for number in order))
    assert await _digest(objects) == _expected(PARTS)
    assert await objects.digest(KEY) == _expected(PARTS)


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_a_part_that_came_again_after_it_was_hashed_is_hashed_again(
    objects: FileObjects, number: int
) -> None:
    await _put(objects, *PARTS.items())
    objects._hashings.of(KEY).advance(objects._layout.place(KEY))
    other = PARTS | {number: PARTS[number].upper()}
    await _put(objects, (number, other[number]))
    assert await _digest(objects) == _expected(other)


async def test_nothing_that_was_hashed_before_is_read_again(objects: FileObjects) -> None:
    await _put(objects, *PARTS.items())
    hashing = objects._hashings.of(KEY)
    hashing.advance(objects._layout.place(KEY))
    await objects.freeze(KEY, len(PARTS))
    hashing._hash = None  # type: ignore[method-assign,assignment]
    assert await objects.digest(KEY) == _expected(PARTS)


async def test_an_object_that_is_not_there_has_no_digest(objects: FileObjects) -> None:
    with pytest.raises(NotFound):
        await objects.digest(KEY)


def test_a_hashing_that_was_stopped_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"one")
    hashing = Hashing()
    hashing.stop()
    with pytest.raises(Unavailable):
        hashing.finish(tmp_path)


def test_so_many_are_under_way_and_no_more() -> None:
    hashings = Hashings()
    first = hashings.of("0")
    for number in range(300):
        hashings.of(str(number))
    assert len(hashings._by_key) == 256
    assert first._is_stopped
