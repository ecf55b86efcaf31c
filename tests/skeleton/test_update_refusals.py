"""When `lucius update` changes nothing, and says what to do."""

import json
import os
from pathlib import Path

import pytest

from lucius_cli.skeleton import BASELINE
from tests.cli.shell import Shell
from tests.skeleton.projects import MAKEFILE, MAKEFILE_BEFORE, NOW, commit, files_in, older, write


def test_what_git_could_not_bring_back_is_not_replaced(shell: Shell, project: Path) -> None:
    older(project, {"Makefile": MAKEFILE_BEFORE})
    commit(project)
    with (project / "Makefile").open("a") as file:
        file.write("# not committed\n")
    before = files_in(project)
    told = shell("update", "word-count")
    assert told.code == 2
    assert "Makefile" in told.err
    assert "git commit" in told.err
    assert files_in(project) == before
    assert shell("update", "word-count", "--dry-run").code == 0


def test_what_would_not_change_need_not_be_committed(shell: Shell, project: Path) -> None:
    older(project, {"Makefile": MAKEFILE_BEFORE})
    commit(project)
    (project / "word_count_service/execute.py").write_text("# in the making\n")
    assert shell("update", "word-count").code == 0
    assert (project / "Makefile").read_text() == MAKEFILE


def test_a_file_that_git_does_not_know_is_not_replaced(shell: Shell, project: Path) -> None:
    older(project, {"Dockerfile": None})
    commit(project)
    (project / "Dockerfile").write_text("FROM ours\n")
    assert shell("update", "word-count").code == 2
    assert (project / "Dockerfile").read_text() == "FROM ours\n"


def test_a_folder_that_is_no_project_is_told(shell: Shell) -> None:
    told = shell("update")
    assert told.code == 2
    assert "was not made from the skeleton" in told.err


def test_a_project_of_a_newer_template_is_told(shell: Shell, project: Path) -> None:
    write(project, NOW.model_copy(update={"template": 99}))
    told = shell("update", "word-count")
    assert told.code == 3
    assert "is of version 99 of the skeleton" in told.err
    assert "pip install --upgrade lucius-sdk" in told.err


@pytest.mark.parametrize(
    "record",
    [
        "",
        "[]",
        '{"template": 1, "answers": {}}',
        '{"template": 1, "answers": {"service_name": "x"}, "files": {"../outside.txt": "x"}}',
        '{"template": 1, "answers": {"service_name": "x"}, "files": {"/outside.txt": "x"}}',
        '{"template": 1, "answers": {"service_name": "{{ 7 * 7 }}"}, "files": {}}',
        '{"template": 1, "answers": {"service_name": "../x"}, "files": {}}',
    ],
)
def test_a_record_that_is_damaged_or_malicious_is_refused(
    shell: Shell, project: Path, record: str
) -> None:
    Path("outside.txt").write_text("x")
    (project / BASELINE).write_text(record)
    before = files_in(project)
    assert shell("update", "word-count").code == 2
    assert files_in(project) == before
    assert Path("outside.txt").read_text() == "x"


def test_a_folder_that_leads_out_of_the_project_is_refused(shell: Shell, project: Path) -> None:
    older(project, {"old/notes.txt": "notes\n"})
    (project / "old").rename("outside")
    (project / "old").symlink_to(Path("outside").absolute())
    told = shell("update", "word-count")
    assert told.code == 2
    assert "old/notes.txt leads through" in told.err
    assert "symbolic link" in told.err
    assert Path("outside/notes.txt").read_text() == "notes\n"


def test_conflicts_of_an_earlier_update_are_to_be_resolved_first(
    shell: Shell, project: Path
) -> None:
    older(project, {"Makefile": MAKEFILE_BEFORE})
    text = f"{MAKEFILE_BEFORE}<<<<<<< yours\na\n=======\nb\n>>>>>>> skeleton 1\n"
    (project / "Makefile").write_text(text)
    told = shell("update", "word-count")
    assert told.code == 2
    assert "still has the conflicts of an earlier update" in told.err
    assert (project / "Makefile").read_text() == text


def test_a_folder_that_cannot_be_written_to_is_told(shell: Shell, project: Path) -> None:
    older(project, {"deploy/chart/templates/_values.tpl": None})
    for path in (project / "deploy/chart/templates").iterdir():
        path.unlink()
    os.rmdir(project / "deploy/chart/templates")
    (project / "deploy/chart/templates").write_text("not a folder")
    told = shell("update", "word-count")
    assert told.code == 3
    assert "cannot be written" in told.err
    assert json.loads((project / BASELINE).read_text())["template"] == 1
