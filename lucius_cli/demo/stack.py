"""The control plane and the example services, as processes of this machine."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from lucius_cli.demo.child import Child
from lucius_cli.demo.places import SERVICES, Places

_START_SECONDS = 120.0
_STOP_SECONDS = 50.0
_KEYLESS = "SharedAccessKeyName=local;SharedAccessKey=local;UseDevelopmentEmulator=true;"


class Stack:
    """A context: everything is ready within it, and everything that it started has ended after it.

    `environ` is given to all processes over what is set here. A bus that it names is used in the
    place of the one inside `lucius up`.
    """

    def __init__(
        self,
        places: Places,
        data: Path,
        inputs: Path,
        *,
        port: int = 0,
        bus_port: int | None = 0,
        engine: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.data = data.resolve()
        self.workspace = self.data / "workspace"
        self.logs = self.data / "logs"
        self.services: dict[str, Child] = {}
        self.url = ""
        self._places = places
        self._inputs = inputs.resolve()
        self._environ = dict(environ or {})
        self._plane = self._control_plane(port, bus_port, engine)

    def __enter__(self) -> Self:
        self.logs.mkdir(parents=True, exist_ok=True)
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._stop()

    def restart(self, name: str) -> None:
        """A service that was killed; ready when it returns."""
        child = self.services[name]
        child.start()
        child.until_ready(_START_SECONDS)

    def _start(self) -> None:
        self._plane.start()
        ready = self._plane.until_ready(_START_SECONDS)
        self.url = ready["api"]
        connection = f"Endpoint={ready['bus']};{_KEYLESS}"
        for name in SERVICES:
            self.services[name] = self._service(name, connection)
            self.services[name].start()
        for child in self.services.values():
            child.until_ready(_START_SECONDS)

    def _stop(self) -> None:
        """Services first: what they still report, the control plane hears. Interrupted again, or
        too slow, they are killed."""
        services = list(self.services.values())
        try:
            _end(services)
            _end([self._plane])
        finally:
            for child in (*services, self._plane):
                child.kill()

    def _control_plane(self, port: int, bus_port: int | None, engine: str | None) -> Child:
        command = [sys.executable, "-m", "lucius_cli", "up", "--port", str(port)]
        command += ["--data", str(self.data)]
        command += [] if bus_port is None else ["--bus-port", str(bus_port)]
        command += [] if engine is None else ["--engine", engine]
        environ = {**_inherited(), **self._environ}
        return Child("lucius up", command, Path.cwd(), environ, self.logs / "up.log")

    def _service(self, name: str, connection: str) -> Child:
        environ = {
            **_inherited(),
            "LUCIUS_SERVICEBUS_CONNECTION": connection,
            "LUCIUS_WORKSPACE_ROOT": str(self.workspace),
            "LUCIUS_INPUT_ROOTS": str(self._inputs),
            "LUCIUS_OUTPUT_ROOTS": str(self.data / "output"),
            "LUCIUS_ARTIFACTS_URL": self.url,
            "LUCIUS_DEDUP_STORE": f"sqlite://{self.data / name}-dedup.db",
            "LUCIUS_CONCURRENCY": "2",
            "LUCIUS_HEALTH_PORT": "0",
            **self._environ,
        }
        command = [sys.executable, "-m", f"{name}_service"]
        folder = self._places.service(name)
        return Child(name, command, folder, environ, self.logs / f"{name}.log")


def _end(children: Sequence[Child]) -> None:
    for child in children:
        child.send(signal.SIGTERM)
    for child in children:
        child.ended(_STOP_SECONDS)


def _inherited() -> dict[str, str]:
    """Settings of another LUCIUS on this machine are not for this one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LUCIUS_")}
