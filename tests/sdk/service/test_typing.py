"""mypy --strict, as a team runs it on its own file with nothing else configured."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lucius_sdk
from tests.runner.deadlines import seconds
from tests.sdk.service.user_files import BAD, GOOD

pytestmark = pytest.mark.check

SOURCE = Path(lucius_sdk.__file__).parents[1]
FOUND = re.compile(r"service\.py:(\d+): error: (.*)")
EXPECTED = re.compile(r"# E: (.*)")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def mypy(text: str, folder: Path, cache: Path) -> str:
    (folder / "service.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"]
    run = subprocess.run(
        [*command, "--cache-dir", str(cache), "service.py"],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=seconds(100),
        check=False,
    )
    assert not run.stderr
    return run.stdout


def test_a_right_service_has_no_type_error(tmp_path: Path, cache: Path) -> None:
    assert mypy(GOOD, tmp_path, cache) == ""


def test_every_mistake_is_found_and_nothing_else(tmp_path: Path, cache: Path) -> None:
    output = mypy(BAD, tmp_path, cache)
    found = {int(line): message for line, message in FOUND.findall(output)}
    expected = {
        number: match[1]
        for number, line in enumerate(BAD.splitlines(), 1)
        if (match := EXPECTED.search(line))
    }
    assert found.keys() == expected.keys(), output
    for line, part in expected.items():
        assert part in found[line], (line, found[line])
