"""`lucius up` and `lucius serve`: a real control plane in a process of its own."""

import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.runner.deadlines import PROCESS_DEADLINE

ENVELOPE = {
    "tenant_id": "acme",
    "request_type": "OCR→EMBEDDING",
    "input_ref": {"uri": "az://inbox/a.pdf"},
    "output_ref": {"uri": "az://outbox/a.json"},
    "payload": {},
    "schema_version": "1",
}
READY = re.compile(r"ready (?:api|health)=(http://127\.0\.0\.1:\d+) bus=(\S+)\n")


class Plane:
    """A control plane, and where it is."""

    def __init__(self, process: subprocess.Popen[str], url: str, bus: str, folder: Path) -> None:
        self.process = process
        self.url = url
        self.bus = bus
        self.folder = folder

    @property
    def connection(self) -> str:
        """What a service of this machine is given."""
        (line,) = [line for line in self.stderr().splitlines() if "Endpoint=" in line]
        return line[line.index("Endpoint=") :]

    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    def stop(self, number: signal.Signals) -> tuple[int, str]:
        """The exit code, and what stdout got besides its first line."""
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=PROCESS_DEADLINE)
        return self.process.returncode, out


def start(folder: Path, *arguments: str, **environ: str) -> subprocess.Popen[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("LUCIUS_")}
    with (folder / "stderr").open("w") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "lucius_cli", *arguments],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=folder,
            env={**inherited, "LUCIUS_BUS_PORT": "0", **environ},
        )


