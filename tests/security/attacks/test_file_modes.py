"""Files that the control plane and the SDK make in a folder which others may read, at a umask that
would let them."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lucius_artifacts.objects.files import places
from lucius_artifacts.objects.files.incoming import IncomingPart
from lucius_artifacts.objects.files.layout import Layout
from lucius_orchestrator.bootstrap.checks import diagnose
from lucius_orchestrator.bootstrap.leashed import Leashed
from lucius_orchestrator.settings import load_settings
from lucius_outbox.sqlite import migrate
from lucius_outbox.sqlite.journal import create_private
from lucius_sdk.idempotency_store.opening import open_store
from servicebus_emulator.journal import Journal
from tests.bootstrap.planes import plane
from tests.cli.shell import Shell

KEY = "object-1"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before = os.umask(0)
    made = tmp_path / "data"
    made.mkdir(mode=0o777)
    yield made
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """What others may read, write or enter, below the folder."""
    return sorted(
        str(found.relative_to(folder))
        for found in folder.rglob("*")
        if stat.S_IMODE(found.stat().st_mode) & 0o077
    )


async def test_a_control_plane_opens_no_file_to_others(folder: Path) -> None:
    async with plane(folder.parent, LUCIUS_AUTH="on"):
        names = {found.name for found in folder.rglob("*")}
        assert {"ledger.db", "ledger.db-wal", "ledger.db-shm", "artifacts.db", "journal"} <= names
        assert {"bus.key", "callback.key"} <= names
        assert open_to_others(folder) == []


async def test_a_dedup_store_is_for_its_service_alone(folder: Path) -> None:
    store = open_store(f"sqlite://{folder}/made/store.db")
    await store.check()
    assert (folder / "made" / "store.db-wal").exists()
    assert open_to_others(folder) == []
    await store.close()


def test_a_rollback_journal_is_closed_too(folder: Path) -> None:
    create_private(folder / "file.db")
    with closing(sqlite3.connect(folder / "file.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE secrets (value)")
        connection.execute("PRAGMA cache_spill = 1")
        assert (folder / "file.db-journal").exists()
        assert open_to_others(folder) == []


async def test_an_outbox_is_closed(folder: Path) -> None:
    create_private(folder / "outbox.db")
    with closing(sqlite3.connect(folder / "outbox.db")) as connection:
        migrate(connection)
        connection.commit()
    assert open_to_others(folder) == []


def test_an_emulator_alone_keeps_its_messages_to_itself(folder: Path) -> None:
    Journal(folder / "bus").close()
    assert open_to_others(folder) == []


async def test_a_program_that_a_process_starts_keeps_its_files_to_itself(folder: Path) -> None:
    """As the Temporal server is started, in a loop that knows no umask of its own."""
    path = folder / "temporal.db"
    program = await Leashed.start(["/bin/sh", "-c", f": > {path}"], {}, lambda _: None)
    assert await program.wait() == 0
    assert path.exists()
    assert open_to_others(folder) == []


def test_objects_of_artifacts_are_closed(folder: Path) -> None:
    layout = Layout(folder / "a" / "b")
    places.begin(layout, KEY)
    part = IncomingPart(layout.place(KEY), 1)
    part.write([b"secret"])
    part.keep()
    places.freeze(layout, KEY, 1)
    assert places.sizes_of_object(layout, KEY) == {1: 6}
    assert open_to_others(folder) == []


def test_a_file_that_exists_keeps_its_mode(folder: Path) -> None:
    """It may be what an operator wants; `lucius doctor` warns."""
    file = folder / "ledger.db"
    file.touch(mode=0o640)
    create_private(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize(("mode", "warned"), [(0o644, True), (0o600, False)])
async def test_doctor_warns_of_what_others_may_read(folder: Path, mode: int, warned: bool) -> None:
    (folder / "ledger.db").touch(mode=mode)
    (folder / "workspace").mkdir(mode=0o777)
    checks = await diagnose(load_settings({"LUCIUS_DATA_DIR": str(folder)}))
    (found,) = [check for check in checks if check.name == "file modes"]
    assert found.ok
    assert ("chmod -R go= ledger.db" in found.detail) is warned
    assert "workspace" not in found.detail


def test_doctor_warns_of_a_dedup_store_that_others_may_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(monkeypatch, capsys)
    shell.export(
        LUCIUS_URL="http://127.0.0.1:1",
        LUCIUS_DATA_DIR=str(folder / "none"),
        LUCIUS_WORKSPACE_ROOT=str(folder / "workspace"),
        LUCIUS_DEDUP_STORE=f"sqlite://{folder}/store.db",
    )
    assert "dedup store file" not in shell("doctor").out
    (folder / "store.db").chmod(0o640)
    assert f"chmod go= {folder}/store.db*" in shell("doctor", "--json").out
