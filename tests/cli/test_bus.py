"""`lucius bus up`: the emulator in a process of its own, and clients of Azure."""

import json
import re
import signal
import socket
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusError

from tests.cli.shell import Shell
from tests.cli.test_up import first_line, refused, running, start
from tests.runner.deadlines import PROCESS_DEADLINE

pytestmark = pytest.mark.check

READY = re.compile(r"ready bus=(sb://127\.0\.0\.1:\d+)\n")
CONFIG = {
    "UserConfig": {
        "Namespaces": [
            {
                "Name": "sbemulatorns",
                "Queues": [{"Name": "orders", "Properties": {"MaxDeliveryCount": 3}}],
                "Topics": [],
            }
        ],
        "Logging": {"Type": "File"},
    }
}


class RunningBus(NamedTuple):
    process: subprocess.Popen[str]
    address: str
    folder: Path

    def connection(self, name: str = "local", key: str = "local") -> str:
        return (
            f"Endpoint={self.address};SharedAccessKeyName={name};SharedAccessKey={key};"
            "UseDevelopmentEmulator=true;"
        )

    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()


@contextmanager
def running_bus(folder: Path, *arguments: str, **environ: str) -> Iterator[RunningBus]:
    process = start(folder, "bus", "up", "--port", "0", *arguments, **environ)
    try:
        line = first_line(process, folder)
        ready = READY.fullmatch(line)
        assert ready, line + (folder / "stderr").read_text()
        yield RunningBus(process, ready[1], folder)
    finally:
        process.kill()
        process.communicate(timeout=PROCESS_DEADLINE)


def send(connection: str, queue: str, text: str) -> None:
    with (
        ServiceBusClient.from_connection_string(connection, retry_total=0) as client,
        client.get_queue_sender(queue) as sender,
    ):
        sender.send_messages(ServiceBusMessage(text))


def receive(connection: str, queue: str) -> str:
    with (
        ServiceBusClient.from_connection_string(connection) as client,
        client.get_queue_receiver(queue) as receiver,
    ):
        (message,) = receiver.receive_messages(max_wait_time=PROCESS_DEADLINE)
        receiver.complete_message(message)
        return str(message)


def declared(folder: Path) -> str:
    path = folder / "Config.json"
    path.write_text(json.dumps(CONFIG))
    return str(path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_tells_how_to_connect_and_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with running_bus(tmp_path) as bus:
        assert bus.stderr() == f"services connect with {bus.connection()}\n"
        bus.process.send_signal(number)
        out, _ = bus.process.communicate(timeout=PROCESS_DEADLINE)
        assert (bus.process.returncode, out) == (0, "")
        assert "Traceback" not in bus.stderr()


def test_what_a_file_declares_and_what_was_sent_survives_a_kill(tmp_path: Path) -> None:
    with running_bus(tmp_path, "--config", declared(tmp_path), "--data", "bus") as bus:
        send(bus.connection(), "orders", "first")
        bus.process.send_signal(signal.SIGKILL)
        bus.process.wait(timeout=PROCESS_DEADLINE)
    assert (tmp_path / "bus").stat().st_mode & 0o777 == 0o700
    with running_bus(tmp_path, "--data", "bus") as bus:
        assert receive(bus.connection(), "orders") == "first"


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    with running_bus(tmp_path, "--config", declared(tmp_path)) as bus:
        send(bus.connection(), "orders", "first")
    with running_bus(tmp_path) as bus, pytest.raises(ServiceBusError, match="orders"):
        send(bus.connection(), "orders", "second")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Config.json", "stderr"]


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        (["--key", "root=hunter2==", "--key", "other=x"], {}),
        ([], {"LUCIUS_BUS_KEYS": "root=hunter2==, other=x"}),
    ],
)
def test_with_keys_only_those_who_know_one_may_connect(
    tmp_path: Path, arguments: list[str], environ: dict[str, str]
) -> None:
    config = declared(tmp_path)
    with running_bus(tmp_path, "--config", config, *arguments, **environ) as bus:
        assert "hunter2" not in bus.stderr()
        assert "SharedAccessKeyName=root;SharedAccessKey=***;" in bus.stderr()
        send(bus.connection("root", "hunter2=="), "orders", "first")
        with pytest.raises(ServiceBusAuthenticationError):
            send(bus.connection("root", "wrong"), "orders", "second")


def test_without_keys_only_this_machine_may_connect(tmp_path: Path) -> None:
    everywhere = "0.0.0.0"  # noqa: S104
    code, out, err = refused(tmp_path, "bus", "up", "--port", "0", "--host", everywhere)
    assert (code, out) == (2, "")
    assert "--key NAME=KEY" in err
    assert "LUCIUS_BUS_KEYS" in err


