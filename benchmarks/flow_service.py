"""A service of the SDK that does nothing, as a process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.flow_process import Process, answers_well, free_port, python, running, wait_until

CONCURRENCY = 64


class RunningService(NamedTuple):
    process: Process
    health: str
    log: Path

    def wait(self) -> None:
        """Until it is ready."""
        wait_until(self._is_ready, self.health, pause=0.1)

    def _is_ready(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"the service ended:\n{self.log.read_text()[-4000:]}")
        return answers_well(self.health)


@contextmanager
def service(name: str, folder: Path, connection: str, workspace: Path) -> Iterator[RunningService]:
    """Its dedup store is a SQLite file in the folder, as is its log."""
    port = free_port()
    environ = {
        "LUCIUS_SERVICE": name,
        "LUCIUS_SERVICEBUS_CONNECTION": connection,
        "LUCIUS_DEDUP_STORE": f"sqlite://{folder / name}.db",
        "LUCIUS_WORKSPACE_ROOT": str(workspace),
        "LUCIUS_CONCURRENCY": str(CONCURRENCY),
        "LUCIUS_HEALTH_PORT": str(port),
        "LUCIUS_LOG_LEVEL": "ERROR",
    }
    command = python("-m", "benchmarks.noop_service")
    log = folder / f"{name}.log"
    with running(command, log, environ) as process:
        yield RunningService(process, f"http://127.0.0.1:{port}/healthz/ready", log)


def connection_of(bus: str) -> str:
    """An emulator without keys takes any, but the client wants one."""
    key = "SharedAccessKeyName=local;SharedAccessKey=local"
    return f"Endpoint={bus};{key};UseDevelopmentEmulator=true;"
