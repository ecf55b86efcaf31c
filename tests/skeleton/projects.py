"""Projects of the skeleton, as the tests make and look at them."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from lucius_cli.skeleton import Baked, bake
from lucius_cli.skeleton.baked import read_baseline

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "skeleton_template"
VERSIONS = Path(__file__).parent / "versions"
LONGEST = "7-services-with-the-longest-name-that-is-allowed50"
NOW = bake({"service_name": "word-count"})
MAKEFILE = NOW.files["Makefile"]
MAKEFILE_BEFORE = MAKEFILE.replace("LUCIUS_SDK ?= lucius-sdk", "LUCIUS_SDK ?= lucius")
"""As an older template may have had it."""
ODD_NAMES = ("7", "a--b", "on", LONGEST)


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git/" not in f"{path.relative_to(folder).as_posix()}/"
    }


def write(folder: Path, baked: Baked) -> Path:
    """A project as it was when this was baked."""
    for path, text in {**baked.files, **baked.record}.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return folder


def fresh(folder: Path, **answers: str) -> Path:
    return write(folder, bake({"service_name": "word-count", **answers}))


def recorded(version: int) -> Baked:
    """What a version that was released has baked."""
    text = (VERSIONS / f"{version}.json").read_text(encoding="utf-8")
    return Baked.model_validate_json(text)


def older(folder: Path, files: Mapping[str, str | None]) -> Path:
    """Make it a project of version 1, whose template had these files so; None: not at all."""
    now = read_baseline(folder)
    texts = {path: text for path, text in {**now.files, **files}.items() if text is not None}
    for path in set(now.files) - set(texts):
        (folder / path).unlink()
    return write(folder, Baked(template=1, answers=now.answers, files=texts))


def commit(folder: Path) -> None:
    author = ("-c", "user.name=team", "-c", "user.email=team@localhost")
    run("git", "init", "--quiet", cwd=folder)
    run("git", "add", ".", cwd=folder)
    done = run("git", *author, "commit", "--quiet", "--message", "work", cwd=folder)
    assert done.returncode == 0, done.stderr


def run(*command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """With the programs of this interpreter, and without settings of whoever runs the tests."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("LUCIUS_", "MAKE"))}
    return subprocess.run(
        command,
        cwd=cwd,
        env={**inherited, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def cookiecutter(
    folder: Path, template: Path = TEMPLATE, answers: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The plain command, with a home of its own: it keeps notes there."""
    given = [f"{name}={value}" for name, value in (answers or {}).items()]
    command = ("cookiecutter", "--no-input", str(template), *given)
    return run(*command, cwd=folder, HOME=str(folder / ".home"))
