"""One process per role where Temporal drives the jobs: the API, the invoker and a worker."""

import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.cli.shell import Shell
from tests.cli.test_bus import RunningBus, running_bus
from tests.cli.test_roles import apply_topology, folder_in
from tests.cli.test_service import state_of
from tests.cli.test_temporal import play
from tests.cli.test_up import Plane, refused, running, submit
from tests.components import require
from tests.runner.deadlines import PROCESS_DEADLINE
from tests.temporal_server import TemporalServer, is_available, temporal_server

pytestmark = pytest.mark.check


class Deployment:
    def __init__(self, bus: RunningBus, server: TemporalServer, environ: dict[str, str]) -> None:
        self.bus = bus
        self.server = server
        self.environ = environ
        self.roles: dict[str, Plane] = {}

    def ready(self, role: str) -> tuple[int, dict[str, str]]:
        """The status, and what is said of each thing."""
        answer = httpx.get(f"{self.roles[role].url}/healthz/ready", timeout=PROCESS_DEADLINE)
        return answer.status_code, {c["name"]: c["detail"] for c in answer.json()["checks"]}


@contextmanager
def deployed(tmp_path: Path) -> Iterator[Deployment]:
    """The invoker first: the others must know where it is."""
    require(is_available(), "the program `temporal`")
    with ExitStack() as stack:
        bus = stack.enter_context(running_bus(folder_in(tmp_path, "bus"), "--data", "data"))
        server = stack.enter_context(temporal_server())
        environ = {
            "LUCIUS_PORT": "0",
            "LUCIUS_SERVICEBUS_CONNECTION": bus.connection(),
            "LUCIUS_DATA_DIR": str(tmp_path / "data"),
            "LUCIUS_TEMPORAL_ENABLED": "on",
            "LUCIUS_TEMPORAL_ADDRESS": server.address,
        }
        apply_topology(environ)
        deployment = Deployment(bus, server, environ)
        for role in ("invoker", "api", "worker"):
            folder = folder_in(tmp_path, role)
            plane = stack.enter_context(running(folder, "serve", role, **environ))
            deployment.roles[role] = plane
            environ.setdefault("LUCIUS_INVOKER_URL", plane.url)
        yield deployment


def test_a_job_runs_through_three_processes_and_nothing_is_lost_while_temporal_is_away(
    shell: Shell, tmp_path: Path
) -> None:
    with deployed(tmp_path) as made:
        roles = made.roles
        shell.export(LUCIUS_URL=roles["api"].url, **made.environ)
        job_id = submit(shell, "acme")
        play(made.bus.connection())
        assert state_of(shell, job_id) == "SUCCEEDED"
        assert made.ready("worker") == (200, {"temporal": "answers", "invoker": "answers"})
        assert [*made.ready("invoker")[1]] == [
            "ledger",
            "bus",
            "topology",
            "temporal",
            "artifact catalogue",
            "artifact store",
            "protocols",
        ]
        check_addresses(roles)

        made.server.kill()
        assert shell("jobs", "show", job_id).code == 0
        waiting = submit(shell, "globex")
        assert shell("jobs", "show", waiting, "--json").json["state"] == "QUEUED"
        status, said = made.ready("api")
        assert (status, said["temporal"].partition(":")[0]) == (
            200,
            "away, so that the jobs that it drives wait",
        )
        assert made.ready("worker")[0] == 503
        run = shell("doctor")
        assert run.code == 1
        assert re.search(rf" temporal +{made.server.address}: ", run.out)
        assert "start it, or mend LUCIUS_TEMPORAL_ADDRESS" in run.out

        assert shell("jobs", "cancel", waiting).code == 0
        assert shell("jobs", "show", waiting, "--json").json["state"] == "CANCELLED"
        for plane in roles.values():
            assert plane.stop(signal.SIGTERM) == (0, ""), plane.stderr()
            assert "Traceback" not in plane.stderr()


def check_addresses(roles: dict[str, Plane]) -> None:
    """What each process answers, and what it does not know."""
    callback, asked = "/v1/callbacks/ack", "/v1/internal/publish"
    found = {
        role: (
            httpx.get(f"{plane.url}/v1/jobs", timeout=PROCESS_DEADLINE).status_code,
            httpx.post(f"{plane.url}{callback}", json={}, timeout=PROCESS_DEADLINE).status_code,
            httpx.post(f"{plane.url}{asked}", json={}, timeout=PROCESS_DEADLINE).status_code,
        )
        for role, plane in roles.items()
    }
    assert found == {"api": (200, 400, 404), "invoker": (404, 400, 401), "worker": (404, 404, 404)}


def test_a_role_that_lacks_something_is_wrong_usage(tmp_path: Path) -> None:
    code, out, err = refused(tmp_path, "serve", "worker")
    assert (code, out) == (2, "")
    assert "LUCIUS_INVOKER_URL" in err
