"""Streams as a step reads them: they end when the work must stop, and are verified where a digest
is known."""

import hashlib
import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from lucius_contract.documents import Artifact
from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK = 256 * 1024

CheckOpen = Callable[[], None]
"""Raises if the work must stop: it was cancelled, or its lease is lost."""


def always_open() -> None:
    """The check of work that nobody stops."""


def open_checked(
    source: BinaryIO, check_open: CheckOpen, expected: Artifact | None = None
) -> io.BufferedReader:
    verify = None if expected is None else Verifier(expected)
    return io.BufferedReader(CheckedStream(source, check_open, verify), CHUNK)


class Window(NamedTuple):
    """A piece of an object. `size` is that of the whole, `etag` None if it is empty."""

    content: bytes
    etag: str | None
    size: int


FetchWindow = Callable[[int, str | None], Window]
"""The window that begins at this byte, of the version that has this ETag; of any if it is None."""


class WindowStream(io.RawIOBase):
    """Holds one window of an object, and asks for the next with the ETag of the first: an object
    that is replaced meanwhile is an error, never a mix of both."""

    def __init__(self, fetch: FetchWindow) -> None:
        self._fetch = fetch
        self._start = 0
        self._position = 0
        self._held = fetch(0, None)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._held.size}[whence]
        if base + offset < 0:
            raise ValueError("a position before the beginning")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        if self._position >= self._held.size:
            return 0
        if not self._start <= self._position < self._start + len(self._held.content):
            self._held = self._held._replace(content=b"")  # or two would be held for a while
            self._held = self._fetch(self._position, self._held.etag)
            self._start = self._position
        with memoryview(buffer).cast("B") as view:
            begin = self._position - self._start
            piece = memoryview(self._held.content)[begin : begin + len(view)]
            view[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)


class Verifier:
    """Compares what is read with what was written. It speaks before the last bytes are handed out,
    so that a reader who got them all got the right ones."""

    def __init__(self, expected: Artifact) -> None:
        self._expected = expected
        self._digest = hashlib.sha256()
        self._size = 0

    def read(self, chunk: bytes) -> None:
        """Of an empty chunk: the stream has ended."""
        self._digest.update(chunk)
        self._size += len(chunk)
        if self._size < self._expected.size and chunk:
            return
        if self._size != self._expected.size:
            more = "at least " if chunk else ""
            raise self._differs(f"{more}{self._size} bytes instead of {self._expected.size}")
        if self._digest.hexdigest() != self._expected.sha256:
            raise self._differs("another SHA-256 than when it was written")

    def _differs(self, how: str) -> NonRetryableError:
        return NonRetryableError(
            ErrorCode.INPUT_INVALID, f"the artifact {self._expected.name!r} has {how}"
        )


class CheckedStream(io.RawIOBase):
    """A verified stream is read once from its beginning, so it cannot be sought in."""

    def __init__(self, source: BinaryIO, check_open: CheckOpen, verify: Verifier | None) -> None:
        self._source = source
        self._check_open = check_open
        self._verify = verify

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._verify is None and self._source.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if not self.seekable():
            raise io.UnsupportedOperation("seek")
        return self._source.seek(offset, whence)

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        with memoryview(buffer).cast("B") as view:
            chunk = self._next(len(view))
            view[: len(chunk)] = chunk
        return len(chunk)

    def readall(self) -> bytes:
        return b"".join(iter(partial(self._next, CHUNK), b""))

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()

    def _next(self, size: int) -> bytes:
        self._check_open()
        chunk = self._source.read(size)
        if self._verify is not None:
            self._verify.read(chunk)
        return chunk