@pytest.mark.parametrize("key", ["hunter2", "=hunter2", "root="])
def test_a_key_has_a_name_and_is_not_shown(shell: Shell, key: str) -> None:
    run = shell("bus", "up", "--key", key)
    assert (run.code, run.out) == (2, "")
    assert "NAME=KEY" in run.err
    assert "hunter2" not in run.err


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert refused(tmp_path, "bus", "up", "--port", port) == (
            3,
            "",
            f"port {port} is taken: choose another with --port\n",
        )


def test_a_folder_has_one_process(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with running_bus(tmp_path, "--data", "bus") as bus:
        folder = str(tmp_path / "bus")
        code, out, err = refused(other, "bus", "up", "--port", "0", "--data", folder)
        assert (code, out) == (3, "")
        assert f"in use by process {bus.process.pid}" in err


def test_a_file_that_declares_nonsense_is_refused_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "Config.json").write_text(json.dumps({"UserConfig": {"Namespaces": 3}}))
    code, out, err = refused(tmp_path, "bus", "up", "--port", "0", "--config", "Config.json")
    assert (code, out) == (3, "")
    assert "Namespaces" in err
    assert "Traceback" not in err


def test_the_connection_of_services_is_that_of_the_bus_inside(shell: Shell, tmp_path: Path) -> None:
    shell.export(LUCIUS_DATA_DIR=str(tmp_path), LUCIUS_BUS_PORT="1")
    run = shell("bus", "connection", "--bus-port", "4711")
    assert (run.code, run.err) == (0, "")
    assert run.out == (
        "Endpoint=sb://127.0.0.1:4711;SharedAccessKeyName=local;SharedAccessKey=local;"
        "UseDevelopmentEmulator=true;\n"
    )


def test_with_auth_it_holds_the_key_that_the_folder_keeps(shell: Shell, tmp_path: Path) -> None:
    key = bytes(range(32))
    (tmp_path / "bus.key").write_bytes(key)
    shell.export(LUCIUS_AUTH="on")
    run = shell("bus", "connection", "--data", str(tmp_path))
    assert f"SharedAccessKeyName=services;SharedAccessKey={b64encode(key).decode()};" in run.out


@pytest.mark.parametrize(
    ("environ", "code", "said"),
    [
        ({"LUCIUS_AUTH": "on"}, 3, "start `lucius up` first"),
        ({"LUCIUS_BUS_PORT": "0"}, 2, "--bus-port"),
        ({"LUCIUS_SERVICEBUS_NAMESPACE": "bus.servicebus.windows.net"}, 2, "not inside"),
    ],
)
def test_without_what_it_needs_it_says_what_to_do(
    shell: Shell, tmp_path: Path, environ: dict[str, str], code: int, said: str
) -> None:
    shell.export(LUCIUS_DATA_DIR=str(tmp_path), **environ)
    run = shell("bus", "connection")
    assert (run.code, run.out) == (code, "")
    assert said in run.err
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_key_is_told_and_kept(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "bus.key").write_bytes(b"short")
    run = shell("bus", "connection", "--data", str(tmp_path))
    assert run.code == 3
    assert "holds no key for the bus" in run.err


def test_up_with_auth_says_where_the_key_is_and_never_the_key(shell: Shell, tmp_path: Path) -> None:
    with running(tmp_path, "up", "--port", "0", "--data", "data", LUCIUS_AUTH="on") as plane:
        told = plane.stderr()
        port = plane.bus.rpartition(":")[2]
        command = f"lucius bus connection --data {tmp_path / 'data'} --bus-port {port}"
        assert command in told
        connection = shell(*command.split()[1:]).out.strip()
        with (
            ServiceBusClient.from_connection_string(connection, retry_total=0) as client,
            client.get_subscription_receiver("global-bus-p0", "ocr") as receiver,
        ):
            assert receiver.peek_messages(1) == []
        key = connection.partition("SharedAccessKey=")[2].partition(";")[0]
        assert len(key) > 40
        assert key not in plane.stderr()


def test_one_client_too_many_is_refused(tmp_path: Path) -> None:
    with (
        running_bus(tmp_path, "--max-connections", "1") as bus,
        socket.create_connection(("127.0.0.1", int(bus.address.rpartition(":")[2]))),
        ServiceBusClient.from_connection_string(bus.connection(), retry_total=0) as client,
        pytest.raises(ServiceBusError, match="the emulator has 1 connections"),
        client.get_queue_sender("orders"),
    ):
        pass
