"""Projects that must not diverge: their shared files are the template's."""

import sys
from pathlib import Path

import pytest

from lucius_cli.failures import Unsuitable
from lucius_cli.skeleton import BASELINE, bake, drift, rewrite
from lucius_cli.skeleton.baked import read_baseline
from tests.skeleton.projects import files_in, older, run


def test_a_fresh_project_has_not_diverged(project: Path) -> None:
    assert drift(project) == []


def test_a_teams_files_may_be_anything(project: Path) -> None:
    (project / "README.md").write_text("ours")
    (project / "word_count_service/execute.py").unlink()
    (project / "word_count_service/pages.py").write_text("# ours\n")
    assert drift(project) == []


def test_a_shared_file_that_differs_is_named(project: Path) -> None:
    (project / "Makefile").write_text("all:\n")
    (project / "wheels/.gitignore").unlink()
    assert set(drift(project)) == {"Makefile", "wheels/.gitignore"}


def test_a_project_that_was_not_updated_is_named(project: Path) -> None:
    older(project, {"Makefile": "all:\n", "old.txt": "old\n"})
    assert set(drift(project)) == {"Makefile", "old.txt", BASELINE}


def test_shared_files_are_written_anew_and_the_teams_left_alone(project: Path) -> None:
    older(project, {"Makefile": "all:\n", "old.txt": "old\n"})
    (project / "README.md").write_text("ours")
    assert set(rewrite(project, {})) == {"Makefile", "old.txt", BASELINE}
    assert drift(project) == []
    assert (project / "README.md").read_text() == "ours"


def test_a_folder_that_never_was_a_project_becomes_one(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("ours")
    rewrite(tmp_path, {"service_name": "ocr", "description": "Reads pages."})
    assert drift(tmp_path) == []
    assert read_baseline(tmp_path).answers["step_type"] == "OCR"
    made = files_in(tmp_path)
    assert made["README.md"] == b"ours"
    assert "ocr_service/execute.py" not in made
    assert (
        made["ocr_service/__main__.py"].decode()
        == bake({"service_name": "ocr"}).files["ocr_service/__main__.py"]
    )


def test_another_package_takes_the_shared_files_with_it(project: Path) -> None:
    rewrite(project, {"package_name": "counter"})
    assert drift(project) == []
    assert not (project / "word_count_service/__main__.py").exists()
    assert (project / "word_count_service/execute.py").exists()


def test_answers_are_checked(project: Path) -> None:
    with pytest.raises(Unsuitable, match="service_name"):
        rewrite(project, {"service_name": "Ocr"})


def test_it_is_a_command_too(tmp_path: Path) -> None:
    module = (sys.executable, "-m", "lucius_cli.skeleton")
    done = run(*module, "ocr", "service_name=ocr", "description=Reads pages.", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ocr/Makefile" in done.stdout.splitlines()
    assert run(*module, "ocr", cwd=tmp_path).stdout == ""
    assert run(*module, cwd=tmp_path).returncode == 2
    assert run(*module, "ocr", "service_name=OCR", cwd=tmp_path).returncode == 2
