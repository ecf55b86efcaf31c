"""What becomes of one file when the template has changed: pure decisions on three texts.

| as it was baked | the project's | the newer template's | what is done |
| --- | --- | --- | --- |
| any | any | as baked, or the project's | nothing |
| absent | absent | there | added |
| there | as baked | another | updated |
| there | as baked | absent | removed; a team's file is kept |
| there | changed | another | merged, in a conflict both versions; a team's file is kept |
| there | deleted | another | kept deleted |
| there | changed | absent | kept |
| absent | there | another | a conflict with both versions; a team's file is kept |
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from typing import NamedTuple

OURS_MARK = "<<<<<<< yours"
_MARKED = re.compile(rf"^{OURS_MARK}$", re.MULTILINE)


class Kind(StrEnum):
    ADDED = "added"
    UPDATED = "updated"
    MERGED = "merged"
    REMOVED = "removed"
    KEPT = "kept"
    CONFLICT = "conflict"


class Sides(NamedTuple):
    """Three texts of one file; None where it is not there."""

    base: str | None
    ours: str | None
    theirs: str | None


@dataclass(frozen=True, slots=True)
class Change:
    path: str
    kind: Kind
    sides: Sides
    after: str | None
    """What is to be there."""
    note: str = ""

    @property
    def writes(self) -> bool:
        return self.after != self.sides.ours

    @property
    def diff(self) -> str:
        """What is written; of a file that is kept, what the template would have changed in it."""
        if self.kind is Kind.KEPT:
            offered = self.sides.theirs is not None
            return _diff(self.path, self.sides.base, self.sides.theirs) if offered else ""
        return _diff(self.path, self.sides.ours, self.after)


def decide(path: str, sides: Sides, is_yours: bool, version: int) -> Change | None:
    """None if there is nothing to do or to tell."""
    base, ours, theirs = sides
    if theirs in (base, ours):
        return None
    if ours == base and not (is_yours and theirs is None):
        return Change(path, _taken(sides), sides, theirs)
    if is_yours or ours is None or theirs is None:
        return kept(path, sides, _reason(sides))
    merged, is_clean = merge(base or "", ours, theirs, version)
    return Change(path, Kind.MERGED if is_clean else Kind.CONFLICT, sides, merged)


def kept(path: str, sides: Sides, reason: str) -> Change:
    return Change(path, Kind.KEPT, sides, sides.ours, reason)


def done_before(path: str, sides: Sides) -> Change:
    """It was written already by an update that was interrupted later: to merge again could go
    another way."""
    kind = Kind.CONFLICT if is_unresolved(sides.ours or "") else Kind.MERGED
    return Change(path, kind, sides, sides.ours, "by the update that was interrupted")


def _taken(sides: Sides) -> Kind:
    if sides.base is None:
        return Kind.ADDED
    return Kind.REMOVED if sides.theirs is None else Kind.UPDATED


def _reason(sides: Sides) -> str:
    if sides.theirs is None:
        return "the skeleton does not have it any more"
    if sides.ours is None:
        return "deleted by you, changed by the skeleton"
    return "yours, changed by the skeleton"


def is_unresolved(text: str) -> bool:
    """Whether conflicts are still marked in it."""
    return _MARKED.search(text) is not None


def merge(base: str, ours: str, theirs: str, version: int) -> tuple[str, bool]:
    """The merged text, and whether it is without conflicts."""
    from merge3 import Merge3

    lines: list[str] = []
    is_clean = True
    for kind, *parts in Merge3(_lines(base), _lines(ours), _lines(theirs)).merge_groups():
        if kind == "conflict":
            is_clean = False
            lines += _marked(parts[1], parts[2], version)
        else:
            lines += parts[0]
    return "".join(lines), is_clean


def _marked(ours: Sequence[str], theirs: Sequence[str], version: int) -> Iterator[str]:
    yield f"{OURS_MARK}\n"
    yield from _whole(ours)
    yield "=======\n"
    yield from _whole(theirs)
    yield f">>>>>>> skeleton {version}\n"


def _whole(lines: Sequence[str]) -> Iterator[str]:
    """A marker needs a line of its own, also after a last line without an end."""
    yield from (line if line.endswith("\n") else f"{line}\n" for line in lines)


def _diff(path: str, before: str | None, after: str | None) -> str:
    names = (
        "/dev/null" if before is None else f"a/{path}",
        "/dev/null" if after is None else f"b/{path}",
    )
    lines = unified_diff(_lines(before or ""), _lines(after or ""), *names)
    return "".join(_whole(list(lines)))


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
