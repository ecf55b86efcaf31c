"""`lucius up` and `lucius serve`: the control plane in this process."""

import errno
import os
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

_ROLES = ("api", "reconciler", "replies")
_LATER_ROLES = ("invoker", "worker")


def up(
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Instead of LUCIUS_PORT; 0: a free one.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Instead of LUCIUS_DATA_DIR.")] = None,
    bus_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Instead of LUCIUS_BUS_PORT; 0: a free one."),
    ] = None,
    engine: Annotated[str, typer.Option(help="ledger; temporal is not part of it yet.")] = "ledger",
) -> None:
    """Run the whole control plane in one process."""
    if engine != "ledger":
        _no_such_engine(engine)
    overrides = {"LUCIUS_PORT": port, "LUCIUS_DATA_DIR": data, "LUCIUS_BUS_PORT": bus_port}
    given = {name: str(value) for name, value in overrides.items() if value is not None}
    logs = {"LUCIUS_LOG_FORMAT": "text"} if sys.stderr.isatty() else {}
    settings = settings_of({**logs, **os.environ, **given})
    if bus_port is not None and settings.shares_bus:
        raise Unsuitable("--bus-port: the bus is the one that the environment names, not inside")
    _serve(settings, "all")


def serve(
    role: Annotated[str, typer.Argument(metavar="ROLE", help=f"{', '.join(_ROLES)}.")],
) -> None:
    """Run one role of the control plane in this process."""
    if role in _LATER_ROLES:
        raise Unsuitable(f"the role {role} is not part of this release")
    if role not in _ROLES:
        raise typer.BadParameter(f"one of {', '.join(_ROLES)}", param_hint="ROLE")
    _serve(settings_of(os.environ), role)


def _no_such_engine(engine: str) -> None:
    if engine == "temporal":
        raise Unsuitable("--engine temporal: the Temporal engine is not part of this release")
    raise typer.BadParameter("ledger, or temporal in a later release", param_hint="--engine")


def _serve(settings: "Settings", role: str) -> None:
    from lucius_orchestrator.bootstrap.serving import RoleUnavailable, ServeRole, serve

    with _startable(settings):
        try:
            code = serve(settings, ServeRole(role), _announcement(settings))
        except RoleUnavailable as error:
            raise Unsuitable(str(error)) from error
    raise typer.Exit(code)


def _announcement(settings: "Settings") -> Callable[["ServingAt"], None]:
    """People read stderr; the line on stdout is for whoever started the process."""

    def announce(at: "ServingAt") -> None:
        say(f"{'API   ' if at.has_api else 'health'} {at.http}")
        say(f"bus    {at.bus or 'none: this role needs none'}")
        if at.connection is not None:
            say(f"       services connect with {at.connection}")
        say(f"data   {settings.data_dir.absolute()} ({settings.storage_backend})")
        say(f"auth   {_auth(settings)}")
        print_line(f"ready {'api' if at.has_api else 'health'}={at.http} bus={at.bus or 'none'}")

    return announce


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
    from lucius_bus.port import BusError
    from lucius_orchestrator.adapters.registry.problems import RegistryError
    from lucius_orchestrator.bootstrap.bus import BusPortTaken
    from lucius_orchestrator.ports.ledger import LedgerError
    from servicebus_emulator.journal import JournalError

    if isinstance(error, BusPortTaken):
        return f"port {error.port} is taken: choose another with --bus-port or LUCIUS_BUS_PORT"
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"port {settings.port} is taken: choose another with --port or LUCIUS_PORT"
    if isinstance(error, LedgerError | RegistryError | BusError | JournalError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or settings.host}: {error.strerror or error}"
    return None
