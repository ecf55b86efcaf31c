"""Objects as files: what lies where, who waits for whom, and what a crash leaves."""

import asyncio
import fcntl
import os
import resource
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lucius_artifacts.errors import Gone, NotFound, Unavailable
from lucius_artifacts.objects.files.layout import Layout
from lucius_artifacts.ports.objects import Objects
from tests.artifacts.objects.stages import (
    KEY,
    FileStage,
    chunks,
    content_of,
    frozen,
    put,
    soon,
)
from tests.runner.deadlines import DEADLINE

MANY = 3 * 1024 * 1024  # more than is written at once


@pytest.fixture
def layout(files_stage: FileStage) -> Layout:
    return Layout(files_stage.root)


@pytest.fixture
def objects(files_stage: FileStage) -> Objects:
    return files_stage.objects


class Slow:
    """Content of which the last byte waits."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"x" * MANY
        self.has_begun.set()
        await self.may_end.wait()
        yield b"x"


@pytest.fixture
async def slow(objects: Objects) -> AsyncIterator[tuple[Slow, "asyncio.Task[None]"]]:
    """A part 1 on its way, to a place that has one; half of it is written."""
    content = Slow()
    await objects.begin(KEY)
    await put(objects, 1, b"here")
    putting = asyncio.create_task(objects.put_part(KEY, 1, MANY + 1, aiter(content)))
    async with asyncio.timeout(DEADLINE):
        await content.has_begun.wait()
    yield content, putting
    content.may_end.set()
    await asyncio.wait([putting])


Coming = tuple[Slow, "asyncio.Task[None]"]


@contextmanager
def held(folder: Path, lock: int) -> Iterator[None]:
    file = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(file, lock)
        yield
    finally:
        os.close(file)


def move(layout: Layout) -> None:
    """As freezing does."""
    layout.frozen(KEY).parent.mkdir(parents=True)
    os.rename(layout.place(KEY), layout.frozen(KEY))


async def not_yet(task: "asyncio.Future[None]") -> None:
    await asyncio.wait([task], timeout=0.1)
    assert not task.done()


async def test_a_part_on_its_way_is_no_part(objects: Objects, slow: Coming) -> None:
    assert await objects.parts(KEY) == {1: 4}


async def test_a_part_on_its_way_finds_that_its_place_became_an_object(
    objects: Objects, slow: Coming, layout: Layout
) -> None:
    content, putting = slow
    await objects.freeze(KEY, 1)
    content.may_end.set()
    with pytest.raises(Gone):
        await putting
    assert await content_of(objects) == b"here"
    assert os.listdir(layout.frozen(KEY)) == ["1"]


async def test_a_part_on_its_way_finds_that_its_place_was_deleted(
    objects: Objects, slow: Coming, layout: Layout
) -> None:
    content, putting = slow
    await objects.delete(KEY)
    content.may_end.set()
    with pytest.raises(Gone):
        await putting
    assert [*layout.staging.iterdir(), *layout.bin.iterdir()] == []


async def test_a_part_that_is_given_up_leaves_no_file(
    objects: Objects, slow: Coming, layout: Layout
) -> None:
    _, putting = slow
    putting.cancel()
    await asyncio.wait([putting])
    assert os.listdir(layout.place(KEY)) == ["1"]


MOVES: dict[str, Callable[[Objects], Awaitable[None]]] = {
    "freeze": lambda objects: objects.freeze(KEY, 0),
    "delete": lambda objects: objects.delete(KEY),
}


@pytest.mark.parametrize("verb", MOVES)
async def test_a_place_does_not_move_while_a_part_gets_its_number(
    objects: Objects, layout: Layout, verb: str
) -> None:
    await objects.begin(KEY)
    with held(layout.place(KEY), fcntl.LOCK_SH):
        moving = asyncio.ensure_future(MOVES[verb](objects))
        await not_yet(moving)
        assert layout.place(KEY).is_dir()
    await moving
    assert not layout.place(KEY).exists()


async def test_a_part_gets_no_number_while_its_place_moves(
    objects: Objects, slow: Coming, layout: Layout
) -> None:
    content, putting = slow
    with held(layout.place(KEY), fcntl.LOCK_EX):
        content.may_end.set()
        await not_yet(putting)
        move(layout)
    with pytest.raises(Gone):
        await putting
    assert (layout.frozen(KEY) / "1").read_bytes() == b"here"


async def test_a_place_that_moved_before_a_crash_is_an_object(
    objects: Objects, layout: Layout
) -> None:
    await objects.begin(KEY)
    for number in (1, 2):
        await put(objects, number, b"%d" % number)
    move(layout)
    await objects.freeze(KEY, 2)
    assert await content_of(objects) == b"12"


async def test_freezing_again_with_another_count_takes_nothing_away(objects: Objects) -> None:
    await frozen(objects, b"one", b"two")
    await objects.freeze(KEY, 1)
    assert await content_of(objects) == b"onetwo"


async def test_what_a_crash_before_the_move_left_is_no_part(
    objects: Objects, layout: Layout
) -> None:
    await objects.begin(KEY)
    for number in (1, 2):
        await put(objects, number, b"one")
    (layout.place(KEY) / "incoming-4f").write_bytes(b"half")
    assert await objects.parts(KEY) == {1: 3, 2: 3}
    await objects.freeze(KEY, 1)
    assert os.listdir(layout.frozen(KEY)) == ["1"]


async def test_what_a_crash_left_half_deleted_is_deleted_by_the_next_one(
    objects: Objects, layout: Layout
) -> None:
    await frozen(objects, b"one")
    layout.bin.mkdir()
    os.rename(layout.frozen(KEY), layout.bin / f"object-{KEY}")
    await objects.delete(KEY)
    assert list(layout.bin.iterdir()) == []


async def test_a_place_that_becomes_an_object_while_it_is_deleted_is_deleted(
    objects: Objects, layout: Layout
) -> None:
    await objects.begin(KEY)
    with held(layout.place(KEY), fcntl.LOCK_SH):
        deleting = asyncio.ensure_future(objects.delete(KEY))
        await not_yet(deleting)
        move(layout)
    await deleting
    with pytest.raises(NotFound):
        await content_of(objects)


async def test_nothing_stays_of_what_was_deleted(files_stage: FileStage, layout: Layout) -> None:
    for key in ("a", "b"):
        await files_stage.objects.begin(key)
        await put(files_stage.objects, 1, b"one", key)
    await files_stage.objects.freeze("a", 1)
    for key in ("a", "b"):
        await files_stage.objects.delete(key)
    assert [path for path in files_stage.root.rglob("*") if path.is_file()] == []
    assert [*layout.staging.iterdir(), *layout.bin.iterdir()] == []


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file gets longer than this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_part_that_does_not_fit_leaves_the_one_before(
    objects: Objects, layout: Layout
) -> None:
    await objects.begin(KEY)
    await put(objects, 1, b"here")
    with full_disk(MANY - 1), pytest.raises(Unavailable, match="too large"):
        await put(objects, 1, b"x" * MANY)
    assert await objects.parts(KEY) == {1: 4}
    assert os.listdir(layout.place(KEY)) == ["1"]


async def test_a_folder_that_cannot_be_used_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "objects").write_text("not a folder")
    stage = FileStage(tmp_path / "objects")
    objects = await stage.open()
    for attempt in (
        objects.check(),
        objects.begin(KEY),
        objects.freeze(KEY, 1),
        objects.parts(KEY),
        objects.delete(KEY),
        content_of(objects),
        put(objects, 1, b"x"),
    ):
        with pytest.raises(Unavailable, match="folder of objects cannot be used"):
            await attempt
    await objects.close()


async def test_a_part_that_has_lost_bytes_is_not_handed_out(
    objects: Objects, layout: Layout
) -> None:
    await frozen(objects, b"one", b"two")
    reading = objects.read(KEY)
    await anext(reading)
    os.truncate(layout.frozen(KEY) / "2", 1)
    with pytest.raises(Unavailable, match="lost bytes"):
        await anext(reading)


async def test_an_object_that_is_deleted_while_it_is_read_is_not_found(objects: Objects) -> None:
    await frozen(objects, b"one", b"two")
    reading = objects.read(KEY)
    await anext(reading)
    await objects.delete(KEY)
    with pytest.raises(NotFound):
        await anext(reading)


async def test_a_closed_storage_is_unavailable(tmp_path: Path) -> None:
    objects = await FileStage(tmp_path).open()
    await objects.close()
    await objects.close()
    for attempt in (objects.begin(KEY), objects.parts(KEY), content_of(objects)):
        with pytest.raises(Unavailable):
            await attempt


async def test_many_small_chunks_make_a_part(objects: Objects) -> None:
    content = bytes(range(256)) * 20
    await objects.begin(KEY)
    await objects.put_part(KEY, 1, len(content), chunks(content, size=3))
    await objects.freeze(KEY, 1)
    assert await content_of(objects) == content


async def test_addresses_lead_to_where_the_service_listens(tmp_path: Path) -> None:
    from lucius_artifacts.objects.files import FileObjects

    where = ["https://one.example/"]
    objects = FileObjects(tmp_path, FileStage(tmp_path).signer, lambda: where[0])
    first = await objects.sign_part(KEY, 2, 3, soon())
    where[0] = "https://two.example"
    second = await objects.sign_read(KEY, soon(), "text/plain", "a b.txt")
    assert first.url.startswith(f"https://one.example/v1/artifacts/objects/{KEY}/parts/2?expires=")
    assert second.url.startswith(f"https://two.example/v1/artifacts/objects/{KEY}?expires=")
    await objects.close()
