"""A data folder that is open."""

import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from servicebus_emulator.broker.records import Record
from servicebus_emulator.journal.encoding import Encoder
from servicebus_emulator.journal.errors import JournalUnwritable
from servicebus_emulator.journal.groups import FILE_HEAD, group_bytes, read_groups, write_all
from servicebus_emulator.journal.lock import FolderLock

COMPACTION_FLOOR = 16 * 1024 * 1024

_GROWTH = 4
_GROUP = 100  # records of a group in a compacted file; each may be a message of 256 KiB
_CLOSED = -1
_MODE = 0o600  # messages may carry tokens
_FOLDER_MODE = 0o700
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class Journal:
    """Keeps what is recorded from the moment that `flush` returns, whatever happens to the process.

    With `fsync` it also survives the machine: every flush then waits for the disk. `FolderInUse`
    if another process has the folder.
    """

    def __init__(
        self, folder: Path, *, fsync: bool = False, compaction_floor: int = COMPACTION_FLOOR
    ) -> None:
        missing = [place for place in (folder, *folder.parents) if not place.exists()]
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        self._lock = FolderLock(folder)
        self._file = folder / "journal"
        self._fresh = folder / "journal.new"
        self._fresh.unlink(missing_ok=True)  # of a compaction that did not come to its end
        self._descriptor = os.open(self._file, _FLAGS, _MODE)
        if fsync:
            for named in (self._file, *missing):
                _sync_folder(named.parent)
        self._fsync = fsync
        self._encoder = Encoder()
        self._pending: list[Record] = []
        self._end: int | None = None  # unknown until the whole file was seen
        self._floor = self._compact_from = compaction_floor

    def load(self) -> Iterator[Record]:
        """All records in their order. To be read to its end, where it cuts off what a process that
        died has left incomplete. `JournalDamaged`: its text says what to do."""
        end = 0
        for group in read_groups(self._file):
            yield from group.records
            end = group.end
        try:
            os.ftruncate(self._descriptor, end)
            if not end:
                write_all(self._descriptor, FILE_HEAD)
        except OSError as error:
            raise JournalUnwritable(self._file, error) from error
        self._end = end or len(FILE_HEAD)

    def record(self, record: Record) -> None:
        self._pending.append(record)

    def flush(self) -> None:
        """Write what was recorded since the last time, as one group. `JournalUnwritable`: nothing
        of it is kept, and the next flush tries all of it again."""
        if not self._pending:
            return
        end = self._known_end()
        data = group_bytes(self._encoder, self._pending)
        try:
            write_all(self._descriptor, data)
            if self._fsync:
                os.fsync(self._descriptor)
        except OSError as error:
            self._cut_back(end)
            raise JournalUnwritable(self._file, error) from error
        self._end = end + len(data)
        self._pending.clear()

    @property
    def wants_compaction(self) -> bool:
        """Whether the file has grown far beyond what was live when it was last compacted."""
        return self._known_end() > self._compact_from

    def compact(self, records: Iterable[Record]) -> None:
        """Replace the file by one that holds these records: a snapshot of the broker, in which is
        all that was recorded. At any moment the folder has the old file or the new one, complete.

        After `JournalUnwritable` the old one is in use, and allowed to grow to twice its size.
        """
        self.flush()
        try:
            end = _write_compacted(self._fresh, records)
            self._swap()
        except OSError as error:
            self._compact_from = 2 * self._known_end()
            self._end = None  # it is not known which of the two files is in place
            raise JournalUnwritable(self._fresh, error) from error
        self._end = end
        self._compact_from = max(self._floor, _GROWTH * end)

    def close(self) -> None:
        """Flush, and let go of the folder."""
        if self._descriptor == _CLOSED:
            return
        try:
            self.flush()
        finally:
            os.close(self._descriptor)
            self._descriptor = _CLOSED
            self._lock.close()

    def _known_end(self) -> int:
        if self._end is None:
            deque(self.load(), maxlen=0)
        assert self._end is not None
        return self._end

    def _cut_back(self, end: int) -> None:
        try:
            os.ftruncate(self._descriptor, end)
        except OSError:
            self._end = None  # the next flush looks again where the last complete group ends

    def _swap(self) -> None:
        os.close(self._descriptor)  # some systems do not replace a file that is open
        self._descriptor = _CLOSED
        try:
            os.replace(self._fresh, self._file)
        finally:
            self._descriptor = os.open(self._file, _FLAGS, _MODE)
        _sync_folder(self._file.parent)


def _write_compacted(file: Path, records: Iterable[Record]) -> int:
    """The size of the new file, which is on the disk: a file that takes the place of another must
    not be shorter than it was written."""
    encoder, remaining = Encoder(), iter(records)
    with open(file, "wb", opener=_open_private) as stream:
        stream.write(FILE_HEAD)
        while group := list(islice(remaining, _GROUP)):
            stream.write(group_bytes(encoder, group))
        stream.flush()
        os.fsync(stream.fileno())
        return stream.tell()


def _open_private(file: str, flags: int) -> int:
    return os.open(file, flags, _MODE)


def _sync_folder(folder: Path) -> None:
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
