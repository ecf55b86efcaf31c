"""A copy of the last good set on the disk, for a start while the store is away.

It is used for the place that it was made from alone, and read as strictly as the store is.
"""

import json
import logging
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from lucius_orchestrator.adapters.registry.entries import Entry
from lucius_orchestrator.security.private_files import replace

_log = logging.getLogger("lucius_orchestrator.registry")
_FORM = 1


class Kept(NamedTuple):
    read_at: datetime
    entries: tuple[Entry, ...]


class LastGoodCopy:
    """`origin` is everything that says which entries of which store were read. Several processes
    may share the file: each replaces it as a whole."""

    def __init__(self, file: Path, origin: Iterable[str]) -> None:
        self.file = file
        self._origin = list(origin)

    def keep(self, kept: Kept) -> None:
        """A disk that does not take it is told and changes nothing else."""
        content = {
            "form": _FORM,
            "origin": self._origin,
            "read_at": kept.read_at.isoformat(),
            "entries": [list(entry) for entry in kept.entries],
        }
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace(self.file, json.dumps(content, indent=1).encode())
        except OSError as error:
            _log.warning("registry.copy_failed", extra={"error": f"{self.file}: {error.strerror}"})

    def read(self) -> Kept | None:
        """None when there is none, or none of this origin, or one that cannot be read."""
        try:
            content = json.loads(self.file.read_bytes())
            if (content["form"], content["origin"]) != (_FORM, self._origin):
                return None
            entries = tuple(map(_entry, content["entries"]))
            return Kept(datetime.fromisoformat(content["read_at"]), entries)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, LookupError) as error:
            reason = f"{self.file} cannot be read: {type(error).__name__}"
            _log.warning("registry.copy_failed", extra={"error": reason})
            return None


def _entry(raw: list[Any]) -> Entry:
    entry = Entry(*raw)
    if not isinstance(entry.key, str) or not all(isinstance(text, str | None) for text in entry):
        raise TypeError("not an entry")
    return entry
