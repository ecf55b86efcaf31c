"""pytest as a team uses it, in a folder of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parent / "reference/contract.yaml"
NOT_FOUND = 5


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "--pyargs", "contract_tests", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_without_a_contract_nothing_passes(tmp_path: Path) -> None:
    run = run_pytest(tmp_path)
    assert run.returncode not in (0, NOT_FOUND)
    assert "--lucius-contract path/to/contract.yaml" in run.stdout + run.stderr


def test_a_contract_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, "--lucius-contract", "none.yaml")
    assert run.returncode != 0
    assert "there is no such file" in run.stdout + run.stderr


@pytest.mark.parametrize(("level", "number"), [("core", 0), ("full", 3)])
def test_rules_are_tests_of_the_same_names(tmp_path: Path, level: str, number: int) -> None:
    arguments = ("--lucius-contract", str(REFERENCE), "--lucius-level", level, "--collect-only")
    listed = run_pytest(tmp_path, *arguments).stdout
    assert "::test_rule[LC-07/frozen]" in listed
    assert listed.count("test_rule[LC-26/") == number


def test_a_rule_is_judged_from_any_folder(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, "--lucius-contract", str(REFERENCE), "-k", "LC-19")
    assert run.returncode == 0, run.stdout
    assert "1 passed" in run.stdout


def test_a_broken_rule_fails_with_its_timeline_and_the_command_that_repeats_it(
    tmp_path: Path,
) -> None:
    broken = REFERENCE.parents[1] / "broken_services/contract.yaml"
    contract = tmp_path / "contract.yaml"
    text = broken.read_text().replace("{folder}", str(broken.parent))
    contract.write_text(
        text.replace("environment:\n", "environment:\n  FLAW: runs-foreign-steps\n")
    )
    run = run_pytest(tmp_path, "--lucius-contract", str(contract), "-k", "LC-23")
    assert run.returncode == 1, run.stdout
    assert "was run" in run.stdout
    assert "published attempt 1 foreign-step-type" in run.stdout
    assert "--only LC-23/foreign" in run.stdout
