"""Parts are hashed in their order while others still come: then verification has little to do.

A part has all its bytes before it has its number, and nobody writes to it afterwards; one that
comes again is another file. So what was hashed before the object was frozen counts after it, if
every part is still the file that was hashed. Otherwise all of them are hashed again.
"""

import io
import os
from hashlib import sha256
from pathlib import Path
from threading import Lock as ThreadLock
from typing import NamedTuple

from lucius_artifacts.errors import NotFound, Unavailable
from lucius_artifacts.objects.files.layout import sizes_in

_PIECE = 1024 * 1024
_MOST_KEYS = 256


class _File(NamedTuple):
    inode: int
    modified: int
    size: int


class Hashing:
    """Of one object. Each call blocks; they may come from different threads."""

    def __init__(self) -> None:
        self._one_at_a_time = ThreadLock()
        self._is_stopped = False
        self._begin_anew()

    def advance(self, place: Path) -> None:
        """As far as parts are there, unless another thread is at it."""
        if self._one_at_a_time.acquire(blocking=False):
            try:
                self._hash_next(place)
            finally:
                self._one_at_a_time.release()

    def finish(self, frozen: Path) -> tuple[str, int]:
        """Digest and length of all. `NotFound` if there is no such object."""
        with self._one_at_a_time:
            try:
                sizes = sizes_in(frozen)
                if not self._has_hashed_these(frozen):
                    self._begin_anew()
                self._hash_next(frozen)
            except FileNotFoundError as error:
                raise NotFound(f"object {frozen.name}") from error
            if len(self._files) != len(sizes):
                raise Unavailable(f"object {frozen.name} was not read to its end")
            return self._digest.hexdigest(), sum(file.size for file in self._files)

    def stop(self) -> None:
        """Whoever is at it ends soon."""
        self._is_stopped = True

    def _begin_anew(self) -> None:
        self._digest = sha256()
        self._files: list[_File] = []
        self._buffer = memoryview(bytearray(_PIECE))

    def _has_hashed_these(self, folder: Path) -> bool:
        return all(
            _file_of(os.stat(folder / str(number))) == file
            for number, file in enumerate(self._files, 1)
        )

    def _hash_next(self, folder: Path) -> None:
        while not self._is_stopped:
            try:
                file = open(folder / str(len(self._files) + 1), "rb", buffering=0)  # noqa: SIM115
            except FileNotFoundError:
                return
            with file:
                found = _file_of(os.fstat(file.fileno()))
                self._hash(file)
            self._files.append(found)

    def _hash(self, file: io.FileIO) -> None:
        while size := file.readinto(self._buffer):
            if self._is_stopped:
                raise Unavailable("nobody wants to know any more")
            self._digest.update(self._buffer[:size])


class Hashings:
    """Those that are under way in this process."""

    def __init__(self) -> None:
        self._by_key: dict[str, Hashing] = {}

    def of(self, key: str) -> Hashing:
        if key not in self._by_key and len(self._by_key) >= _MOST_KEYS:
            self.take(next(iter(self._by_key))).stop()
        return self._by_key.setdefault(key, Hashing())

    def take(self, key: str) -> Hashing:
        """To end it: a later one begins anew."""
        return self._by_key.pop(key, None) or Hashing()

    def stop(self) -> None:
        for key in list(self._by_key):
            self.take(key).stop()


def _file_of(found: os.stat_result) -> _File:
    return _File(found.st_ino, found.st_mtime_ns, found.st_size)
