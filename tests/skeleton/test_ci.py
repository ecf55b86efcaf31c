"""What CI does is what `make check` does."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.skeleton.projects import commit, fresh, run


@pytest.fixture
def service(tmp_path: Path) -> Path:
    return fresh(tmp_path)


@pytest.fixture
def jobs(service: Path) -> dict[str, Any]:
    document = yaml.safe_load((service / ".github/workflows/ci.yml").read_text())
    found: dict[str, Any] = document["jobs"]
    return found


def commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_it_runs_every_target_of_make_check(service: Path, jobs: dict[str, Any]) -> None:
    (check,) = re.findall(r"^check: (.*) ##", (service / "Makefile").read_text(), re.MULTILINE)
    for target in check.split():
        assert commands(jobs[target]) == [f"make {target} PYTHON=python"]


def test_the_badge_is_put_on_a_branch_of_its_own(tmp_path: Path, jobs: dict[str, Any]) -> None:
    (script,) = commands(jobs["badge"])
    there, team = tmp_path / "there.git", fresh(tmp_path / "team")
    run("git", "init", "--quiet", "--bare", str(there), cwd=tmp_path)
    commit(team)
    run("git", "push", str(there), "HEAD:main", cwd=team)
    for number in ("one", "two"):
        run("git", "clone", "--quiet", "--branch", "main", str(there), number, cwd=tmp_path)
        (tmp_path / number / "conformance").mkdir()
        (tmp_path / number / "conformance/badge.svg").write_text(number)
        done = run("bash", "-e", "-c", script, cwd=tmp_path / number, GITHUB_SHA=number)
        assert done.returncode == 0, done.stderr
    listed = run("git", "ls-tree", "-r", "--name-only", "badges", cwd=there)
    assert listed.stdout.split() == ["conformance.svg"]
    assert run("git", "show", "badges:conformance.svg", cwd=there).stdout == "two"


def test_the_report_is_kept_also_when_the_service_is_not_conformant(jobs: dict[str, Any]) -> None:
    (upload,) = [step for step in jobs["contract"]["steps"] if "upload" in step.get("uses", "")]
    assert upload["if"] == "always()"
    assert upload["with"]["path"] == "conformance/"


def test_make_alone_lists_its_targets(service: Path) -> None:
    listed = run("make", cwd=service).stdout
    phony = re.findall(r"^\.PHONY: (.*)$", (service / "Makefile").read_text(), re.MULTILINE)
    assert [line.split()[1] for line in listed.splitlines()] == phony
    assert {"test", "lint", "contract", "check", "run"} <= set(phony)


@pytest.mark.parametrize("target", ["setup", "test", "lint", "contract", "run", "image", "update"])
def test_every_target_can_be_planned(service: Path, target: str) -> None:
    assert run("make", "-n", target, cwd=service).returncode == 0


def test_a_python_that_is_too_old_is_told(service: Path) -> None:
    old = service / "old-python"
    old.write_text('#!/bin/sh\nexec python3 -c "import sys; sys.version_info = (3, 9); $2"\n')
    old.chmod(0o755)
    refused = run("make", "setup", f"PYTHON={old}", cwd=service)
    assert refused.returncode != 0
    assert "Python 3.11 or newer is needed" in refused.stderr
    assert not (service / ".venv").exists()
