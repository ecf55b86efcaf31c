"""One process per role: the API, the reconciler and the replies, on one ledger and one bus."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.cli.service import answer_over_http, answer_over_the_bus, next_directive
from tests.cli.shell import Shell
from tests.cli.test_bus import RunningBus, running_bus
from tests.cli.test_service import SERVICES, state_of
from tests.cli.test_up import Plane, running, submit
from tests.runner.deadlines import PROCESS_DEADLINE

pytestmark = pytest.mark.check

APPLIED = True
KEYS = {"LUCIUS_CALLBACK_KEYS": "k" * 32}


@contextmanager
def deployed(
    tmp_path: Path, is_applied: bool = False, /, **environ: str
) -> Iterator[tuple[RunningBus, dict[str, Plane]]]:
    """The API first: the others must know where services find it. `is_applied`: an operator has
    made the topology, so that no role finds it incomplete."""
    with ExitStack() as stack:
        bus = stack.enter_context(running_bus(folder_in(tmp_path, "bus"), "--data", "data"))
        shared = {
            "LUCIUS_PORT": "0",
            "LUCIUS_SERVICEBUS_CONNECTION": bus.connection(),
            "LUCIUS_DATA_DIR": str(tmp_path / "data"),
            **environ,
        }
        if is_applied:
            apply_topology(shared)
        roles: dict[str, Plane] = {}
        for role in ("api", "reconciler", "replies"):
            folder = folder_in(tmp_path, role)
            roles[role] = stack.enter_context(running(folder, "serve", role, **shared))
            shared["LUCIUS_CALLBACK_BASE_URL"] = roles["api"].url
        yield bus, roles


def apply_topology(environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "lucius_cli", "topology", "apply"]
    subprocess.run(command, env={**os.environ, **environ}, check=True, capture_output=True)


def folder_in(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


def test_a_job_runs_through_three_processes_on_sqlite(shell: Shell, tmp_path: Path) -> None:
    with deployed(tmp_path, APPLIED) as (bus, roles):
        shell.export(LUCIUS_URL=roles["api"].url)
        job_id = submit(shell, "acme")
        for service in SERVICES:
            directive = next_directive(bus.connection(), "acme", service)
            answer_over_http(directive, "ACK", status="ACKED")
            answer_over_http(directive, "RESULT", status="SUCCEEDED")
        assert state_of(shell, job_id) == "SUCCEEDED"
        check_health(bus, roles["reconciler"], "artifact catalogue", "artifact store")
        check_health(bus, roles["replies"])
        for plane in roles.values():
            assert plane.stop(signal.SIGTERM) == (0, "")
            assert "Traceback" not in plane.stderr()
            assert "SharedAccessKey" not in plane.stderr()


def check_health(bus: RunningBus, plane: Plane, *keeps: str) -> None:
    assert plane.bus == bus.address
    with httpx.Client(base_url=plane.url, timeout=PROCESS_DEADLINE) as http:
        assert http.get("/healthz/live").json() == {"status": "live"}
        ready = http.get("/healthz/ready").json()
        assert ready["status"] == "ready", ready
        assert [check["name"] for check in ready["checks"]] == [
            "ledger",
            "bus",
            "topology",
            *keeps,
            "protocols",
        ]
        assert "lucius_inflight" in http.get("/metrics").text
        assert http.get("/v1/jobs").status_code == 404
        assert http.get("/openapi.json").status_code == 404
        assert http.get("/healthz/live", headers={"Host": "evil.example"}).status_code == 403


def test_a_job_runs_through_three_processes_on_postgres(
    shell: Shell, tmp_path: Path, postgres_uri: str
) -> None:
    environ = {
        "LUCIUS_STORAGE_BACKEND": "postgres",
        "LUCIUS_DATABASE_URL": postgres_uri,
        "LUCIUS_REPLY_VIA": "bus",
    }
    with deployed(tmp_path, **environ, **KEYS) as (bus, roles):
        shell.export(LUCIUS_URL=roles["api"].url)
        job_id = submit(shell, "acme")
        for service in SERVICES:
            directive = next_directive(bus.connection(), "acme", service)
            answer_over_the_bus(bus.connection(), directive, "ACK", status="ACKED")
            answer_over_the_bus(bus.connection(), directive, "RESULT", status="SUCCEEDED")
        assert state_of(shell, job_id) == "SUCCEEDED"


def until_ready(http: httpx.Client) -> None:
    """The first answers wait for a look at the topology, each for as long as a probe may take."""
    deadline = time.monotonic() + PROCESS_DEADLINE
    while (answer := http.get("/healthz/ready", timeout=PROCESS_DEADLINE)).status_code != 200:
        assert time.monotonic() < deadline, answer.text


def test_ready_names_a_bus_that_is_away(tmp_path: Path) -> None:
    with (
        deployed(tmp_path, APPLIED) as (bus, roles),
        httpx.Client(base_url=roles["replies"].url, timeout=PROCESS_DEADLINE) as http,
    ):
        until_ready(http)
        bus.process.kill()
        bus.process.wait()
        ready = http.get("/healthz/ready")
        assert ready.status_code == 503
        assert [check["name"] for check in ready.json()["checks"] if not check["ok"]] == ["bus"]


def test_metrics_are_for_those_who_may_read_them(shell: Shell, tmp_path: Path) -> None:
    with deployed(tmp_path, LUCIUS_AUTH="on", **KEYS) as (_, roles):
        url = roles["reconciler"].url
        assert httpx.get(f"{url}/healthz/live", timeout=PROCESS_DEADLINE).status_code == 200
        assert httpx.get(f"{url}/metrics", timeout=PROCESS_DEADLINE).status_code == 401
