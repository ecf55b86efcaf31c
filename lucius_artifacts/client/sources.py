"""What is to be uploaded."""

import hmac
import io
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

CHUNK = 256 * 1024
"""Bytes of one source that are in memory at once, for each that reads it."""

Count = Callable[[int], None]
"""Hears how many bytes more were read."""


class Measured(NamedTuple):
    digest: str
    length: int


class Source(Protocol):
    """Content that can be read again, from many threads at once, and that should not change."""

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def size(self) -> int:
        """In bytes, for whoever shows progress."""

    def measure(self, count: Count) -> Measured:
        """Its SHA-256, in lower-case hex, and its length. It may be known without reading."""

    def open_at(self, offset: int) -> BinaryIO:
        """A stream of all from there on."""

    def has_changed(self) -> bool:
        """Since it was measured, as far as that can be told without reading it."""


class Stamp(NamedTuple):
    """A file that has the same one is taken for unchanged."""

    size: int
    modified: int


class FileSource:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.measured_as = self.stamp()

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def size(self) -> int:
        return self.measured_as.size

    def stamp(self) -> Stamp:
        found = self.path.stat()
        return Stamp(found.st_size, found.st_mtime_ns)

    def measure(self, count: Count) -> Measured:
        self.measured_as = self.stamp()
        digest, length = sha256(), 0
        for chunk in _chunks(self.open_at(0), count):
            digest.update(chunk)
            length += len(chunk)
        return Measured(digest.hexdigest(), length)

    def open_at(self, offset: int) -> BinaryIO:
        file = io.FileIO(self.path)
        file.seek(offset)
        return file

    def has_changed(self) -> bool:
        try:
            return self.stamp() != self.measured_as
        except FileNotFoundError:
            return True


def proof_of(source: Source, challenge: str, count: Count) -> str:
    """What only somebody who has all of the content can say."""
    mac = hmac.new(challenge.encode(), digestmod=sha256)
    for chunk in _chunks(source.open_at(0), count):
        mac.update(chunk)
    return mac.hexdigest()


def _chunks(stream: BinaryIO, count: Count) -> Iterator[bytes]:
    with stream:
        while chunk := stream.read(CHUNK):
            yield chunk
            count(len(chunk))
