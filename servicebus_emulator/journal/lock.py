"""One process for each data folder."""

import os
import sys
from pathlib import Path

from servicebus_emulator.journal.errors import FolderInUse

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class FolderLock:
    """Held until it is closed, or until the process ends in whatever way: the system lets go."""

    def __init__(self, folder: Path) -> None:
        file = folder / "lock"
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(self._descriptor)
        except OSError as error:
            os.close(self._descriptor)
            raise FolderInUse(folder, _holder(file)) from error
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, b"%d\n" % os.getpid())

    def close(self) -> None:
        os.close(self._descriptor)


def _holder(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, ValueError):
        return ""


if sys.platform == "win32":

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 1024, os.SEEK_SET)  # beyond the text, which another process reads
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

else:

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
