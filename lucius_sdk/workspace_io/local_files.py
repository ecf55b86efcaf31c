"""Files as streams and sinks: their faults are a step's errors, and what is written is durable
before it is visible."""

import io
import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lucius_sdk.workspace_io.faults import faults, reading, writing
from lucius_sdk.workspace_io.names import RESERVED
from lucius_sdk.workspace_io.streams import CHUNK
from lucius_sdk.workspace_io.uris import refused

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


def open_file(path: Path, uri: str) -> BinaryIO:
    """Without waiting for the other end, should it be a pipe."""
    with faults(reading, uri):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = io.FileIO(os.open(path, flags))
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise refused(uri, "does not name a file")
    return io.BufferedReader(_FileStream(file, uri), CHUNK)


class _FileStream(io.RawIOBase):
    def __init__(self, file: io.FileIO, uri: str) -> None:
        self._file = file
        self._uri = uri

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: "WriteableBuffer", /) -> int | None:
        with faults(reading, self._uri):
            return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class FileSink:
    """Writes a hidden file beside the target, and renames it. A kill leaves the hidden one."""

    def __init__(self, target: Path, uri: str) -> None:
        self._target = target
        self._uri = uri
        self._unfinished = target.with_name(f"{RESERVED}{uuid.uuid4().hex}.part")
        with faults(writing, uri):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._file: io.FileIO | None = io.FileIO(os.open(self._unfinished, flags, 0o666), "w")
        self._is_over = False

    def write(self, data: bytes | memoryview) -> None:
        if self._file is None:
            raise ValueError("the sink is sealed")
        with faults(writing, self._uri), memoryview(data).cast("B") as rest:
            while rest:
                rest = rest[self._file.write(rest) :]

    def seal(self) -> None:
        """Durable, though not yet visible; takes no more data."""
        if self._file is None:
            return
        with faults(writing, self._uri):
            os.fsync(self._file.fileno())
            self._file.close()
        self._file = None

    def commit(self) -> None:
        self.seal()
        with faults(writing, self._uri):
            self._unfinished.replace(self._target)
            self._is_over = True
            sync_folder(self._target.parent)

    def discard(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
        self._file = None
        with suppress(OSError):
            self._unfinished.unlink()


def make_folders(root: Path, folder: Path) -> None:
    """Those below `root` that are missing; `root` itself is never made."""
    missing = [folder]
    while not missing[-1].is_dir() and missing[-1] != root:
        missing.append(missing[-1].parent)
    for made in reversed(missing[:-1]):
        made.mkdir(exist_ok=True)
        sync_folder(made.parent)


def sync_folder(folder: Path) -> None:
    """So that a power cut forgets no name in it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
