"""`lucius up --engine temporal`: jobs that Temporal drives, with a server that is started along."""

import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cli.service import answer_over_the_bus, next_directive
from tests.cli.shell import Shell
from tests.cli.test_service import SERVICES, state_of
from tests.cli.test_up import Plane, refused, running, submit
from tests.components import require
from tests.runner.deadlines import PROCESS_DEADLINE
from tests.temporal_server import is_available

pytestmark = pytest.mark.check

UP = ("up", "--port", "0", "--data", "data")
TEMPORAL = (*UP, "--engine", "temporal")


@pytest.fixture(autouse=True)
def _program() -> None:
    require(is_available(), "the program `temporal`")


def servers(plane: Plane) -> list[int]:
    """The processes that have the file of workflows of this folder."""
    return list(_having(str(plane.folder / "data" / "temporal.db")))


def _having(argument: str) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if argument.encode() in words:
            yield int(entry.name)


def has_ended(pids: list[int]) -> bool:
    return not any(Path("/proc", str(pid)).exists() for pid in pids)


def until_ended(pids: list[int]) -> None:
    give_up_at = time.monotonic() + PROCESS_DEADLINE
    while not has_ended(pids):
        assert time.monotonic() < give_up_at, f"{pids} are still there"
        time.sleep(0.01)


def play(connection: str) -> None:
    for service in SERVICES:
        directive = next_directive(connection, "acme", service)
        answer_over_the_bus(connection, directive, "ACK", status="ACKED")
        answer_over_the_bus(connection, directive, "RESULT", status="SUCCEEDED")


def test_a_job_runs_through_and_a_sigterm_leaves_nothing_running(
    shell: Shell, tmp_path: Path
) -> None:
    with running(tmp_path, *TEMPORAL, "--temporal-ui-port", "0") as plane:
        shell.export(LUCIUS_URL=plane.url)
        job_id = submit(shell, "acme")
        play(plane.connection)
        assert state_of(shell, job_id) == "SUCCEEDED"
        ui = re.search(r"its web pages are at (http://127\.0\.0\.1:\d+)", plane.stderr())
        assert ui, plane.stderr()
        assert httpx.get(ui[1], follow_redirects=True, timeout=PROCESS_DEADLINE).status_code == 200
        assert "server: temporal" in shell("doctor").out
        children = servers(plane)
        assert len(children) == 2
        assert plane.stop(signal.SIGTERM) == (0, "")
        assert has_ended(children)
    assert "Traceback" not in plane.stderr()


def test_a_kill_takes_its_server_along_and_the_next_start_goes_on_where_it_was(
    shell: Shell, tmp_path: Path
) -> None:
    with running(tmp_path, *TEMPORAL) as plane:
        shell.export(LUCIUS_URL=plane.url)
        job_id = submit(shell, "acme")
        first = next_directive(plane.connection, "acme", "ocr")
        children = servers(plane)
        plane.process.send_signal(signal.SIGKILL)
        plane.process.wait(timeout=PROCESS_DEADLINE)
    with running(tmp_path, *TEMPORAL) as plane:  # at once: its file is still held for a moment
        until_ended(children)  # they have let go of the file, which is not yet their end
        shell.export(LUCIUS_URL=plane.url)
        answer_over_the_bus(plane.connection, first, "RESULT", status="SUCCEEDED")
        second = next_directive(plane.connection, "acme", "embedding")
        answer_over_the_bus(plane.connection, second, "RESULT", status="SUCCEEDED")
        assert state_of(shell, job_id) == "SUCCEEDED"


def test_a_server_that_ends_by_itself_is_started_again(shell: Shell, tmp_path: Path) -> None:
    with running(tmp_path, *TEMPORAL) as plane:
        shell.export(LUCIUS_URL=plane.url)
        children = servers(plane)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        job_id = submit(shell, "acme")
        play(plane.connection)
        assert state_of(shell, job_id) == "SUCCEEDED"
        assert "dev_server.ended" in plane.stderr()
        assert not set(servers(plane)) & set(children)


def test_each_engine_drives_its_own_jobs_after_a_change(shell: Shell, tmp_path: Path) -> None:
    with running(tmp_path, *UP, LUCIUS_REPLY_VIA="bus") as plane:
        shell.export(LUCIUS_URL=plane.url)
        of_ledger = submit(shell, "acme")
        assert plane.stop(signal.SIGTERM) == (0, "")
    with running(tmp_path, *TEMPORAL) as plane:
        shell.export(LUCIUS_URL=plane.url)
        of_temporal = submit(shell, "globex")
        play(plane.connection)
        assert state_of(shell, of_ledger) == "SUCCEEDED"
        next_directive(plane.connection, "globex", "ocr")
        assert plane.stop(signal.SIGTERM) == (0, "")
    with running(tmp_path, *UP, "--engine", "ledger") as plane:
        shell.export(LUCIUS_URL=plane.url)
        assert shell("jobs", "show", of_temporal, "--json").json["state"] == "DISPATCHING"
        told = shell("jobs", "cancel", of_temporal)
        assert told.code == 3
        assert "UNAVAILABLE" in told.err
        assert "LUCIUS_TEMPORAL_ENABLED" in told.err


def test_a_port_of_temporal_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = refused(tmp_path, *TEMPORAL, "--temporal-port", str(port))
    assert (code, out) == (3, "")
    assert f"port {port}, of the Temporal server, is taken" in err
    assert "--temporal-port" in err
