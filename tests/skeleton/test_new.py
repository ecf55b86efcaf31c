"""`lucius new`: a service in one command."""

import json
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest

from lucius_cli.skeleton import BASELINE
from lucius_cli.skeleton.source import installed_from
from tests.cli.shell import Shell
from tests.skeleton.projects import ROOT, files_in


def test_it_says_what_to_do_next(shell: Shell) -> None:
    told = shell("new", "page-split")
    assert told.code == 0
    assert told.out.startswith("page-split is ready")
    assert "make test" in told.out
    assert (Path("page-split") / BASELINE).is_file()


def test_answers_are_options(shell: Shell) -> None:
    given = ("--step-type", "SPLIT", "--package", "splitter", "--description", "Splits pages.")
    told = shell("new", "page-split", *given, "--into", "services/new", "--json")
    assert told.json["folder"] == "services/new/page-split"
    assert told.json["answers"] == {
        "service_name": "page-split",
        "step_type": "SPLIT",
        "package_name": "splitter",
        "description": "Splits pages.",
    }
    made = files_in(Path("services/new/page-split"))
    assert sorted(made) == told.json["files"]
    assert b"Splits pages." in made["README.md"]


def test_a_dry_run_lists_the_files_and_writes_none(shell: Shell) -> None:
    told = shell("new", "page-split", "--dry-run")
    assert told.code == 0
    assert "page-split/page_split_service/execute.py" in told.out.splitlines()
    assert list(Path().iterdir()) == []


def test_a_folder_that_is_in_use_is_left_alone(shell: Shell) -> None:
    Path("page-split").mkdir()
    Path("page-split/notes.txt").write_text("ours")
    told = shell("new", "page-split")
    assert told.code == 2
    assert "page-split is there already" in told.err
    assert list(files_in(Path("page-split"))) == ["notes.txt"]


def test_an_empty_folder_is_filled(shell: Shell) -> None:
    Path("page-split").mkdir()
    assert shell("new", "page-split").code == 0
    assert Path("page-split/Makefile").is_file()


def test_a_name_that_cannot_be_used_is_refused_with_the_rule(shell: Shell) -> None:
    told = shell("new", "Page Split")
    assert told.code == 2
    assert "service_name: must be 1 to 50 lower-case letters" in told.err
    assert list(Path().iterdir()) == []


def test_made_from_a_checkout_it_installs_the_sdk_from_there(shell: Shell) -> None:
    shell("new", "page-split")
    assert f"LUCIUS_SDK ?= {ROOT}\n" in Path("page-split/local.mk").read_text()


@pytest.mark.parametrize(
    ("recorded", "address"),
    [
        (None, None),
        ({"url": "file:///srv/lucius", "dir_info": {}}, "file:///srv/lucius"),
        ({"url": "file:///srv/l.whl", "archive_info": {}}, "file:///srv/l.whl"),
        (
            {"url": "https://git.example/l", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "git+https://git.example/l@abc",
        ),
    ],
)
def test_made_from_a_package_it_installs_what_that_was_installed_from(
    tmp_path: Path, recorded: dict[str, Any] | None, address: str | None
) -> None:
    if recorded is not None:
        (tmp_path / "direct_url.json").write_text(json.dumps(recorded))
    assert installed_from(PathDistribution(tmp_path)) == address
