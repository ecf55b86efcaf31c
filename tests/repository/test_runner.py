"""What a run of the tests does when a test hangs, ends its worker, or is of another tier."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runner.deadlines import PROCESS_DEADLINE

ROOT = Path(__file__).parents[2]
PLUGINS = ["tiers", "costs", "limits", "progress", "workers"]
FIRST = """
import os, threading, pytest

def test_before(): pass

def test_ends_its_worker(): os._exit(9)

@pytest.mark.timeout(0.3)
def test_hangs(): threading.Event().wait()

@pytest.mark.check
def test_of_make_check(): pass

@pytest.mark.full
def test_of_make_test_full(): pass

def test_after(): pass
"""
SECOND = """
import pytest

@pytest.mark.parametrize("number", range(20))
def test_other(number): pass
"""
HANGING = """
import multiprocessing, os, signal, threading

def test_has_the_run_stopped():
    run = os.getppid() if multiprocessing.parent_process() else os.getpid()
    os.kill(run, signal.SIGTERM)
    threading.Event().wait()
"""


def run(
    folder: Path, modules: dict[str, str], *options: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    (folder / "tests").mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = check\n  full\n")
    for name, text in modules.items():
        (folder / "tests" / name).write_text(text)
    plugins = [part for name in PLUGINS for part in ("-p", f"tests.runner.{name}")]
    plugins += ["-p", "pytest_timeout"]
    command = [sys.executable, "-m", "pytest", "--workers=2", "--by-group", *plugins, *options]
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST", "TESTS"))
    }
    return subprocess.run(
        command,
        cwd=folder,
        env={
            **inherited,
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=PROCESS_DEADLINE,
    )


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> "subprocess.CompletedProcess[str]":
    """A run in which a worker is lost and a test hangs."""
    folder = tmp_path_factory.mktemp("lost")
    modules = {"test_first.py": FIRST, "test_second.py": SECOND}
    return run(folder, modules, "--costs", TESTS_TIER="test")


def test_a_lost_worker_and_a_hanging_test_fail_one_test_each_and_the_run_goes_on(
    lost: "subprocess.CompletedProcess[str]",
) -> None:
    assert lost.returncode == 1
    assert "2 failed, 22 passed" in lost.stdout
    said = "ended with exit code 9 while running 'tests/test_first.py::test_ends_its_worker'"
    assert said in lost.stdout
    assert "Timeout (>0.3s)" in lost.stdout


def test_each_failure_is_followed_by_the_command_that_repeats_it(
    lost: "subprocess.CompletedProcess[str]",
) -> None:
    repeated = "TESTS_TIER=test .venv/bin/python -m pytest 'tests/test_first.py::test_hangs'"
    assert repeated in lost.stdout


def test_a_group_has_a_line_with_counts(lost: "subprocess.CompletedProcess[str]") -> None:
    line = next(line for line in lost.stdout.splitlines() if "test_second.py  " in line)
    assert "20 passed" in line


def test_the_costs_of_each_module_are_reported(lost: "subprocess.CompletedProcess[str]") -> None:
    assert "tests/test_second.py (20)" in lost.stdout


@pytest.mark.check
@pytest.mark.parametrize(("tier", "others"), [("check", 1), ("full", 0)])
def test_a_tier_has_the_tests_of_those_below_it(tmp_path: Path, tier: str, others: int) -> None:
    ended = run(tmp_path, {"test_first.py": FIRST}, "-k", "make", "--workers=0", TESTS_TIER=tier)
    assert f"{2 - others} passed, {4 + others} deselected" in ended.stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_that_is_stopped_shows_where_its_tests_are(tmp_path: Path, workers: str) -> None:
    ended = run(tmp_path, {"test_it.py": HANGING}, f"--workers={workers}")
    assert ended.returncode == 2
    assert "in test_has_the_run_stopped" in ended.stderr


@pytest.mark.check
def test_a_run_in_the_background_of_a_shell_can_be_stopped_too(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ended = run(tmp_path, {"test_it.py": HANGING}, "--workers=2")
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.returncode == 2
    assert "no tests ran" in ended.stdout.splitlines()[-1]


@pytest.mark.check
def test_a_run_that_is_stopped_names_the_tests_that_were_running(tmp_path: Path) -> None:
    ended = run(tmp_path, {"test_it.py": HANGING}, "--workers=0")
    assert "Running now:\n  tests/test_it.py::test_has_the_run_stopped\n" in ended.stderr


@pytest.mark.check
def test_a_run_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    ended = run(tmp_path, {"test_it.py": HANGING}, TESTS_LIMIT_SECONDS="0.5")
    assert ended.returncode != 0
    assert "It took more than 0 s." in ended.stderr
