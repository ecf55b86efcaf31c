"""A download: whole and verified under its name, or not there.

What has come so far lies beside the target, under a hidden name that the content and the target
make, so that another process goes on with it.
"""

import fcntl
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from lucius_artifacts.client.answers import Content
from lucius_artifacts.client.chunks import Chunks, check_digest
from lucius_artifacts.client.errors import ContentDamaged, Unavailable
from lucius_artifacts.client.progress import Meter
from lucius_artifacts.client.storage import CHUNK


class PartFile:
    """The beginning of a content; locked, so that two downloads do not write the same one."""

    def __init__(self, descriptor: int, path: Path, content: Content) -> None:
        self._file = io.FileIO(descriptor, "r+", closefd=False)
        self._path = path
        self._content = content
        self._digest = sha256()
        self.size = self._taken_up()

    def write(self, chunk: bytes) -> None:
        with memoryview(chunk) as rest:
            while rest:
                rest = rest[self._file.write(rest) :]
        self._digest.update(chunk)
        self.size += len(chunk)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._digest, self.size = sha256(), 0

    def become(self, target: Path) -> None:
        os.fsync(self._file.fileno())
        os.replace(self._path, target)

    def _taken_up(self) -> int:
        """Hash what is there; more than there should be is of no use."""
        size = os.fstat(self._file.fileno()).st_size
        if size > self._content.length:
            self.restart()
            return 0
        while chunk := self._file.read(CHUNK):
            self._digest.update(chunk)
        return size


def download(content: Content, chunks: Chunks, target: Path, meter: Meter) -> None:
    """`ContentDamaged`, and nothing is kept, if it is not what was announced."""
    with _part_file(target, content) as part:
        was_resumed = part.size > 0
        try:
            _fill(part, chunks, content, meter)
        except ContentDamaged:
            if not was_resumed:
                raise
            # What was written before a crash of the machine may not be what had come.
            _fill(part, chunks, content, meter)
        part.become(target)


def _fill(part: PartFile, chunks: Chunks, content: Content, meter: Meter) -> None:
    meter.count(part.size)
    try:
        for chunk in chunks.of(content, part.size):
            part.write(chunk)
            meter.count(len(chunk))
        check_digest(content, part.digest)
    except ContentDamaged:
        meter.count(-part.size)
        part.restart()
        raise


@contextmanager
def _part_file(target: Path, content: Content) -> Iterator[PartFile]:
    name = sha256(os.fsencode(target.name) + content.digest.encode()).hexdigest()[:32]
    path = target.with_name(f".lucius-{name}.part")
    descriptor = _locked(path)
    try:
        part = PartFile(descriptor, path, content)
        yield part
    finally:
        with suppress(OSError):
            if os.fstat(descriptor).st_size == 0:
                path.unlink()
        os.close(descriptor)


def _locked(path: Path) -> int:
    """`Unavailable` if another process has it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except BlockingIOError as error:
            os.close(descriptor)
            raise Unavailable("another download to the same file is under way") from error
        except FileNotFoundError:
            pass  # whoever had it has just finished
        os.close(descriptor)
