"""From a clone to a green service, with the package index and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

from tests.components import require
from tests.skeleton.projects import cookiecutter, files_in, run


def index_answers(folder: Path) -> bool:
    command = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "hatchling")
    return run(*command, "--dest", str(folder / "downloaded"), cwd=folder).returncode == 0


def make(project: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    done = run("make", *targets, f"PYTHON={sys.executable}", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_a_service_makes_its_own_environment_and_is_green_in_it(tmp_path: Path) -> None:
    require(index_answers(tmp_path), "the package index")
    assert cookiecutter(tmp_path).returncode == 0
    project = tmp_path / "word-count"
    assert "5 passed" in make(project, "test").stdout
    again = make(project, "test", "lint").stdout
    assert "pip" not in again
    assert "no issues found" in again
    its_own_lucius_makes_the_same(tmp_path, project)


def its_own_lucius_makes_the_same(folder: Path, project: Path) -> None:
    """The package that was installed carries the template, compiled by pip or not."""
    lucius = str(project / ".venv/bin/lucius")
    made = run(lucius, "new", "other", "--json", cwd=folder)
    assert made.returncode == 0, made.stderr
    assert cookiecutter(folder / "downloaded", answers={"service_name": "other"}).returncode == 0
    first, second = files_in(folder / "other"), files_in(folder / "downloaded/other")
    assert set(first) == set(second) == set(json.loads(made.stdout)["files"])
    assert {**first, "local.mk": b""} == {**second, "local.mk": b""}
    assert run(lucius, "update", cwd=project).returncode == 0
