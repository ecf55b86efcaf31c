"""What is wrong with configuration files, or with entries of a store, and where.

RegistryError                what is there cannot be used: mend it
└── RegistryUnavailable      nobody knows what is there: wait, or mend the way to it
"""

from collections.abc import Iterable
from typing import NamedTuple

Place = tuple[str | int, ...]
"""The way from the top of a document to a member: keys and positions."""


class FileProblem(NamedTuple):
    """One thing that is wrong; `line` is None when the file could not be read at all, and for
    entries of a store: there, `file` is the key."""

    file: str
    line: int | None
    member: str
    reason: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (where, self.member, self.reason) if part)


class RegistryError(Exception):
    """A set that cannot be used; `problems` names everything that has to be mended."""

    def __init__(self, problems: Iterable[FileProblem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda found: (found.file, found.line or 0)))
        super().__init__("\n".join(map(str, self.problems)))


class RegistryUnavailable(RegistryError):
    """A store that does not answer, or does not let this process in."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__([FileProblem(address, None, "", reason)])


def member_name(place: Place) -> str:
    """`steps[0].lease`, as people write it."""
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return name.removeprefix(".")
