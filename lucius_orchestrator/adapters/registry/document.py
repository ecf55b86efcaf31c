"""What was read of one file, or of one entry of a store, before anybody asks what it means."""

from dataclasses import dataclass, field
from typing import Any

from lucius_orchestrator.adapters.registry.problems import FileProblem, Place, member_name


@dataclass(slots=True)
class Document:
    """What it holds, on which lines, and what was found wrong so far.

    `file` is the name that people know it by. `lines` is None for what is not known by its lines;
    its problems then name none.
    """

    file: str
    value: Any = None
    lines: dict[Place, int] | None = field(default_factory=dict)
    problems: list[FileProblem] = field(default_factory=list)

    def line_of(self, place: Place) -> int | None:
        """The line of a member, or of the nearest thing around it that is there."""
        if self.lines is None:
            return None
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def where(self, place: Place) -> str:
        """How a member is pointed at from elsewhere."""
        line = self.line_of(place)
        return self.file if line is None else f"{self.file}:{line}"

    def refuse(self, place: Place, reason: str) -> None:
        where = self.line_of(place), member_name(place)
        self.problems.append(FileProblem(self.file, *where, reason))

    def without_lines(self) -> "Document":
        problems = [problem._replace(line=None) for problem in self.problems]
        return Document(self.file, self.value, None, problems)
