"""From one version of the template to a newer one, with all that the team has done in between."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from lucius_cli.failures import EnvironmentFailed, Unsuitable
from lucius_cli.skeleton.baked import BASELINE, Baked, read_baseline
from lucius_cli.skeleton.merging import (
    OURS_MARK,
    Change,
    Kind,
    Sides,
    decide,
    done_before,
    is_unresolved,
    kept,
)
from lucius_cli.skeleton.project import Project
from lucius_cli.skeleton.template import Template, bake, find_template


@dataclass(frozen=True, slots=True)
class Update:
    """What is to be done; nothing is written before `apply`."""

    project: Project
    before: Baked
    newer: Baked
    changes: tuple[Change, ...]

    @property
    def conflicts(self) -> tuple[str, ...]:
        return tuple(change.path for change in self.changes if change.kind is Kind.CONFLICT)

    def check_committed(self) -> None:
        """`Unsuitable` if git could not bring back what is about to be replaced."""
        paths = [change.path for change in self.changes if change.writes]
        if self.newer != self.before and not self.before.pending:
            paths.append(BASELINE)
        if paths and (found := self.project.uncommitted(paths)):
            raise Unsuitable(
                "these files would change and have changes that are not committed:\n  "
                + "\n  ".join(found)
                + "\ncommit them (git commit) or put them aside (git stash), then update again"
            )

    def apply(self) -> None:
        """What is interrupted can be repeated: each file is replaced whole, the record last, and
        what is about to be written is noted before."""
        if self.newer == self.before:
            return
        self._remember(self.before.model_copy(update={"pending": self._pending()}))
        for change in self.changes:
            if change.writes:
                self.project.put(change.path, change.after)
        self._remember(self.newer)

    def _pending(self) -> dict[str, str]:
        written = {each.path: each.after for each in self.changes if each.writes and each.after}
        version = self.newer.template
        digests = {path: _digest(version, text) for path, text in written.items()}
        return {**self.before.pending, **digests}

    def _remember(self, baked: Baked) -> None:
        self.project.put(BASELINE, baked.record[BASELINE])


def plan_update(folder: Path, template: Template | None = None) -> Update:
    """`Unsuitable` if it cannot be updated, `EnvironmentFailed` if the template is too old."""
    template = template or find_template()
    before = read_baseline(folder)
    if before.template > template.version:
        raise EnvironmentFailed(
            f"{folder} is of version {before.template} of the skeleton, this lucius has"
            f" {template.version}: pip install --upgrade lucius-sdk"
        )
    newer = bake(before.answers, template)
    project = Project(folder)
    changes = []
    for path in sorted({*before.files, *newer.files}):
        change = _change(project, path, before, newer, template.is_yours(path))
        if change is not None:
            changes.append(change)
    return Update(project, before, newer, tuple(changes))


def _change(
    project: Project, path: str, before: Baked, newer: Baked, is_yours: bool
) -> Change | None:
    base, theirs = before.files.get(path), newer.files.get(path)
    if base == theirs:
        return None
    if project.is_odd(path):
        return kept(path, Sides(base, None, theirs), "no regular file, changed by the skeleton")
    ours = project.read(path)
    sides = Sides(base, ours, theirs)
    if ours is None or ours == theirs:
        return decide(path, sides, is_yours, newer.template)
    if _digest(newer.template, ours) == before.pending.get(path):
        return done_before(path, sides)
    if is_unresolved(ours):
        raise Unsuitable(
            f"{path} still has the conflicts of an earlier update: resolve them (look for"
            f" {OURS_MARK}), commit, then update again"
        )
    return decide(path, sides, is_yours, newer.template)


def _digest(version: int, text: str) -> str:
    """Of one update: what an older one has left half done is merged like work of the team."""
    return hashlib.sha256(f"{version} {text}".encode(errors="surrogateescape")).hexdigest()
