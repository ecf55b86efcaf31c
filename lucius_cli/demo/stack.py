"""The control plane and the example services, as processes of this machine."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from lucius_cli.demo.child import Child
from lucius_cli.demo.places import SERVICES, Places
from lucius_cli.environment import settings_of

if TYPE_CHECKING:
    from lucius_orchestrator.security.keys import KeyFile, NewKey

_START_SECONDS = 120.0
_STOP_SECONDS = 50.0


class Stack:
    """A context: everything is ready within it, and everything that it started has ended after it.

    `environ` is given to all processes over what is set here. A bus that it names is used in the
    place of the one inside `lucius up`. With a `tenant` auth is on, and there is an API key for it
    as long as the stack runs.
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
        tenant: str | None = None,
    ) -> None:
        self.data = data.resolve()
        self.workspace = self.data / "workspace"
        self.logs = self.data / "logs"
        self.services: dict[str, Child] = {}
        self.url = ""
        self._places = places
        self._inputs = inputs.resolve()
        self._environ = dict(environ or {})
        self._tenant = tenant
        self._key: NewKey | None = None
        self._plane = self._control_plane(port, bus_port, engine)

    def __enter__(self) -> Self:
        for folder in (self.data, self.logs):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
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

    @property
    def server(self) -> dict[str, str]:
        """The variables with which a client finds the control plane."""
        key = {} if self._key is None else {"LUCIUS_API_KEY": self._key.secret}
        return {"LUCIUS_URL": self.url, **key}

    def restart(self, name: str) -> None:
        """A service that was killed; ready when it returns."""
        child = self.services[name]
        child.start()
        child.until_ready(_START_SECONDS)

    def _start(self) -> None:
        self._plane.start()
        ready = self._plane.until_ready(_START_SECONDS)
        self.url = ready["api"]
        if self._tenant is not None:
            self._key = self._new_key(self._tenant)
        connection = self._connection(ready["bus"])
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
            if self._key is not None:
                self._keys().revoke(self._key.key_id)

    def _new_key(self, tenant: str) -> "NewKey":
        from lucius_orchestrator.security.callers import Role

        roles = frozenset({Role.SUBMIT, Role.READ})
        return self._keys().create("lucius demo", frozenset({tenant}), roles)

    def _keys(self) -> "KeyFile":
        from lucius_orchestrator.security.keys import KeyFile

        return KeyFile(self.data / "keys.json", partial(datetime.now, UTC))

    def _connection(self, bus: str) -> str:
        """Of a bus that `environ` names nothing is needed here: services are given it as it is."""
        from lucius_orchestrator.bootstrap.bus import connection_inside

        settings = settings_of({"LUCIUS_DATA_DIR": str(self.data)})
        return connection_inside(settings, urlsplit(bus).port or 0)

    def _control_plane(self, port: int, bus_port: int | None, engine: str | None) -> Child:
        command = [sys.executable, "-m", "lucius_cli", "up", "--port", str(port)]
        command += ["--data", str(self.data)]
        command += [] if bus_port is None else ["--bus-port", str(bus_port)]
        command += [] if engine is None else ["--engine", engine]
        auth = {} if self._tenant is None else {"LUCIUS_AUTH": "on"}
        environ = {**_inherited(), **auth, **self._environ}
        return Child("lucius up", command, Path.cwd(), environ, self.logs / "up.log")

    def _service(self, name: str, connection: str) -> Child:
        environ = {
            **_inherited(),
            "LUCIUS_SERVICEBUS_CONNECTION": connection,
            "LUCIUS_WORKSPACE_ROOT": str(self.workspace),
            "LUCIUS_INPUT_ROOTS": str(self._inputs),
            "LUCIUS_OUTPUT_ROOTS": str(self.data / "output"),
            "LUCIUS_ARTIFACTS_URL": self.url,
            **({} if self._key is None else {"LUCIUS_ARTIFACTS_KEY": self._key.secret}),
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
