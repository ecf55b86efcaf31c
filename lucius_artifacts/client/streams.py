"""Content as a stream, verified as it is read."""

import io
from collections.abc import Generator, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

from lucius_artifacts.client.answers import Content
from lucius_artifacts.client.chunks import check_digest

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class ContentStream(io.RawIOBase):
    """`ContentDamaged` before the last bytes are handed out, so that a reader who got them all got
    the right ones."""

    def __init__(self, content: Content, chunks: Iterator[bytes]) -> None:
        self._chunks = _verified(content, chunks)
        self._rest = memoryview(b"")
        self._failure: Exception | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        if not self._rest:
            self._rest = memoryview(self._next())
        with memoryview(buffer).cast("B") as view:
            piece = self._rest[: len(view)]
            view[: len(piece)] = piece
        self._rest = self._rest[len(piece) :]
        return len(piece)

    def _next(self) -> bytes:
        """After a fault there is no end, which would be taken for that of the content."""
        if self._failure is not None:
            raise self._failure
        try:
            return next(self._chunks, b"")
        except Exception as error:
            self._failure = error
            raise

    def close(self) -> None:
        """The connection goes back, or, in the middle of it, is given up."""
        if not self.closed:
            self._chunks.close()
        super().close()


def _verified(content: Content, chunks: Iterator[bytes]) -> Generator[bytes, None, None]:
    digest, left = sha256(), content.length
    for chunk in chunks:
        digest.update(chunk)
        left -= len(chunk)
        if left == 0:
            check_digest(content, digest.hexdigest())
        yield chunk
    if content.length == 0:
        check_digest(content, digest.hexdigest())
