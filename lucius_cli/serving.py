"""`lucius up` and `lucius serve`: the control plane in this process."""

import errno
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lucius_cli.environment import settings_of
from lucius_cli.failures import EnvironmentFailed, Unsuitable, leaves
from lucius_cli.output import print_line, say

if TYPE_CHECKING:
    from lucius_orchestrator.bootstrap.serving import ServingAt
    from lucius_orchestrator.settings import Settings

_ROLES = ("api", "reconciler", "replies", "invoker", "worker")
_ENGINES = {"ledger": "off", "temporal": "on"}


def up(
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Instead of LUCIUS_PORT; 0: a free one.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Instead of LUCIUS_DATA_DIR.")] = None,
    bus_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Instead of LUCIUS_BUS_PORT; 0: a free one."),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="ledger or temporal: what drives new jobs, instead of LUCIUS_TEMPORAL_ENABLED."
        ),
    ] = None,
    temporal_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Instead of LUCIUS_TEMPORAL_PORT; 0: a free one."),
    ] = None,
    temporal_ui_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Show Temporal's web pages there; 0: a free one."),
    ] = None,
) -> None:
    """Run the whole control plane in one process."""
    overrides = {
        "LUCIUS_PORT": port,
        "LUCIUS_DATA_DIR": data,
        "LUCIUS_BUS_PORT": bus_port,
        "LUCIUS_TEMPORAL_ENABLED": engine_switch(engine),
        "LUCIUS_TEMPORAL_PORT": temporal_port,
        "LUCIUS_TEMPORAL_UI_PORT": temporal_ui_port,
    }
    given = {name: str(value) for name, value in overrides.items() if value is not None}
    logs = {"LUCIUS_LOG_FORMAT": "text"} if sys.stderr.isatty() else {}
    settings = settings_of({**logs, **os.environ, **given})
    if bus_port is not None and settings.shares_bus:
        raise Unsuitable("--bus-port: the bus is the one that the environment names, not inside")
    if temporal_port is not None or temporal_ui_port is not None:
        _require_own_temporal(settings)
    _serve(settings, "all")


def serve(
    role: Annotated[str, typer.Argument(metavar="ROLE", help=f"{', '.join(_ROLES)}.")],
) -> None:
    """Run one role of the control plane in this process."""
    if role not in _ROLES:
        raise typer.BadParameter(f"one of {', '.join(_ROLES)}", param_hint="ROLE")
    _serve(settings_of(os.environ), role)


def engine_switch(engine: str | None) -> str | None:
    """What LUCIUS_TEMPORAL_ENABLED is then; None: it is not said here."""
    if engine is not None and engine not in _ENGINES:
        raise typer.BadParameter(f"one of {', '.join(_ENGINES)}", param_hint="--engine")
    return None if engine is None else _ENGINES[engine]


def _require_own_temporal(settings: "Settings") -> None:
    what = "--temporal-port and --temporal-ui-port"
    if settings.temporal_address is not None:
        raise Unsuitable(f"{what}: the Temporal server is the one that the environment names")
    if not settings.temporal_enabled:
        raise Unsuitable(f"{what}: there is a Temporal server with --engine temporal alone")


def _serve(settings: "Settings", role: str) -> None:
    from lucius_orchestrator.bootstrap.serving import RoleUnavailable, ServeRole, serve

    with _startable(settings):
        try:
            code = serve(settings, ServeRole(role), _announcement(settings, role))
        except RoleUnavailable as error:
            raise Unsuitable(str(error)) from error
    raise typer.Exit(code)


def _announcement(settings: "Settings", role: str) -> Callable[["ServingAt"], None]:
    """People read stderr; the line on stdout is for whoever started the process."""

    def announce(at: "ServingAt") -> None:
        say(f"{'API   ' if at.has_api else 'health'} {at.http}")
        say(f"bus    {at.bus or 'none: this role needs none'}")
        if at.connection is not None:
            say(f"       services connect with {at.connection}")
        elif at.bus is not None and not settings.shares_bus:
            command = _connection_command(settings, at.bus)
            say(f"       services connect with what this prints: {command}")
        for line in _temporal(settings, at):
            say(line)
        if role == "worker":
            say(f"invoker {settings.invoker_url}")
        else:
            say(f"data   {settings.data_dir.absolute()} ({settings.storage_backend})")
        say(f"auth   {_auth(settings)}")
        print_line(f"ready {'api' if at.has_api else 'health'}={at.http} bus={at.bus or 'none'}")

    return announce


def _connection_command(settings: "Settings", bus: str) -> str:
    """The key is a secret, which terminals and logs keep for long."""
    folder = shlex.quote(str(settings.data_dir.absolute()))
    return f"lucius bus connection --data {folder} --bus-port {bus.rpartition(':')[2]}"


def _temporal(settings: "Settings", at: "ServingAt") -> Iterator[str]:
    if at.temporal is None:
        return
    drives = "drives new jobs" if settings.temporal_enabled else "drives the jobs that it has"
    yield f"Temporal {at.temporal}, namespace {settings.temporal_namespace}: {drives}"
    if at.ui is not None:
        yield f"       its web pages are at {at.ui}"


def _auth(settings: "Settings") -> str:
    if not settings.auth:
        return "off: whoever reaches this address may do everything"
    jwt = f"JWT of {settings.jwt_issuer}, or " if settings.jwks_url else ""
    return f"on: {jwt}keys from {settings.api_keys_file}"


@contextmanager
def _startable(settings: "Settings") -> Iterator[None]:
    """What keeps a control plane from starting, or ends it, is told in a sentence."""
    try:
        yield
    except (Exception, BaseExceptionGroup) as error:
        reasons = [_reason(leaf, settings) for leaf in leaves(error)]
        if any(reason is None for reason in reasons):
            raise
        raise EnvironmentFailed("\n".join(filter(None, reasons))) from error


def _reason(error: BaseException, settings: "Settings") -> str | None:
    from lucius_artifacts.errors import ArtifactsError
    from lucius_bus.port import BusError
    from lucius_orchestrator.adapters.registry.problems import RegistryError
    from lucius_orchestrator.bootstrap.bus import BusPortTaken
    from lucius_orchestrator.bootstrap.dev_server import DevServerError, PortTaken
    from lucius_orchestrator.ports.ledger import LedgerError
    from servicebus_emulator.journal import JournalError

    if isinstance(error, BusPortTaken):
        return f"port {error.port} is taken: choose another with --bus-port or LUCIUS_BUS_PORT"
    if isinstance(error, PortTaken):
        return f"{error}: choose another with --temporal-port or --temporal-ui-port"
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"port {settings.port} is taken: choose another with --port or LUCIUS_PORT"
    told = LedgerError | ArtifactsError | RegistryError | BusError | JournalError | DevServerError
    if isinstance(error, told):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or settings.host}: {error.strerror or error}"
    return None
