"""Projects whose shared files must not differ from the template's at all, as the examples here."""

from collections.abc import Mapping
from pathlib import Path

from lucius_cli.skeleton.baked import BASELINE, Baked, read_baseline
from lucius_cli.skeleton.project import Project
from lucius_cli.skeleton.template import bake, find_template


def drift(folder: Path) -> list[str]:
    """Paths of shared files, the record included, that are not what a fresh bake makes them."""
    known = read_baseline(folder)
    return _differing(Project(folder), _wanted(bake(known.answers), known))


def rewrite(folder: Path, answers: Mapping[str, str]) -> list[str]:
    """Bake with these answers and write the shared files anew; the team's are left alone.

    Answers that are not given are those of the last time. What an earlier template had and this
    one has not is removed. Returns the paths that changed.
    """
    project = Project(folder)
    known = read_baseline(folder) if (folder / BASELINE).exists() else None
    wanted = _wanted(bake({**(known.answers if known else {}), **answers}), known)
    changed = _differing(project, wanted)
    for path in changed:
        project.put(path, wanted[path])
    return changed


def _differing(project: Project, wanted: Mapping[str, str | None]) -> list[str]:
    return [path for path, text in wanted.items() if project.read(path) != text]


def _wanted(fresh: Baked, known: Baked | None) -> dict[str, str | None]:
    """By path, the record last; None for what must not be there."""
    template = find_template()
    dropped = dict.fromkeys(known.files if known else ())
    shared = {
        path: text
        for path, text in {**dropped, **fresh.files}.items()
        if not template.is_yours(path)
    }
    return {**shared, **fresh.record}
