"""The command, run in this process by its own entry point, beside a server that is a double."""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.double import Double, running_double
from tests.cli.shell import Shell


@pytest.fixture
def server() -> Iterator[Double]:
    with running_double() as double:
        yield double


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Shell:
    """A shell in an empty folder, without settings of the one who runs the tests."""
    for name in [name for name in os.environ if name.startswith("LUCIUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    return Shell(monkeypatch, capfd)


@pytest.fixture
def client(shell: Shell, server: Double) -> Shell:
    """A shell whose LUCIUS_URL is the double."""
    shell.export(LUCIUS_URL=server.url)
    return shell
