"""The image cannot be built everywhere; what its recipe names must be there all the same."""

import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.skeleton.projects import fresh


@pytest.fixture
def service(tmp_path: Path) -> Path:
    return fresh(tmp_path)


@pytest.fixture
def lines(service: Path) -> list[list[str]]:
    """The instructions, each as its words."""
    text = (service / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split() for line in text.splitlines() if line]


def of(lines: list[list[str]], instruction: str) -> list[list[str]]:
    return [words[1:] for words in lines if words[0] == instruction]


def test_all_that_is_copied_is_there_and_is_sent_to_the_builder(
    service: Path, lines: list[list[str]]
) -> None:
    ignored = (service / ".dockerignore").read_text().splitlines()
    sources = [words[:-1] for words in of(lines, "COPY") if not words[0].startswith("--from")]
    names = [name for words in sources for name in words]
    assert names == ["requirements.txt", "wheels", "word_count_service"]
    for name in names:
        assert (service / name).exists()
        assert ignored[0] == "*"
        assert any(fnmatch(name, rule[1:]) for rule in ignored if rule.startswith("!"))


def test_it_runs_as_a_numbered_user_who_is_not_root(lines: list[list[str]]) -> None:
    ((user,),) = of(lines, "USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    last_stage = [words[0] for words in lines][-6:]
    assert last_stage.index("USER") < last_stage.index("ENTRYPOINT")


def test_nothing_is_installed_in_the_last_stage(lines: list[list[str]]) -> None:
    stages = [number for number, words in enumerate(lines) if words[0] == "FROM"]
    assert len(stages) == 2
    images = {lines[number][1] for number in stages}
    assert len(images) == 1, "both stages have the same base"
    assert images.pop().startswith("python:3.12-slim@sha256:")
    assert of(lines[stages[-1] :], "RUN") == []


def test_it_starts_the_package_and_answers_about_its_health_to_others(
    service: Path, lines: list[list[str]]
) -> None:
    (entry,) = of(lines, "ENTRYPOINT")
    *python, package = json.loads(" ".join(entry))
    assert python == ["python", "-m"]
    assert (service / package / "__main__.py").is_file()
    assert "LUCIUS_HEALTH_HOST=0.0.0.0" in of(lines, "ENV")[0]


def test_its_health_check_is_a_program_that_python_can_run(lines: list[list[str]]) -> None:
    (check,) = of(lines, "HEALTHCHECK")
    python, option, program = json.loads(" ".join(check[check.index("CMD") + 1 :]))
    assert (python, option) == ("python", "-c")
    compile(program, "health", "exec")
    assert "/healthz/live" in program
