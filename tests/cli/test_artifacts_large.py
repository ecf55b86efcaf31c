"""A file of two GiB whose upload is killed in the middle: memory stays small on both sides."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

MIB = 1024**2
SIZE = 2048 * MIB
CLIENT_MIB, SERVER_MIB = 100, 250
ENVIRON = {**os.environ, "LUCIUS_LOG_LEVEL": "ERROR"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    command = ["up", "--port", "0", "--bus-port", "0", "--data", str(tmp_path / "data")]
    process = subprocess.Popen(
        [sys.executable, "-m", "lucius_cli", *command],
        env=ENVIRON,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    yield process
    process.terminate()
    process.communicate()


def _address(server: "subprocess.Popen[str]") -> str:
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("ready "):
            return next(word[4:] for word in line.split() if word.startswith("api="))
    raise AssertionError("the server did not start")


def _put(folder: Path, url: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "lucius_cli", "artifacts", "put", "--tenant", "acme", "large.bin"],
        cwd=folder,
        env={**ENVIRON, "LUCIUS_URL": url, "XDG_STATE_HOME": str(folder / "state")},
        stdout=subprocess.PIPE,
        text=True,
    )


def _peak_mib(pid: int) -> float:
    """Of a process that may have ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return max(
        (int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), default=0
    )


def _parts(folder: Path) -> int:
    return sum(each.name.isdigit() for each in (folder / "data" / "artifacts").rglob("*"))


def _write(path: Path) -> None:
    block = os.urandom(MIB)
    with path.open("wb") as file:
        for number in range(SIZE // MIB):
            file.write(number.to_bytes(8) + block[8:])


def test_a_killed_upload_of_two_gib_is_resumed_in_bounded_memory(
    tmp_path: Path, server: "subprocess.Popen[str]"
) -> None:
    _write(tmp_path / "large.bin")
    url = _address(server)
    first = _put(tmp_path, url)
    while _parts(tmp_path) < 20 and first.poll() is None:
        pass
    assert _peak_mib(first.pid) < CLIENT_MIB
    first.kill()
    first.communicate()
    brought = _parts(tmp_path)
    second, peak = _put(tmp_path, url), 0.0
    while second.poll() is None:
        peak = max(peak, _peak_mib(second.pid))
    out, _ = second.communicate()
    assert second.returncode == 0
    assert out.startswith("artifact://blobs/")
    assert brought >= 20
    assert peak < CLIENT_MIB
    assert _peak_mib(server.pid) < SERVER_MIB
