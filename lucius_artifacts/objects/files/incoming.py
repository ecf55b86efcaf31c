"""A part while it is written."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import Lock as ThreadLock
from uuid import uuid4

from lucius_artifacts.errors import Gone
from lucius_artifacts.objects.files.layout import Lock, locked
from lucius_artifacts.objects.files.writeback import send_to_disk

_BUFFERS_AT_ONCE = 1024  # more are refused by the kernel
_OWNER_ONLY = 0o600
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class IncomingPart:
    """A file beside the parts, whose name is no number until it is whole and durable. Whoever moves
    its place meanwhile removes it before.

    Each call blocks. Calls may come from different threads; `discard` waits for the one before it,
    since whoever gave up waiting for that one has not stopped it.
    """

    def __init__(self, place: Path, number: int) -> None:
        self._place = place
        self._path = place / f"incoming-{uuid4().hex}"
        self._part = place / str(number)
        self._one_by_one = ThreadLock()
        self._file: int | None = None
        self._written = 0
        self._is_over = False

    def write(self, chunks: Iterable[bytes]) -> None:
        """`Gone` if there is no place (any more)."""
        with self._one_by_one:
            file = self._opened()
            _write_all(file, chunks)
            self._written = send_to_disk(file, self._written)

    def keep(self) -> None:
        """`Gone` if the place has become an object meanwhile, or was deleted."""
        with self._one_by_one:
            os.fsync(self._opened())
            self._close()
            with self._in_place():
                os.rename(self._path, self._part)
            self._is_over = True

    def discard(self) -> None:
        """Leave nothing, unless it was kept."""
        with self._one_by_one:
            self._close()
            if not self._is_over:
                self._path.unlink(missing_ok=True)
            self._is_over = True

    def _opened(self) -> int:
        if self._is_over:
            raise self._gone()
        if self._file is None:
            with self._in_place():
                self._file = os.open(self._path, _NEW, _OWNER_ONLY)
        return self._file

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        """The place does not move meanwhile."""
        try:
            with locked(self._place, Lock.SHARED):
                yield
        except FileNotFoundError as error:
            raise self._gone() from error

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _gone(self) -> Gone:
        return Gone(f"the place for parts of {self._place.name}")


def _write_all(file: int, chunks: Iterable[bytes]) -> None:
    left = deque(memoryview(chunk) for chunk in chunks if chunk)
    while left:
        written = os.writev(file, list(islice(left, _BUFFERS_AT_ONCE)))
        while written:
            first = left.popleft()
            if len(first) > written:
                left.appendleft(first[written:])
            written = max(0, written - len(first))
