"""An upload whose process is killed or interrupted in the middle, and the command that goes on."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.artifacts.client.gate import Asked
from tests.artifacts.client.quick import pattern
from tests.artifacts.client.server import KEY, TENANT, Server, running_server
from tests.cli.shell import LUCIUS, Shell

pytestmark = pytest.mark.check

SOON = 35  # seconds: less than a client waits for an answer
PART = 256 * 1024
COUNT = 32
THREADS = 4
PASSING = 10


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with (
        TemporaryDirectory() as folder,
        running_server(Path(folder), part_size=PART) as server,
    ):
        yield server


class Put:
    """A process that has brought some parts and cannot go on."""

    def __init__(self, server: Server, folder: Path, seed: int) -> None:
        server.forget()
        self.content = pattern(COUNT * PART, seed)
        self.path = folder / "large.bin"
        self.path.write_bytes(self.content)
        self.state = folder / "state"
        self.environ = {
            "LUCIUS_URL": server.url,
            "LUCIUS_API_KEY": KEY,
            "XDG_STATE_HOME": str(self.state),
        }
        self.words = ("artifacts", "put", str(self.path), "--tenant", TENANT)
        self._server = server
        self._passed = 0
        server.gate.hold(self._passes)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("LUCIUS_")}
        self.process = subprocess.Popen(
            [LUCIUS, *self.words],
            env={**inherited, **self.environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        server.gate.wait_for_held(THREADS)

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """Exit code and stderr."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=SOON)
        self._server.gate.open()
        self._server.gate.wait_until_idle()
        return self.process.returncode, err

    def missing(self) -> list[int]:
        (file,) = self.state.rglob("*.json")
        there = self._server.received(json.loads(file.read_text())["upload_id"])
        assert PASSING <= len(there) < COUNT
        return [number for number in range(1, COUNT + 1) if number not in there]

    def _passes(self, asked: Asked) -> bool:
        self._passed += asked.method == "PUT"
        return asked.method != "PUT" or self._passed <= PASSING


def test_what_a_killed_process_has_brought_is_not_brought_again(
    server: Server, shell: Shell, tmp_path: Path
) -> None:
    put = Put(server, tmp_path, seed=1)
    code, _ = put.end(signal.SIGKILL)
    assert code == -signal.SIGKILL
    missing, before = put.missing(), len(server.gate.asked)
    shell.export(**put.environ)
    run = shell(*put.words)
    assert run.code == 0, run.err
    assert run.out == f"artifact://blobs/{sha256(put.content).hexdigest()}\n"
    assert sorted(server.gate.parts(before)) == missing
    got = shell("artifacts", "get", run.out.strip(), "-o", "back.bin")
    assert got.code == 0, got.err
    assert Path("back.bin").read_bytes() == put.content
    assert list(put.state.rglob("*.json")) == []


def test_ctrl_c_ends_it_soon_and_says_how_to_go_on(
    server: Server, shell: Shell, tmp_path: Path
) -> None:
    put = Put(server, tmp_path, seed=2)
    code, err = put.end(signal.SIGINT)
    assert code == 130
    assert f"the same command goes on with the upload of {put.path}" in err
    assert "Traceback" not in err
    missing, before = put.missing(), len(server.gate.asked)
    shell.export(**put.environ)
    assert shell(*put.words).code == 0
    assert sorted(server.gate.parts(before)) == missing
