"""One template, two ways to bake it, and answers that are checked before."""

import json
import shutil
from pathlib import Path

import pytest

from lucius_cli.failures import Unsuitable
from lucius_cli.skeleton import BASELINE, bake, find_template
from lucius_cli.skeleton.template import read_template
from tests.skeleton.projects import (
    LONGEST,
    ODD_NAMES,
    ROOT,
    TEMPLATE,
    cookiecutter,
    files_in,
    run,
)


def test_a_name_is_enough() -> None:
    assert bake({"service_name": "page-split"}).answers == {
        "service_name": "page-split",
        "step_type": "PAGE_SPLIT",
        "package_name": "page_split_service",
        "description": "Counts the words of a text document.",
    }


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_odd_name_has_a_package_that_python_can_import(name: str) -> None:
    baked = bake({"service_name": name})
    package = baked.answers["package_name"]
    assert package.isidentifier()
    assert f"{package}/__main__.py" in baked.files


def test_all_answers_can_be_given() -> None:
    answers = {
        "service_name": "ocr",
        "step_type": "Read-Page",
        "package_name": "reader",
        "description": "Reads the page's text: quickly & well <always>.",
    }
    baked = bake(answers)
    assert baked.answers == answers
    assert '@service.step("Read-Page", payload=Payload)' in baked.files["reader/execute.py"]


@pytest.mark.parametrize(
    ("question", "answer", "told"),
    [
        ("service_name", "Word-Count", "service_name: must be 1 to 50 lower-case letters"),
        ("service_name", "-words", "service_name: must be"),
        ("service_name", "words-", "service_name: must be"),
        ("service_name", "", "service_name: must be"),
        ("service_name", "../words", "service_name: must be"),
        ("service_name", f"{LONGEST}1", "service_name: must be"),
        ("step_type", "WORD COUNT", "step_type: must be 1 to 64 letters"),
        ("package_name", "word-count", "package_name: must be the name of a Python package"),
        ("package_name", "3d", "package_name: must be"),
        ("package_name", "json", "package_name: json means something else"),
        ("package_name", "tests", "package_name: tests means something else"),
        ("package_name", "class", "package_name: class means something else"),
        ("description", 'It "counts"', "description: must be one line"),
        ("description", "one\ntwo", "description: must be one line"),
        ("description", "{{ cookiecutter.step_type }}", "description: must be one line"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused_with_the_rule(
    question: str, answer: str, told: str
) -> None:
    with pytest.raises(Unsuitable, match=told):
        bake({"service_name": "words", question: answer})


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(Unsuitable) as refused:
        bake({"service_name": "Words", "step_type": "a b"})
    assert len(str(refused.value).splitlines()) == 2


def test_an_answer_is_text_and_is_never_carried_out() -> None:
    with pytest.raises(Unsuitable):
        bake({"service_name": "words", "description": "{{ cycler.__init__.__globals__ }}"})


@pytest.mark.parametrize("name", ["word-count", "3d-scan"])
def test_cookiecutter_and_lucius_new_make_the_same(tmp_path: Path, name: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    assert cookiecutter(first, answers={"service_name": name}).returncode == 0
    assert run("lucius", "new", name, cwd=second).returncode == 0
    made = files_in(first / name)
    assert made == files_in(second / name)
    assert {"Makefile", "local.mk", BASELINE, ".github/workflows/ci.yml"} <= set(made)


def test_cookiecutter_refuses_with_the_same_words_and_leaves_nothing(tmp_path: Path) -> None:
    run = cookiecutter(tmp_path, answers={"service_name": "Words", "description": "it's 'fine'"})
    assert run.returncode != 0
    assert "service_name: must be 1 to 50 lower-case letters" in run.stderr
    assert not (tmp_path / "Words").exists()


def test_what_was_baked_is_on_record(tmp_path: Path) -> None:
    cookiecutter(tmp_path)
    made = files_in(tmp_path / "word-count")
    record = json.loads(made.pop(BASELINE))
    made.pop("local.mk")
    assert record["files"] == {path: content.decode() for path, content in made.items()}
    assert record["answers"] == bake({"service_name": "word-count"}).answers


def test_a_project_of_a_checkout_installs_the_sdk_from_there(tmp_path: Path) -> None:
    cookiecutter(tmp_path)
    printed = run("make", "-n", "setup", cwd=tmp_path / "word-count").stdout
    assert f"install {ROOT} --editable '.[dev]'" in printed


def test_a_checkout_may_lie_anywhere(tmp_path: Path) -> None:
    checkout = tmp_path / "my $ #1 checkout"
    shutil.copytree(TEMPLATE, checkout / "skeleton_template")
    shutil.copy(ROOT / "pyproject.toml", checkout)
    cookiecutter(tmp_path, checkout / "skeleton_template")
    settings = tmp_path / "word-count" / "local.mk"
    (tmp_path / "Makefile").write_text(f"include {settings}\nshow:\n\t@printf %s $(LUCIUS_SDK)\n")
    assert run("make", "--no-print-directory", "show", cwd=tmp_path).stdout == str(checkout)


def test_a_template_that_is_no_checkout_leaves_the_sdk_to_the_index(tmp_path: Path) -> None:
    shutil.copytree(TEMPLATE, tmp_path / "skeleton_template")
    cookiecutter(tmp_path, tmp_path / "skeleton_template")
    assert not (tmp_path / "word-count" / "local.mk").exists()
    printed = run("make", "-n", "setup", cwd=tmp_path / "word-count").stdout
    assert "install lucius-sdk --editable '.[dev]'" in printed


@pytest.mark.parametrize("leftover", ["__pycache__", ".ruff_cache"])
def test_what_tools_left_behind_in_a_template_is_not_baked(tmp_path: Path, leftover: str) -> None:
    copy = tmp_path / "skeleton_template"
    shutil.copytree(TEMPLATE, copy)
    (package,) = copy.glob("*/*package_name*")
    (package / leftover).mkdir()
    (package / leftover / "payload.cpython-311.pyc").write_bytes(b"\xff\x00\xfe")
    assert cookiecutter(tmp_path, copy).returncode == 0
    assert not list((tmp_path / "word-count").rglob(leftover))
    answers = {"service_name": "word-count"}
    assert bake(answers, read_template(copy)) == bake(answers)


def test_every_file_is_either_the_teams_or_shared() -> None:
    template = find_template()
    yours = {path for path in bake({"service_name": "ocr"}).files if template.is_yours(path)}
    assert yours == {
        "README.md",
        "contract.yaml",
        "deploy/chart/values.yaml",
        "ocr_service/execute.py",
        "ocr_service/payload.py",
        "requirements.txt",
        "samples/text.txt",
        "tests/test_execute.py",
    }
