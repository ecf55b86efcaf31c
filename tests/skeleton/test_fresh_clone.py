"""From a clone to a green service, with the package index and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.components import require
from tests.skeleton.projects import cookiecutter, files_in, run

pytestmark = pytest.mark.check


def index_answers(folder: Path) -> bool:
    command = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "hatchling")
    return run(*command, "--dest", str(folder / "downloaded"), cwd=folder).returncode == 0


def make(project: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    done = run("make", *targets, f"PYTHON={sys.executable}", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which somebody has typed `cookiecutter skeleton_template --no-input`."""
    folder = tmp_path_factory.mktemp("clone")
    require(index_answers(folder), "the package index")
    assert cookiecutter(folder).returncode == 0
    return folder


def test_a_service_makes_its_own_environment_and_is_green_in_it(clone: Path) -> None:
    assert "5 passed" in make(clone / "word-count", "test").stdout
    assert "pip" not in make(clone / "word-count", "test").stdout


def test_its_lint_and_types_are_clean(clone: Path) -> None:
    assert "no issues found" in make(clone / "word-count", "lint").stdout


def test_its_own_lucius_makes_and_updates_services_too(clone: Path) -> None:
    """The package that was installed carries the template, compiled by pip or not."""
    lucius = str(clone / "word-count/.venv/bin/lucius")
    made = run(lucius, "new", "other", "--json", cwd=clone)
    assert made.returncode == 0, made.stderr
    assert cookiecutter(clone / "downloaded", answers={"service_name": "other"}).returncode == 0
    first, second = files_in(clone / "other"), files_in(clone / "downloaded/other")
    assert set(first) == set(second) == set(json.loads(made.stdout)["files"])
    assert {**first, "local.mk": b""} == {**second, "local.mk": b""}
    assert run(lucius, "update", cwd=clone / "word-count").returncode == 0
