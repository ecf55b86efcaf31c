"""From a clone to a green service, with the packages that it names and nothing else.

The packages are those of this environment, packed as wheels again, and no index is reachable. In
`make test-full` they come from the package index too.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from tests.components import require
from tests.runner.deadlines import time_limit
from tests.skeleton.projects import cookiecutter, files_in, run
from tests.skeleton.wheels import offline, pack, requirements_of

BUILDS = ("editables", "hatchling", "setuptools")
"""What builds the packages of a checkout and of a service."""

pytestmark = [pytest.mark.check, time_limit(400)]


class Clone(NamedTuple):
    folder: Path
    variables: Mapping[str, str]

    def make(self, *targets: str) -> str:
        command = ("make", *targets, f"PYTHON={sys.executable}")
        done = run(*command, cwd=self.folder / "word-count", **self.variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(
    scope="module",
    params=[
        "no index",
        pytest.param("the package index", marks=[pytest.mark.full, pytest.mark.network]),
    ],
)
def clone(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clone]:
    """A folder in which somebody has typed `cookiecutter skeleton_template --no-input`."""
    folder = tmp_path_factory.mktemp("clone")
    assert cookiecutter(folder).returncode == 0
    if request.param == "the package index":
        require(index_answers(folder), "the package index")
        yield Clone(folder, {})
        return
    with TemporaryDirectory(prefix="wheels") as wheels:
        pack([*requirements_of(folder / "word-count"), *BUILDS], Path(wheels))
        yield Clone(folder, offline(Path(wheels)))


def index_answers(folder: Path, **variables: str) -> bool:
    command = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "hatchling")
    done = run(*command, "--dest", str(folder / "downloaded"), cwd=folder, **variables)
    return done.returncode == 0


def test_a_service_makes_its_own_environment_and_is_green_in_it(clone: Clone) -> None:
    assert "5 passed" in clone.make("test")
    assert "pip" not in clone.make("test")


def test_its_lint_and_types_are_clean(clone: Clone) -> None:
    assert "no issues found" in clone.make("lint")


def test_its_own_lucius_makes_and_updates_services_too(clone: Clone) -> None:
    """The package that was installed carries the template, compiled by pip or not."""
    folder = clone.folder
    lucius = str(folder / "word-count/.venv/bin/lucius")
    made = run(lucius, "new", "other", "--json", cwd=folder)
    assert made.returncode == 0, made.stderr
    (folder / "by-cookiecutter").mkdir()
    baked = cookiecutter(folder / "by-cookiecutter", answers={"service_name": "other"})
    assert baked.returncode == 0
    first, second = files_in(folder / "other"), files_in(folder / "by-cookiecutter/other")
    assert set(first) == set(second) == set(json.loads(made.stdout)["files"])
    assert {**first, "local.mk": b""} == {**second, "local.mk": b""}
    assert run(lucius, "update", cwd=folder / "word-count").returncode == 0


def test_without_an_index_pip_finds_nothing_that_was_not_packed(tmp_path: Path) -> None:
    assert not index_answers(tmp_path, **offline(tmp_path))
