"""A process that serves: from settings to an exit code."""

import asyncio
import logging
import math
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import NamedTuple

import uvicorn

from lucius_orchestrator.bootstrap.http_protocol import bounded_head
from lucius_orchestrator.bootstrap.parts import calm_the_collector, running
from lucius_orchestrator.bootstrap.plane import ControlPlane, control_plane
from lucius_orchestrator.bootstrap.roles import RoleUnavailable, ServeRole, check_role
from lucius_orchestrator.bootstrap.worker import worker_plane
from lucius_orchestrator.observability.logs import configure_logs
from lucius_orchestrator.settings import LogFormat, Settings
from lucius_outbox.telemetry import EventInfo

__all__ = ["RoleUnavailable", "ServeRole", "ServingAt", "serve"]

_log = logging.getLogger("lucius_orchestrator")

EVENTS: tuple[EventInfo, ...] = (
    EventInfo("settings.warning", "WARNING", ("reason",), "A setting that changes nothing is set."),
    EventInfo("stopped", "INFO", (), "The process has finished what it had and ends."),
)
_BACKLOG = 2048
_IDLE_SECONDS = 30


class ServingAt(NamedTuple):
    """`http` is the API, or without one where the process answers about its health. `connection` is
    what services need to reach the bus, where that is no secret. `temporal` is the server that
    drives jobs, `ui` where its web pages are, both where this process knows one."""

    http: str
    has_api: bool
    bus: str | None
    connection: str | None
    temporal: str | None = None
    ui: str | None = None


def serve(settings: Settings, role: ServeRole, ready: Callable[[ServingAt], None]) -> int:
    """Run until SIGTERM or SIGINT, then finish what is under way; returns the exit code.
    `RoleUnavailable`."""
    check_role(role, settings)
    configure_logs(settings.log_level, "json" if _is_json(settings) else "text")
    for warning in settings.warnings:
        _log.warning("settings.warning", extra={"reason": warning})
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(_serve(settings, role, ready))
    return 0


def _is_json(settings: Settings) -> bool:
    return settings.log_format is LogFormat.JSON


def _new_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


async def _serve(settings: Settings, role: ServeRole, ready: Callable[[ServingAt], None]) -> None:
    with _listening(settings.host, settings.port) as listener, _signals() as stop:
        address = _url_of(listener)
        async with _plane(settings, address, role) as plane:
            server = _Server(_config(plane, settings))
            calm_the_collector()
            stop.calls(lambda: _end(server, plane))
            async with running(plane.parts):
                ready(_serving_at(address, role, plane))
                await server.serve(sockets=[listener])
    _log.info("stopped")


def _plane(
    settings: Settings, address: str, role: ServeRole
) -> AbstractAsyncContextManager[ControlPlane]:
    if role is ServeRole.WORKER:
        return worker_plane(settings)
    return control_plane(settings, address, role)


def _end(server: uvicorn.Server, plane: ControlPlane) -> None:
    plane.stopping.set()
    server.should_exit = True


def _serving_at(address: str, role: ServeRole, plane: ControlPlane) -> ServingAt:
    bus = (None, None) if plane.bus is None else plane.bus.place
    temporal = (None, None) if plane.temporal is None else plane.temporal
    return ServingAt(address, role.serves_api, *bus, *temporal)


class _Server(uvicorn.Server):
    """Signals are the process's: uvicorn would raise them again after it has stopped."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(plane: ControlPlane, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        plane.app,
        http=bounded_head(settings.request_timeout.total_seconds()),
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        backlog=_BACKLOG,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=math.ceil(settings.shutdown_grace.total_seconds()),
    )


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=_BACKLOG) as listener:
        yield listener


def _url_of(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Stop:
    """A signal that comes before there is anything to stop is remembered; one that comes after the
    first changes nothing."""

    def __init__(self) -> None:
        self._is_asked = False
        self._end: Callable[[], None] | None = None

    def calls(self, end: Callable[[], None]) -> None:
        self._end = end
        if self._is_asked:
            end()

    def ask(self) -> None:
        self._is_asked = True
        if self._end is not None:
            self._end()


@contextmanager
def _signals() -> Iterator[_Stop]:
    """Until everything is closed: a second signal must not cut that short."""
    stop, loop = _Stop(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.ask)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
