"""What tests of the client share."""

import io
import threading
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from lucius_artifacts.client import Measured, Patience

KIB = 1024
PART = 64 * KIB


def no_wait(_seconds: float, _until: threading.Event | None = None) -> None:
    """Nobody sleeps in tests."""


QUICK = Patience(tries=4, pause=no_wait)


def pattern(size: int, seed: int = 0) -> bytes:
    """Bytes of which no two parts are the same."""
    block = b"".join((seed + n).to_bytes(8, "big") for n in range(-(-size // 8)))
    return block[:size]


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def digest_of(content: bytes) -> str:
    return sha256(content).hexdigest()


class BytesSource:
    """Content in memory. It may announce a digest that is not its own."""

    def __init__(self, name: str, content: bytes, announced: str | None = None) -> None:
        self.name = name
        self.size = len(content)
        self._content = content
        self._announced = announced or digest_of(content)

    def measure(self, count: object) -> Measured:
        del count
        return Measured(self._announced, self.size)

    def open_at(self, offset: int) -> BinaryIO:
        return io.BytesIO(self._content[offset:])

    def has_changed(self) -> bool:
        return False