def refused(folder: Path, *arguments: str, **environ: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a start that must fail."""
    with start(folder, *arguments, **environ) as process:
        out, _ = process.communicate(timeout=PROCESS_DEADLINE)
    return process.returncode, out, (folder / "stderr").read_text()


def first_line(process: subprocess.Popen[str], folder: Path) -> str:
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        assert selector.select(PROCESS_DEADLINE), (folder / "stderr").read_text()
    return process.stdout.readline()


@contextmanager
def running(folder: Path, *arguments: str, **environ: str) -> Iterator[Plane]:
    process = start(folder, *arguments, **environ)
    try:
        line = first_line(process, folder)
        ready = READY.fullmatch(line)
        assert ready, line + (folder / "stderr").read_text()
        yield Plane(process, ready[1], ready[2], folder)
    finally:
        process.kill()
        process.communicate(timeout=PROCESS_DEADLINE)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """One for all tests that leave it running."""
    with running(tmp_path_factory.mktemp("plane"), "up", "--port", "0", "--data", "data") as made:
        yield made


@pytest.fixture
def client(plane: Plane, shell: Shell) -> Shell:
    shell.export(LUCIUS_URL=plane.url)
    return shell


def submit(client: Shell, tenant: str) -> str:
    client.type(json.dumps({**ENVELOPE, "tenant_id": tenant}))
    run = client("submit", "-")
    assert run.code == 0, run.err
    return run.out.strip()


def test_up_tells_people_on_stderr_what_runs(plane: Plane) -> None:
    told = plane.stderr()
    assert plane.url in told
    assert str(plane.folder / "data") in told
    assert "off: whoever reaches this address may do everything" in told
    assert re.fullmatch(r"sb://127\.0\.0\.1:\d+", plane.bus)
    assert plane.connection == (
        f"Endpoint={plane.bus};SharedAccessKeyName=local;SharedAccessKey=local;"
        "UseDevelopmentEmulator=true;"
    )


def test_a_job_can_be_submitted_read_and_cancelled(client: Shell) -> None:
    job_id = submit(client, "acme")
    shown = client("jobs", "show", job_id, "--json").json
    assert (shown["jobId"], shown["tenant_id"]) == (job_id, "acme")
    assert [step["step_type"] for step in shown["steps"]] == ["OCR", "EMBEDDING"]
    listed = client("jobs", "list", "--tenant", "acme", "--type", "OCR→EMBEDDING", "--json").json
    assert [item["jobId"] for item in listed["items"]] == [job_id]
    assert client("jobs", "cancel", job_id).code == 0
    assert client("jobs", "show", job_id, "--json").json["state"] in ("CANCELLING", "CANCELLED")
    assert client("dead-letters").code == 0


def test_a_job_can_be_paused_and_resumed_and_not_redriven(client: Shell) -> None:
    job_id = submit(client, "globex")
    assert client("jobs", "pause", job_id).out.split()[1] in ("PAUSING", "PAUSED")
    assert client("jobs", "resume", job_id).code == 0
    run = client("jobs", "redrive", job_id)
    assert (run.code, run.out) == (1, "")
    assert "STATE_CONFLICT" in run.err


def test_a_request_that_breaks_the_contract_is_refused_with_pointers(client: Shell) -> None:
    client.type(json.dumps({**ENVELOPE, "payload": {"ocr": {"dpi": 5}}}))
    run = client("submit", "-")
    assert (run.code, run.out) == (1, "")
    assert "PAYLOAD_INVALID" in run.err
    assert "/payload/ocr/dpi: " in run.err


def test_a_doctor_finds_the_server_well(client: Shell) -> None:
    run = client("doctor")
    assert run.code == 0, run.out


def test_a_sigint_ends_it_with_0(tmp_path: Path) -> None:
    with running(tmp_path, "up", "--port", "0") as plane:
        assert plane.stop(signal.SIGINT) == (0, "")
    assert "Traceback" not in plane.stderr()


def test_jobs_survive_a_sigterm_and_a_new_start(shell: Shell, tmp_path: Path) -> None:
    with running(tmp_path, "up", "--port", "0", "--data", "data") as plane:
        shell.export(LUCIUS_URL=plane.url)
        job_id = submit(shell, "acme")
        assert plane.stop(signal.SIGTERM) == (0, "")
    with running(tmp_path, "up", LUCIUS_PORT="0", LUCIUS_DATA_DIR="data") as plane:
        shell.export(LUCIUS_URL=plane.url)
        assert shell("jobs", "show", job_id).code == 0


@pytest.mark.check
def test_the_api_alone_is_a_role(shell: Shell, tmp_path: Path) -> None:
    with running(tmp_path, "serve", "api", LUCIUS_PORT="0") as plane:
        assert plane.bus == "none"
        shell.export(LUCIUS_URL=plane.url)
        assert submit(shell, "acme").startswith("job_")


@pytest.mark.check
def test_a_key_opens_a_server_that_wants_one(shell: Shell, tmp_path: Path) -> None:
    shell.export(LUCIUS_DATA_DIR=str(tmp_path / "data"))
    key = shell("keys", "create", "--name", "ci", "--tenant", "acme", "--role", "submit").out
    (tmp_path / "defaults.yaml").write_text(
        "input_places: [az://inbox/]\noutput_places: [az://outbox/]\n"
    )
    given = {"LUCIUS_AUTH": "on", "LUCIUS_PROTOCOLS_DIR": str(tmp_path)}
    with running(tmp_path, "up", "--port", "0", "--data", "data", **given) as plane:
        shell.export(LUCIUS_URL=plane.url)
        assert "set LUCIUS_API_KEY" in shell("jobs", "list").err
        shell.export(LUCIUS_API_KEY=key)
        job_id = submit(shell, "acme")
        refused = shell("jobs", "cancel", job_id)
        assert refused.code == 1
        assert "cancel needs the role operate or admin" in refused.err


@pytest.mark.check
def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = refused(tmp_path, "up", "--port", str(port))
    assert (code, out) == (3, "")
    assert err == f"port {port} is taken: choose another with --port or LUCIUS_PORT\n"


@pytest.mark.check
def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, out, err = refused(tmp_path, "up", "--port", "0", "--data", "file/data")
    assert (code, out) == (3, "")
    assert "file/data" in err
    assert "Traceback" not in err


@pytest.mark.check
def test_a_port_of_the_bus_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = refused(tmp_path, "up", "--port", "0", "--bus-port", str(port))
    assert (code, out) == (3, "")
    assert err.endswith(
        f"port {port} is taken: choose another with --bus-port or LUCIUS_BUS_PORT\n"
    )


@pytest.mark.check
def test_a_data_folder_belongs_to_one_process(tmp_path: Path) -> None:
    with running(tmp_path, "up", "--port", "0", "--data", "data") as plane:
        other = tmp_path / "other"
        other.mkdir()
        code, out, err = refused(other, "up", "--port", "0", "--data", str(tmp_path / "data"))
        assert (code, out) == (3, "")
        assert f"in use by process {plane.process.pid}" in err


@pytest.mark.check
@pytest.mark.parametrize("role", ["reconciler", "replies"])
def test_a_role_that_needs_a_shared_bus_says_so(tmp_path: Path, role: str) -> None:
    code, out, err = refused(tmp_path, "serve", role)
    assert (code, out) == (2, "")
    assert "LUCIUS_SERVICEBUS_CONNECTION" in err
    assert "lucius up" in err


@pytest.mark.check
def test_a_role_that_needs_a_shared_ledger_says_so(tmp_path: Path) -> None:
    environ = {"LUCIUS_SERVICEBUS_NAMESPACE": "bus.example", "LUCIUS_STORAGE_BACKEND": "memory"}
    code, out, err = refused(tmp_path, "serve", "replies", **environ)
    assert (code, out) == (2, "")
    assert "LUCIUS_STORAGE_BACKEND" in err


@pytest.mark.check
def test_who_sends_directives_must_know_where_they_are_answered(tmp_path: Path) -> None:
    environ = {"LUCIUS_SERVICEBUS_NAMESPACE": "bus.example"}
    code, out, err = refused(tmp_path, "serve", "reconciler", **environ)
    assert (code, out) == (2, "")
    assert "LUCIUS_CALLBACK_BASE_URL" in err


@pytest.mark.check
def test_a_bus_that_the_environment_names_has_no_port_of_ours(tmp_path: Path) -> None:
    environ = {"LUCIUS_SERVICEBUS_NAMESPACE": "bus.example"}
    code, out, err = refused(tmp_path, "up", "--bus-port", "0", **environ)
    assert (code, out) == (2, "")
    assert "--bus-port" in err


@pytest.mark.check
def test_ports_of_temporal_are_for_a_server_of_our_own(shell: Shell) -> None:
    run = shell("up", "--temporal-ui-port", "0")
    assert (run.code, run.out) == (2, "")
    assert "--engine temporal" in run.err
    shell.export(LUCIUS_TEMPORAL_ADDRESS="temporal.example:7233")
    run = shell("up", "--engine", "temporal", "--temporal-port", "0")
    assert (run.code, run.out) == (2, "")
    assert "the one that the environment names" in run.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "everything"],
        ["serve"],
        ["up", "--engine", "steam"],
        ["up", "--port", "65536"],
        ["up", "--bus-port", "65536"],
        ["up", "--temporal-port", "65536"],
        ["demo", "--engine", "steam"],
    ],
)
def test_what_does_not_exist_is_wrong_usage(shell: Shell, arguments: list[str]) -> None:
    run = shell(*arguments)
    assert (run.code, run.out) == (2, "")
