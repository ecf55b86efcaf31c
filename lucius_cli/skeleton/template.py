"""The template itself: where it lies, what it asks, and what it bakes."""

import json
import runpy
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import lucius_cli
from lucius_cli.failures import EnvironmentFailed, Unsuitable
from lucius_cli.skeleton.baked import Baked

_PACKAGE = Path(lucius_cli.__file__).parent
_PLACES = (_PACKAGE / "skeleton_template", _PACKAGE.parent / "skeleton_template")
_QUESTIONS = "cookiecutter.json"


@dataclass(frozen=True, slots=True)
class Template:
    folder: Path
    version: int
    questions: tuple[str, ...]
    yours: tuple[str, ...]
    """Patterns of the files that belong to the team."""

    def is_yours(self, path: str) -> bool:
        return any(fnmatchcase(path, pattern) for pattern in self.yours)

    def hook(self, name: str) -> dict[str, Any]:
        """What one of cookiecutter's hooks defines: its rules hold for whoever bakes."""
        return runpy.run_path(str(self.folder / "hooks" / f"{name}.py"))


def find_template() -> Template:
    """That of the installed package, else of the checkout. `EnvironmentFailed`."""
    for place in _PLACES:
        if (place / _QUESTIONS).is_file():
            return read_template(place)
    raise EnvironmentFailed("skeleton_template is missing: install lucius-sdk again")


def read_template(folder: Path) -> Template:
    context = json.loads((folder / _QUESTIONS).read_text(encoding="utf-8"))
    questions = tuple(name for name in context if not name.startswith("_"))
    return Template(folder, context["_version"], questions, tuple(context["_yours"]))


def bake(answers: Mapping[str, str], template: Template | None = None) -> Baked:
    """The same files as `cookiecutter skeleton_template`, in memory.

    Answers that are not given are derived as cookiecutter derives them. `Unsuitable` if one of
    them cannot be used.
    """
    from cookiecutter.generate import generate_files  # type: ignore[import-untyped]

    template = template or find_template()
    _refuse_links(template.folder)
    # Before they are rendered: an answer is text, and never a template that is carried out.
    _check(template, answers)
    context = _context(template, answers)
    complete = {name: context["cookiecutter"][name] for name in template.questions}
    _check(template, complete)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(generate_files(str(template.folder), context, folder, accept_hooks=False))
        template.hook("post_gen_project")["tidy"](made)
        return Baked(template=template.version, answers=complete, files=_texts(made))


def _refuse_links(folder: Path) -> None:
    """A template that was cloned or unpacked bakes what lies in it, and nothing of this machine."""
    for path in folder.rglob("*"):
        if path.is_symlink():
            raise EnvironmentFailed(f"{path} is a symbolic link: install lucius-sdk again")


def _check(template: Template, answers: Mapping[str, str]) -> None:
    if wrong := template.hook("pre_gen_project")["problems"](answers):
        raise Unsuitable("\n".join(wrong))


def _context(template: Template, answers: Mapping[str, str]) -> dict[str, Any]:
    from cookiecutter.generate import generate_context
    from cookiecutter.prompt import prompt_for_config  # type: ignore[import-untyped]

    questions = str(template.folder / _QUESTIONS)
    context: dict[str, Any] = generate_context(questions, extra_context=dict(answers))
    context["cookiecutter"] |= prompt_for_config(context, no_input=True)
    return context


def _texts(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
