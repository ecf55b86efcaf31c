import os
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.skeleton.projects import fresh


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Shell:
    """A shell in an empty folder, without settings of the one who runs the tests."""
    for name in [name for name in os.environ if name.startswith("LUCIUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return Shell(monkeypatch, capfd)


@pytest.fixture
def project(shell: Shell) -> Path:
    """A fresh service in the folder of the shell; not under git."""
    return fresh(Path("word-count").absolute())
