"""A fresh service is green before anybody has touched it."""

import sys
from pathlib import Path

import pytest

from contract_tests.contract import load_contract
from tests.skeleton.projects import LONGEST, ODD_NAMES, fresh, run


@pytest.fixture(params=["word-count", LONGEST])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return fresh(tmp_path / "service", service_name=request.param)


def test_it_has_the_one_format_and_no_lint(service: Path) -> None:
    for command in (("ruff", "format", "--check", "."), ("ruff", "check", ".")):
        checked = run(*command, "--no-cache", cwd=service)
        assert checked.returncode == 0, checked.stdout


@pytest.mark.check
def test_its_types_are_right(service: Path) -> None:
    checked = run("mypy", "--cache-dir", "/dev/null", cwd=service)
    assert checked.returncode == 0, checked.stdout
    assert "5 source files" in checked.stdout


def test_its_tests_pass(service: Path) -> None:
    tested = run(sys.executable, "-m", "pytest", "-q", cwd=service)
    assert tested.returncode == 0, tested.stdout
    assert "5 passed" in tested.stdout


@pytest.mark.parametrize("name", ["word-count", *ODD_NAMES])
def test_its_contract_can_be_read_and_names_it(tmp_path: Path, name: str) -> None:
    loaded = load_contract(fresh(tmp_path, service_name=name))
    assert loaded.contract.service == name
    assert loaded.contract.step_type == name.upper().replace("-", "_")


@pytest.mark.check
def test_one_rule_of_the_contract_is_kept(tmp_path: Path) -> None:
    service = fresh(tmp_path)
    judged = run(
        "lucius", "conform", "run", ".", "--only", "LC-12/*", "--only", "LC-10/*", cwd=service
    )
    assert "fail" not in judged.stdout
    assert judged.stdout.count("pass   LC-") == 4, judged.stdout + judged.stderr
