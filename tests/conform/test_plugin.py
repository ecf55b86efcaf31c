"""pytest as a team uses it, in a folder of its own.

All but one run in this process, with this plugin alone; that one shows that pytest finds it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# What is imported first in a run is forgotten after it, and would be imported again in the next.
import contract_tests.reports.terminal
import contract_tests.runner  # noqa: F401
from contract_tests import plugin

pytest_plugins = ["pytester"]

REFERENCE = Path(__file__).parent / "reference/contract.yaml"
SUITE = ("-q", "--noconftest", "-p", "no:cacheprovider", "--pyargs", "contract_tests")
NOT_FOUND = 5


class Pytest:
    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester

    def __call__(self, *arguments: str) -> tuple[int, str]:
        """The exit code, and what is printed."""
        run = self._pytester.runpytest_inprocess(*SUITE, *arguments, plugins=[plugin])
        return int(run.ret), f"{run.stdout}\n{run.stderr}"


@pytest.fixture
def run_pytest(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Pytest:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]")
    return Pytest(pytester)


def test_without_a_contract_nothing_passes(run_pytest: Pytest) -> None:
    code, printed = run_pytest()
    assert code not in (0, NOT_FOUND)
    assert "--lucius-contract path/to/contract.yaml" in printed


def test_a_contract_that_cannot_be_used_is_told(run_pytest: Pytest) -> None:
    code, printed = run_pytest("--lucius-contract", "none.yaml")
    assert code != 0
    assert "there is no such file" in printed


@pytest.mark.parametrize(("level", "number"), [("core", 0), ("full", 3)])
def test_rules_are_tests_of_the_same_names(run_pytest: Pytest, level: str, number: int) -> None:
    arguments = ("--lucius-contract", str(REFERENCE), "--lucius-level", level, "--collect-only")
    _, listed = run_pytest(*arguments)
    assert "::test_rule[LC-07/frozen]" in listed
    assert listed.count("test_rule[LC-26/") == number


@pytest.mark.check
def test_a_rule_is_judged_from_any_folder(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    asked = ("--lucius-contract", str(REFERENCE), "-k", "LC-19")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *SUITE, *asked],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "1 passed" in run.stdout


def test_a_broken_rule_fails_with_its_timeline_and_the_command_that_repeats_it(
    run_pytest: Pytest, tmp_path: Path
) -> None:
    broken = REFERENCE.parents[1] / "broken_services/contract.yaml"
    contract = tmp_path / "contract.yaml"
    text = broken.read_text().replace("{folder}", str(broken.parent))
    contract.write_text(
        text.replace("environment:\n", "environment:\n  FLAW: runs-foreign-steps\n")
    )
    code, printed = run_pytest("--lucius-contract", str(contract), "-k", "LC-23")
    assert code == 1, printed
    assert "was run" in printed
    assert "published attempt 1 foreign-step-type" in printed
    assert "--only LC-23/foreign" in printed
