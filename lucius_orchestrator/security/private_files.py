"""Small files that one user alone may read, and that several processes change."""

import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OWNER_ONLY = 0o600
_OTHERS = 0o077


@contextmanager
def locked(path: Path) -> Iterator[Path]:
    """Keep other writers of the file out; gives where the file really is.

    The lock is on a file beside it, since the file itself is replaced. The operating system lets go
    of it when its holder dies.
    """
    target = path.resolve()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(
        target.with_name(target.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY
    )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield target
    finally:
        os.close(lock)


def replace(target: Path, content: bytes) -> None:
    """Readers see the old content or the new one, whatever happens in between."""
    handle, written = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), _OWNER_ONLY)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(written, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(written)
        raise
    _sync_directory(target.parent)


def open_to_others(paths: Iterable[Path]) -> list[Path]:
    """Those that exist and that other users than the owner may read, write or enter."""
    return [path for path in paths if path.exists() and path.stat().st_mode & _OTHERS]


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
