"""The fence of a published file: a hidden file beside it, locked while somebody publishes.

Fences are appended, one to a line, and the last whole line counts. So the file is never replaced,
which would take the lock from under its holder, and a line that a crash cut off is no fence.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import RetryableError
from lucius_sdk.workspace_io.fence import Fence, check_may_replace, unreadable
from lucius_sdk.workspace_io.local_files import sync_folder
from lucius_sdk.workspace_io.names import RESERVED

_TAIL = 8 * 1024  # several times the longest fence
_PAUSE = 0.01  # seconds between two looks at a lock


def fence_path(target: Path) -> Path:
    """The digest, because a name that has every byte it may have leaves none for a suffix."""
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()
    return target.with_name(f"{RESERVED}{digest[:32]}.fence")


class FenceFile:
    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path

    def raise_to(self, fence: Fence) -> None:
        """Durable when this returns; OUTPUT_CONFLICT if a higher one stands there."""
        start, tail = self._tail()
        whole = tail.rpartition(b"\n")[0]
        stored = self._last(start, whole)
        if stored == fence:
            return
        if stored is not None:
            check_may_replace(fence, stored)
        self._append(start + len(whole) + 1 if stored else 0, fence)

    def _tail(self) -> tuple[int, bytes]:
        start = max(0, os.fstat(self._descriptor).st_size - _TAIL)
        return start, os.pread(self._descriptor, _TAIL, start)

    def _last(self, start: int, whole: bytes) -> Fence | None:
        if start == 0 and not whole:
            return None
        try:
            return Fence.from_line(whole.rpartition(b"\n")[2])
        except ValueError as error:
            raise unreadable(self._path.name) from error

    def _append(self, offset: int, fence: Fence) -> None:
        os.ftruncate(self._descriptor, offset)
        os.pwrite(self._descriptor, fence.to_line(), offset)
        os.fsync(self._descriptor)
        if offset == 0:
            sync_folder(self._path.parent)


@contextmanager
def fence_held(path: Path, patience: float) -> Iterator[FenceFile]:
    """Nobody else, in this process or another, holds it meanwhile. STORAGE_UNAVAILABLE if it is
    not free within `patience` seconds."""
    deadline = time.monotonic() + patience
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            _lock(descriptor, path, deadline)
            if not _is_still(descriptor, path):
                continue  # it was removed while we waited, and another may hold the new one
            yield FenceFile(descriptor, path)
        finally:
            os.close(descriptor)
        return


def _lock(descriptor: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise RetryableError(
                    ErrorCode.STORAGE_UNAVAILABLE, f"others held {path.name} for too long"
                ) from error
            time.sleep(_PAUSE)
        else:
            return


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False
