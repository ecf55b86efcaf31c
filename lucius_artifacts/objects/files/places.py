"""What becomes of a place for parts. All of it blocks."""

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from lucius_artifacts.errors import NotFound
from lucius_artifacts.objects.files.layout import (
    Layout,
    Lock,
    drop_all_but,
    locked,
    make_durable,
    make_folder,
    remove,
    sizes_in,
)


def begin(layout: Layout, key: str) -> None:
    make_folder(layout.place(key))
    make_durable(layout.staging)


def parts(layout: Layout, key: str) -> dict[int, int]:
    """The object is asked for twice, since the place may become one after the first time."""
    frozen = layout.frozen(key)
    for folder in (frozen, layout.place(key), frozen):
        with suppress(FileNotFoundError):
            return sizes_in(folder)
    return {}


def sizes_of_object(layout: Layout, key: str) -> dict[int, int]:
    try:
        return sizes_in(layout.frozen(key))
    except FileNotFoundError as error:
        raise NotFound(f"object {key}") from error


def freeze(layout: Layout, key: str, count: int) -> None:
    frozen = layout.frozen(key)
    try:
        if not frozen.is_dir():
            _move(layout, key, count)
        for folder in (frozen.parent, layout.objects):  # again, if the one who moved it died
            make_durable(folder)
    except FileNotFoundError as error:  # there was no place, or it is being deleted
        raise NotFound(f"place for parts of {key}") from error


def delete(layout: Layout, key: str) -> None:
    """The place first: what it has become until then is found as an object."""
    make_folder(layout.bin)
    for kind, folder in (("place", layout.place(key)), ("object", layout.frozen(key))):
        _throw_away(folder, layout.bin / f"{kind}-{key}")


def check(layout: Layout) -> None:
    """That a file can be written and removed."""
    make_folder(layout.staging)
    probe = layout.staging / f".check-{uuid4().hex}"
    try:
        probe.write_bytes(b"written")
    finally:
        probe.unlink(missing_ok=True)


def _move(layout: Layout, key: str, count: int) -> None:
    place, frozen = layout.place(key), layout.frozen(key)
    make_folder(frozen.parent)
    try:
        with locked(place, Lock.EXCLUSIVE):
            _check_all_there(place, key, count)
            drop_all_but(place, count)
            make_durable(place)
            os.rename(place, frozen)
        make_durable(layout.staging)
    except FileNotFoundError:
        if not frozen.is_dir():  # else another one has moved it
            raise


def _check_all_there(place: Path, key: str, count: int) -> None:
    there = sizes_in(place)
    for number in range(1, count + 1):
        if number not in there:
            raise NotFound(f"part {number} of {key}")


def _throw_away(folder: Path, place: Path) -> None:
    """Nobody sees a half of it: it moves before it is emptied. What an earlier call did not get to
    is removed, too."""
    remove(place)
    with suppress(FileNotFoundError), locked(folder, Lock.EXCLUSIVE):
        os.rename(folder, place)
        remove(place)
