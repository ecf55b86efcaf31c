"""A process that serves: from settings to an exit code."""

import asyncio
import logging
import math
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import NamedTuple

import uvicorn

from lucius_orchestrator.bootstrap.http_protocol import bounded_head
from lucius_orchestrator.bootstrap.parts import calm_the_collector, running
from lucius_orchestrator.bootstrap.plane import ControlPlane, control_plane
from lucius_orchestrator.observability.logs import configure_logs
from lucius_orchestrator.settings import LogFormat, Settings
from lucius_outbox.telemetry import EventInfo

_log = logging.getLogger("lucius_orchestrator")

EVENTS: tuple[EventInfo, ...] = (
    EventInfo("settings.warning", "WARNING", ("reason",), "A setting that changes nothing is set."),
    EventInfo("stopped", "INFO", (), "The process has finished what it had and ends."),
)
_BACKLOG = 2048
_IDLE_SECONDS = 30


class ServeRole(StrEnum):
    ALL = "all"
    API = "api"
    RECONCILER = "reconciler"
    REPLIES = "replies"


class RoleUnavailable(Exception):
    """The role cannot run with these settings; the message says what it needs."""


class ServingAt(NamedTuple):
    api: str | None
    bus: str


def serve(settings: Settings, role: ServeRole, ready: Callable[[ServingAt], None]) -> int:
    """Run until SIGTERM or SIGINT, then finish what is under way; returns the exit code."""
    if role in (ServeRole.RECONCILER, ServeRole.REPLIES):
        raise RoleUnavailable(
            f"the role {role} needs a bus that processes share, which this release does not have;"
            " run everything in one process with `lucius up`"
        )
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
    with _listening(settings.host, settings.port) as listener:
        address = _url_of(listener)
        async with control_plane(settings, address, alone=role is ServeRole.API) as plane:
            server = _Server(_config(plane, settings))
            calm_the_collector()
            with _stop_on_signals(server, plane):
                async with running(plane.parts):
                    ready(ServingAt(address, "memory"))
                    await server.serve(sockets=[listener])
    _log.info("stopped")


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


@contextmanager
def _stop_on_signals(server: uvicorn.Server, plane: ControlPlane) -> Iterator[None]:
    def stop() -> None:
        plane.stopping.set()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
