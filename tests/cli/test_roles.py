"""One process per role: the API, the reconciler and the replies, on one ledger and one bus."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from tests.cli.service import answer_over_http, answer_over_the_bus, next_directive
from tests.cli.shell import Shell
from tests.cli.test_bus import RunningBus, running_bus
from tests.cli.test_service import SERVICES, state_of
from tests.cli.test_up import DEADLINE, Plane, running, submit

KEYS = {"LUCIUS_CALLBACK_KEYS": "k" * 32}


@contextmanager
def deployed(tmp_path: Path, **environ: str) -> Iterator[tuple[RunningBus, dict[str, Plane]]]:
    """The API first: the others must know where services find it."""
    with ExitStack() as stack:
        bus = stack.enter_context(running_bus(_folder(tmp_path, "bus"), "--data", "data"))
        shared = {
            "LUCIUS_PORT": "0",
            "LUCIUS_SERVICEBUS_CONNECTION": bus.connection(),
            "LUCIUS_DATA_DIR": str(tmp_path / "data"),
            **environ,
        }
        roles: dict[str, Plane] = {}
        for role in ("api", "reconciler", "replies"):
            folder = _folder(tmp_path, role)
            roles[role] = stack.enter_context(running(folder, "serve", role, **shared))
            shared["LUCIUS_CALLBACK_BASE_URL"] = roles["api"].url
        yield bus, roles


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


def test_a_job_runs_through_three_processes_on_sqlite(shell: Shell, tmp_path: Path) -> None:
    with deployed(tmp_path) as (bus, roles):
        shell.export(LUCIUS_URL=roles["api"].url)
        job_id = submit(shell, "acme")
        for service in SERVICES:
            directive = next_directive(bus.connection(), "acme", service)
            answer_over_http(directive, "ACK", status="ACKED")
            answer_over_http(directive, "RESULT", status="SUCCEEDED")
        assert state_of(shell, job_id) == "SUCCEEDED"
        check_health(bus, roles["reconciler"])
        check_health(bus, roles["replies"])
        for plane in roles.values():
            assert plane.stop(signal.SIGTERM) == (0, "")
            assert "Traceback" not in plane.stderr()
            assert "SharedAccessKey" not in plane.stderr()


def check_health(bus: RunningBus, plane: Plane) -> None:
    assert plane.bus == bus.address
    with httpx.Client(base_url=plane.url) as http:
        assert http.get("/healthz/live").json() == {"status": "live"}
        ready = http.get("/healthz/ready").json()
        assert ready["status"] == "ready", ready
        assert [check["name"] for check in ready["checks"]] == [
            "ledger",
            "bus",
            "topology",
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
    """It is another process that makes the subscriptions."""
    deadline = time.monotonic() + DEADLINE
    while http.get("/healthz/ready").status_code != 200:
        assert time.monotonic() < deadline, http.get("/healthz/ready").text
        time.sleep(0.2)


def test_ready_names_a_bus_that_is_away(tmp_path: Path) -> None:
    with deployed(tmp_path) as (bus, roles), httpx.Client(base_url=roles["replies"].url) as http:
        until_ready(http)
        bus.process.kill()
        bus.process.wait()
        ready = http.get("/healthz/ready")
        assert ready.status_code == 503
        assert [check["name"] for check in ready.json()["checks"] if not check["ok"]] == ["bus"]


def test_metrics_are_for_those_who_may_read_them(shell: Shell, tmp_path: Path) -> None:
    with deployed(tmp_path, LUCIUS_AUTH="on", **KEYS) as (_, roles):
        url = roles["reconciler"].url
        assert httpx.get(f"{url}/healthz/live").status_code == 200
        assert httpx.get(f"{url}/metrics").status_code == 401
