"""Files of this machine, or of a volume that all machines mount. Needs POSIX."""

import os
from collections.abc import Callable, Iterator
from copy import copy
from os.path import abspath, realpath
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO, Self

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import RetryableError
from lucius_sdk.workspace_io.access import Access, Location, Tenant, is_below
from lucius_sdk.workspace_io.faults import faults, reading, writing
from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.fence_file import fence_held, fence_path
from lucius_sdk.workspace_io.local_files import FileSink, make_folders, open_file
from lucius_sdk.workspace_io.names import RESERVED
from lucius_sdk.workspace_io.port import Source
from lucius_sdk.workspace_io.streams import CHUNK
from lucius_sdk.workspace_io.uris import as_output, file_path, refused

_SCHEMES = frozenset({"file"})
_LOCK_SECONDS = 30.0


class LocalStorage:
    """The workspace below `root`; reads below the folders in `readable` too, and publishes below
    those in `writable`. Without `root` there is no workspace.

    A symlink may stand on the way, but what counts is where it leads. Beside a published file lies
    a hidden one with its fence, and both beside it and in steps' folders a process that was killed
    may leave unfinished hidden files; the names of all of them begin with `.lucius-`.
    """

    def __init__(
        self,
        root: Path | None,
        readable: tuple[Path, ...] = (),
        writable: tuple[Path, ...] = (),
        *,
        lock_seconds: float = _LOCK_SECONDS,
    ) -> None:
        self._root = None if root is None else Path(abspath(root))
        self._readable = tuple(Path(abspath(folder)) for folder in readable)
        self._writable = tuple(Path(abspath(folder)) for folder in writable)
        self._tenant: Tenant | None = None
        self._lock_seconds = lock_seconds

    def of_tenant(self, tenant: Tenant) -> Self:
        bound = copy(self)
        bound._tenant = tenant
        return bound

    @property
    def schemes(self) -> frozenset[str]:
        return _SCHEMES

    def prepare(self) -> None:
        """Make the root, and those of outputs, once, when a service starts."""
        for root in (*self._workspace(), *self._writable):
            with faults(writing, root.as_uri()):
                root.mkdir(parents=True, exist_ok=True)

    def open_read(self, uri: str) -> BinaryIO:
        return open_file(self._to_read(uri), uri)

    def size_of(self, uri: str) -> int:
        with faults(reading, uri):
            return self._to_read(uri).stat().st_size

    def create(self, uri: str, media_type: str) -> FileSink:
        """Files have no media type, so it is not kept."""
        del media_type
        return FileSink(self._to_write(uri, self._access().check_write), uri)

    def publish(self, uri: str, source: Source, fence: Fence, media_type: str) -> None:
        """A fence keeps lower ones out from when it is written, which is just before the file."""
        del media_type
        target = self._to_write(uri, self._access().check_publish)
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
        for root in self._workspace():
            if not os.access(f"{root}/.", os.R_OK | os.W_OK | os.X_OK):
                raise _is_away(root)

    def close(self) -> None:
        """There is nothing to close."""

    def _workspace(self) -> Iterator[Path]:
        if self._root is not None:
            yield self._root

    def _access(self) -> Access:
        """Where the folders really are now: what is mounted may have changed."""
        return Access(
            None if self._root is None else _location(self._root),
            tuple(map(_location, self._readable)),
            tuple(map(_location, self._writable)),
            self._tenant,
        )

    def _to_read(self, uri: str) -> Path:
        """Where the path really leads, if that may be read."""
        path = Path(realpath(file_path(uri)))
        self._access().check_read(path.parts, uri)
        with faults(reading, uri):
            if not path.exists():
                self._check_folder_of(path, self._readable)
        return path

    def _to_write(self, uri: str, check: Callable[[Location, str], None]) -> Path:
        """The same for writing; the folder that holds it is there afterwards."""
        with as_output():
            path = file_path(uri)
            if uri.endswith("/") or path.name.startswith(RESERVED):
                raise refused(uri, "does not name a file that may be written")
        target = _real_target(path)
        check(target.parts, uri)
        root = self._check_folder_of(target, self._writable)
        with faults(writing, uri):
            make_folders(root, target.parent)
        # Once more, now that nothing is missing in whose place somebody could put a symlink.
        target = _real_target(path)
        check(target.parts, uri)
        return target

    def _check_folder_of(self, path: Path, folders: tuple[Path, ...]) -> Path:
        """The configured folder that `path` is below. STORAGE_UNAVAILABLE if it is missing."""
        for folder in (*self._workspace(), *folders):
            if is_below(path.parts, _location(folder)):
                if not folder.is_dir():
                    raise _is_away(folder)
                return Path(realpath(folder))
        raise AssertionError("access was checked before")


def _location(folder: Path) -> Location:
    return Path(realpath(folder)).parts


def _real_target(path: Path) -> Path:
    """A symlink in the place of the file itself is replaced, not followed."""
    return Path(realpath(path.parent), path.name)


def _is_away(root: Path) -> RetryableError:
    return RetryableError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"the folder {root} is missing or cannot be read and written",
    )
