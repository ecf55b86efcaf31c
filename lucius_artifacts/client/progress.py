"""How far an upload or a download is, for whoever shows it."""

import threading
from collections.abc import Callable
from enum import StrEnum


class Phase(StrEnum):
    READING = "reading"
    COMPARING = "comparing"
    UPLOADING = "uploading"
    VERIFYING = "verifying"
    DOWNLOADING = "downloading"


Progress = Callable[[Phase, int, int], None]
"""The phase, bytes that are done, bytes in all. Called often, by one thread at a time; what it
raises ends the work."""


def untold(_phase: Phase, _done: int, _total: int) -> None:
    """The progress of work that nobody watches."""


class Meter:
    """Counts the bytes of one phase, from many threads."""

    def __init__(self, tell: Progress, phase: Phase, total: int, done: int = 0) -> None:
        self._tell = tell
        self._phase = phase
        self._total = total
        self._done = done
        self._lock = threading.Lock()
        self.count(0)

    def count(self, more: int) -> None:
        """Fewer than none: what was counted must be done again."""
        with self._lock:
            self._done += more
            self._tell(self._phase, self._done, self._total)
