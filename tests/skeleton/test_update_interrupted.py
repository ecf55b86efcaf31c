"""An update whose process is gone before its end."""

import shutil
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.skeleton.projects import MAKEFILE_BEFORE, commit, files_in, older, run

REORDERED = ("!a\n*\n**/__pycache__\n", "*\n**/__pycache__\n!a\n")
"""As baked, and as the team has it: merging what was merged again ends in a conflict."""


@pytest.mark.parametrize("replaced", range(6))
def test_an_update_that_was_interrupted_is_repeated(
    shell: Shell, project: Path, replaced: int
) -> None:
    baked, ours = REORDERED
    before: dict[str, str | None] = {".dockerignore": baked, "Dockerfile": None, "old.txt": "old\n"}
    older(project, {**before, "Makefile": MAKEFILE_BEFORE})
    (project / ".dockerignore").write_text(ours)
    (project / "Dockerfile").write_text("FROM ours\n")
    (project / "Makefile").write_text(f"{MAKEFILE_BEFORE}# ours\n")
    commit(project)
    shutil.copytree(project, "whole")
    assert shell("update", "whole").code == 1

    interrupt(project, replaced)
    assert shell("update", "word-count").code == 1
    assert files_in(project) == files_in(Path("whole"))


def interrupt(project: Path, replaced: int) -> None:
    """Update it in a process that is gone when so many files have been replaced or removed."""
    program = """
import os, sys
from lucius_cli.main import main

left, folder = int(sys.argv[1]), sys.argv[2]

def audit(event, arguments):
    global left
    if event == "os.rename" or (event == "os.remove" and str(arguments[0]).endswith("old.txt")):
        if left == 0:
            os._exit(9)
        left -= 1

sys.addaudithook(audit)
main(["update", folder])
"""
    ended = run("python", "-c", program, str(replaced), str(project), cwd=project.parent)
    assert ended.returncode == 9, ended.stderr
