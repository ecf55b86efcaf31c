"""A real Temporal server from a package, for tests and benchmarks."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.runner.deadlines import PROCESS_DEADLINE, seconds

_LEASH = Path(__file__).parents[1] / "lucius_orchestrator/bootstrap/leash.py"
_STOP_SECONDS = seconds(10)
_ATTRIBUTES = ("LuciusTenant", "LuciusRequestType", "LuciusState")


class TemporalServer(NamedTuple):
    address: str
    process: "subprocess.Popen[bytes]"

    def kill(self) -> None:
        """With no warning, as a machine does that fails."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def is_available() -> bool:
    return _program() is not None


@contextmanager
def temporal_server(
    db_file: Path | None = None, port: int | None = None, *, with_attributes: bool = True
) -> Iterator[TemporalServer]:
    """One that lives as long as the context, on loopback. Without a file it keeps nothing."""
    program = _program()
    assert program is not None, "ask is_available first"
    address = f"127.0.0.1:{port or free_port()}"
    process = subprocess.Popen(
        [sys.executable, _LEASH, program, *_arguments(address, db_file, with_attributes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TEMPORAL_VERSION_CHECK_DISABLED": "1"},
        start_new_session=True,
    )
    try:
        with ThreadPoolExecutor(1) as beside:  # whoever asks may be in a loop of its own
            beside.submit(asyncio.run, _answers(address, process)).result()
        yield TemporalServer(address, process)
    finally:
        _stop(process, at_once=db_file is None)


@contextmanager
def temporal_address() -> Iterator[str]:
    with temporal_server() as server:
        yield server.address


def _arguments(address: str, db_file: Path | None, with_attributes: bool) -> list[str]:
    ip, _, port = address.partition(":")
    arguments = ["server", "start-dev", "--headless", "--log-level", "error"]
    arguments += ["--ip", ip, "--port", port]
    if with_attributes:
        arguments += [f"--search-attribute={name}=Keyword" for name in _ATTRIBUTES]
    return arguments + ([] if db_file is None else ["--db-filename", str(db_file)])


def _program() -> str | None:
    beside = Path(sys.executable).parent / "temporal"
    return str(beside) if beside.exists() else shutil.which("temporal")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _answers(address: str, process: "subprocess.Popen[bytes]") -> None:
    """Returns when it serves its namespace."""
    # Here, since every test run loads this module and few need a server.
    from temporalio.service import RPCError

    from lucius_orchestrator.temporal.connection import TemporalOptions, connected

    deadline = time.monotonic() + PROCESS_DEADLINE
    while True:
        try:
            client = await connected(TemporalOptions(address))
            async for _ in client.list_workflows("", limit=1):
                pass
        except (RuntimeError, RPCError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the Temporal server did not start: {error}") from error
            await asyncio.sleep(0.05)
        else:
            return


def _stop(process: "subprocess.Popen[bytes]", *, at_once: bool) -> None:
    """At once if it keeps nothing: it would say goodbye for seconds."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(0 if at_once else _STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
