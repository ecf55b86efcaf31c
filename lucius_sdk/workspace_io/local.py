"""Files of this machine, or of a volume that all machines mount. Needs POSIX."""

import os
from os.path import abspath, realpath
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import RetryableError
from lucius_sdk.workspace_io.faults import faults, reading, writing
from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.fence_file import fence_held, fence_path
from lucius_sdk.workspace_io.local_files import FileSink, make_folders, open_file
from lucius_sdk.workspace_io.names import RESERVED
from lucius_sdk.workspace_io.port import Source
from lucius_sdk.workspace_io.streams import CHUNK
from lucius_sdk.workspace_io.uris import file_path, refused

_SCHEMES = frozenset({"file"})
_LOCK_SECONDS = 30.0


class LocalStorage:
    """Writes below `root`; reads there and below the folders in `readable`.

    A symlink may stand on the way, but what counts is where it leads. Beside a published file lies
    a hidden one with its fence, and both beside it and in steps' folders a process that was killed
    may leave unfinished hidden files; the names of all of them begin with `.lucius-`.
    """

    def __init__(
        self, root: Path, readable: tuple[Path, ...] = (), *, lock_seconds: float = _LOCK_SECONDS
    ) -> None:
        self._root = Path(abspath(root))
        self._readable = (self._root, *(Path(abspath(folder)) for folder in readable))
        self._lock_seconds = lock_seconds

    @property
    def schemes(self) -> frozenset[str]:
        return _SCHEMES

    def prepare(self) -> None:
        """Make the root, once, when a service starts."""
        with faults(writing, self._root.as_uri()):
            self._root.mkdir(parents=True, exist_ok=True)

    def open_read(self, uri: str) -> BinaryIO:
        return open_file(self._to_read(uri), uri)

    def size_of(self, uri: str) -> int:
        with faults(reading, uri):
            return self._to_read(uri).stat().st_size

    def create(self, uri: str, media_type: str) -> FileSink:
        """Files have no media type, so it is not kept."""
        del media_type
        return FileSink(self._to_write(uri), uri)

    def publish(self, uri: str, source: Source, fence: Fence, media_type: str) -> None:
        """A fence keeps lower ones out from when it is written, which is just before the file."""
        del media_type
        target = self._to_write(uri)
        sink = FileSink(target, uri)
        try:
            with source() as stream:
                copyfileobj(stream, sink, CHUNK)
            sink.seal()
            with faults(writing, uri), fence_held(fence_path(target), self._lock_seconds) as held:
                held.raise_to(fence)
                sink.commit()
        finally:
            sink.discard()

    def check(self) -> None:
        if not os.access(f"{self._root}/.", os.R_OK | os.W_OK | os.X_OK):
            raise _is_away(self._root)

    def close(self) -> None:
        """There is nothing to close."""

    def _to_read(self, uri: str) -> Path:
        """Where the path really leads, if that may be read."""
        path = Path(realpath(file_path(uri)))
        root = next((r for r in self._readable if path.is_relative_to(realpath(r))), None)
        if root is None:
            raise refused(uri, "leads out of the folders that this service may read")
        with faults(reading, uri):
            if not path.exists() and not root.is_dir():
                raise _is_away(root)
        return path

    def _to_write(self, uri: str) -> Path:
        """The same for writing; the folder that holds it is there afterwards."""
        path = file_path(uri)
        if uri.endswith("/") or path.name.startswith(RESERVED):
            raise refused(uri, "does not name a file that may be written")
        root = Path(realpath(self._root))
        folder = _inside(root, path.parent, uri)
        with faults(writing, uri):
            make_folders(root, folder)
        # Once more, now that nothing is missing in whose place somebody could put a symlink.
        return _inside(root, path.parent, uri) / path.name


def _inside(root: Path, folder: Path, uri: str) -> Path:
    real = Path(realpath(folder))
    if not real.is_relative_to(root):
        raise refused(uri, "leads out of the workspace's root")
    return real


def _is_away(root: Path) -> RetryableError:
    return RetryableError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"the folder {root} is missing or cannot be read and written",
    )
