"""After a loss of power no part has its number and not its bytes, and no frozen object is gone.

A test cannot cut the power: it looks at what is asked of the disk, and when. A part whose number is
lost is missing, and is brought again.
"""

import os
from pathlib import Path

import pytest

from lucius_artifacts.objects.files.layout import Layout
from tests.artifacts.objects.stages import KEY, FileStage, chunks, put

LARGE = 5 * 1024 * 1024  # more than is written at once


class Disk:
    """Every file and folder that was made durable, with its size then, and every one that moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, int, int]] = []
        self._fsync, self._rename = os.fsync, os.rename
        monkeypatch.setattr(os, "fsync", self._synced)
        monkeypatch.setattr(os, "rename", self._renamed)

    def _synced(self, file: int) -> None:
        self._fsync(file)
        self._tell("durable", os.fstat(file))

    def _renamed(self, source: Path, target: Path) -> None:
        self._rename(source, target)
        self._tell("moved", os.stat(target))

    def _tell(self, what: str, found: os.stat_result) -> None:
        self.asked.append((what, found.st_ino, found.st_size))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


async def test_a_part_is_durable_with_all_its_bytes_before_it_has_its_number(
    files_stage: FileStage, disk: Disk
) -> None:
    await files_stage.objects.begin(KEY)
    disk.asked.clear()
    await files_stage.objects.put_part(KEY, 1, LARGE, chunks(b"x" * LARGE))
    part = (Layout(files_stage.root).place(KEY) / "1").stat()
    assert disk.asked == [("durable", part.st_ino, LARGE), ("moved", part.st_ino, LARGE)]


async def test_a_frozen_object_is_durable_with_its_names_and_its_place(
    files_stage: FileStage, disk: Disk
) -> None:
    await files_stage.objects.begin(KEY)
    await put(files_stage.objects, 1, b"one")
    disk.asked.clear()
    await files_stage.objects.freeze(KEY, 1)
    layout = Layout(files_stage.root)
    frozen = layout.frozen(KEY)
    moved = disk.asked.index(("moved", frozen.stat().st_ino, frozen.stat().st_size))
    before = {inode for what, inode, _ in disk.asked[:moved] if what == "durable"}
    after = {inode for what, inode, _ in disk.asked[moved:] if what == "durable"}
    assert frozen.stat().st_ino in before
    places = (layout.staging, frozen.parent, layout.objects)
    assert {folder.stat().st_ino for folder in places} <= after
