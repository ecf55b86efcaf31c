"""Where the files are, and how folders are listed, locked, emptied and made durable."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from hashlib import sha256
from pathlib import Path

from lucius_artifacts.objects.keys import checked_key


class Layout:
    """Paths below a root; none leads out of it, since keys are checked."""

    def __init__(self, root: Path) -> None:
        self.staging = root / "staging"
        self.objects = root / "objects"
        self.bin = root / "bin"

    def place(self, key: str) -> Path:
        return self.staging / checked_key(key)

    def frozen(self, key: str) -> Path:
        spread = sha256(checked_key(key).encode()).hexdigest()[:2]
        return self.objects / spread / key


class Lock(IntEnum):
    """Shared: parts get their numbers. Exclusive: the folder moves."""

    SHARED = fcntl.LOCK_SH
    EXCLUSIVE = fcntl.LOCK_EX


def open_folder(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    folder = open_folder(path)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def locked(path: Path, lock: Lock) -> Iterator[None]:
    """Held by nobody else, in this process or another. It may have moved before."""
    with opened(path) as folder:
        fcntl.flock(folder, lock)
        yield


def make_folder(folder: Path) -> None:
    """With the folders above it, all for their owner alone, unless they are there."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def make_durable(path: Path) -> None:
    """What a folder holds, by name."""
    with opened(path) as folder:
        os.fsync(folder)


def sizes_in(folder: Path) -> dict[int, int]:
    """Of its parts, by number. FileNotFoundError if it is not there, or goes meanwhile."""
    with os.scandir(folder) as entries:
        parts = {int(entry.name): entry.stat() for entry in entries if entry.name.isdecimal()}
    return {number: parts[number].st_size for number in sorted(parts)}


def drop_all_but(folder: Path, count: int) -> None:
    """Keep parts 1 to `count`, and nothing else."""
    kept = set(map(str, range(1, count + 1)))
    for name in set(os.listdir(folder)) - kept:
        with suppress(FileNotFoundError):
            os.unlink(folder / name)


def remove(folder: Path) -> None:
    """With all its files. One that is not there, or that another one removes, is no error."""
    with suppress(FileNotFoundError):
        drop_all_but(folder, 0)
        folder.rmdir()
