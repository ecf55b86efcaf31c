"""Blobs as streams."""

import io
from typing import TYPE_CHECKING, Any, BinaryIO

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient

from lucius_sdk.workspace_io.blob.faults import NO_SUCH_RANGE, faults, reading
from lucius_sdk.workspace_io.streams import CHUNK

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

WINDOW = 4 * 1024 * 1024


def open_blob(blob: BlobClient, uri: str, window: int = WINDOW) -> BinaryIO:
    return io.BufferedReader(_BlobStream(blob, uri, window), CHUNK)


class _BlobStream(io.RawIOBase):
    """Holds one window of the blob, and asks for the next with the ETag of the first: a blob that
    is replaced meanwhile is an error, never a mix of both."""

    def __init__(self, blob: BlobClient, uri: str, window: int) -> None:
        self._blob = blob
        self._uri = uri
        self._window = window
        self._etag: str | None = None
        self._size = 0
        self._start = 0
        self._held = b""
        self._position = 0
        self._fetch(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError("a position before the beginning")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        if self._position >= self._size:
            return 0
        if not self._start <= self._position < self._start + len(self._held):
            self._fetch(self._position)
        with memoryview(buffer).cast("B") as view:
            begin = self._position - self._start
            piece = memoryview(self._held)[begin : begin + len(view)]
            view[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _fetch(self, start: int) -> None:
        """As it is stored: what says to be compressed is not unpacked."""
        self._held = b""  # or two windows would be held for a while
        with faults(reading, self._uri):
            try:
                found = self._blob.download_blob(
                    start, self._window, decompress=False, **self._condition()
                )
            except HttpResponseError as error:
                if error.status_code == NO_SUCH_RANGE and self._etag is None:
                    return  # an empty blob has no first byte
                raise
            self._held = found.readall()
        self._start = start
        self._etag = found.properties.etag
        self._size = int((found.properties.content_range or "").rpartition("/")[2])

    def _condition(self) -> dict[str, Any]:
        if self._etag is None:
            return {}
        return {"etag": self._etag, "match_condition": MatchConditions.IfNotModified}
