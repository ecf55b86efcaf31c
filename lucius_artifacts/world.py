"""What the use cases take from outside themselves besides their ports."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class World:
    clock: Callable[[], datetime]
    entropy: Callable[[int], bytes]
    """So many random bytes, which nobody can guess."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one deployment allows, and how long it waits."""

    max_length: int = 64 * 1024**3
    part_size: int = 32 * 1024**2
    max_parts_at_once: int = 1000
    max_open_uploads: int = 1000
    max_entries: int = 1000
    session_lifetime: timedelta = timedelta(hours=24)
    url_lifetime: timedelta = timedelta(hours=1)
    draft_retention: timedelta = timedelta(days=7)
    superseded_retention: timedelta = timedelta(days=7)
    max_retention: timedelta = timedelta(days=3650)
