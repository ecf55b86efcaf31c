"""`make test` runs every test, and none of them twice."""

import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runs() -> list[list[str]]:
    """The arguments of each run of pytest."""
    shown = ["make", "--dry-run", "--no-print-directory", "test-waiting", "test-computing"]
    made = subprocess.run(shown, cwd=ROOT, capture_output=True, text=True, check=True)
    found = [line.partition(" -m pytest ")[2] for line in made.stdout.splitlines()]
    return [shlex.split(arguments) for arguments in found if arguments]


def given(run: list[str]) -> set[Path]:
    """What a run is given, and so collects whatever else it is told to ignore."""
    return {Path(argument) for argument in run if (ROOT / argument).exists()}


def ignored(run: list[str]) -> set[Path]:
    return {Path(each.removeprefix("--ignore=")) for each in run if each.startswith("--ignore=")}


def test_what_one_run_leaves_out_is_given_to_another(runs: list[list[str]]) -> None:
    everywhere = set().union(*map(given, runs))
    assert set().union(*map(ignored, runs)) <= everywhere
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert {Path(each) for each in settings["tool"]["pytest"]["ini_options"]["testpaths"]} <= (
        everywhere
    )


def test_nothing_is_given_to_two_runs(runs: list[list[str]]) -> None:
    shares = [(path, run) for run in runs for path in given(run)]
    for path, run in shares:
        others = [share for share, other in shares if other is not run or share != path]
        assert path not in others
        assert all(other in ignored(run) for other in others if path in other.parents)
