"""`lucius update` from every version of the template that was released."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.skeleton.projects import NOW, VERSIONS, files_in, fresh, recorded, write


@pytest.mark.parametrize("version", [int(file.stem) for file in VERSIONS.glob("*.json")])
def test_an_untouched_project_becomes_a_fresh_one(shell: Shell, version: int) -> None:
    project = write(Path("word-count"), recorded(version))
    assert shell("update", "word-count").code == 0
    assert files_in(project) == files_in(fresh(Path("fresh")))


def test_a_project_in_use_keeps_its_work_and_gets_what_is_new(shell: Shell) -> None:
    project = write(Path("word-count"), recorded(1))
    work = {
        "word_count_service/execute.py": "# the team's\n",
        "word_count_service/pages.py": "# the team's\n",
        "deploy/chart/values.yaml": "concurrency: 9\n",
        "README.md": "# Ours\n",
    }
    for path, text in work.items():
        (project / path).write_text(text)
    workflow = project / ".github/workflows/ci.yml"
    workflow.write_text(workflow.read_text().replace("timeout-minutes: 30", "timeout-minutes: 45"))
    told = shell("update", "word-count")
    assert told.code == 0
    assert {path: (project / path).read_text() for path in work} == work
    assert "timeout-minutes: 45" in workflow.read_text()
    assert "git push --force origin badges" in workflow.read_text()
    assert (project / "deploy/chart/templates/disruptionbudget.yaml").is_file()
    assert "+[![contract](../../raw/badges/conformance.svg)]" in told.out


def test_the_template_is_what_was_recorded_for_its_version() -> None:
    assert recorded(NOW.template) == NOW, (
        f"version {NOW.template} bakes something else now: if it was released, raise _version in"
        " cookiecutter.json; then python -m tests.skeleton.record"
    )


def test_an_update_without_anything_newer_changes_nothing(shell: Shell, project: Path) -> None:
    (project / "Makefile").write_text("all:\n")
    before = files_in(project)
    told = shell("update", "word-count")
    assert (told.code, told.out) == (0, "")
    assert "nothing newer" in told.err
    assert files_in(project) == before
