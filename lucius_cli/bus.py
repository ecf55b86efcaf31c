"""`lucius bus`: the Service Bus emulator alone, and what connects to the one inside `lucius up`."""

import asyncio
import errno
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lucius_cli.environment import settings_of
from lucius_cli.failures import EnvironmentFailed, Unsuitable
from lucius_cli.output import print_line, say

if TYPE_CHECKING:
    from servicebus_emulator.server import Emulator

app = typer.Typer(help="The bus emulator.", no_args_is_help=True)

KEYS_VARIABLE = "LUCIUS_BUS_KEYS"
_DEFAULT_PORT = 5672


class _Place(NamedTuple):
    host: str
    port: int

    def address(self, port: int) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"sb://{host}:{port}"


@app.callback()
def _bus() -> None:
    pass


@app.command("up")
def up(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where clients connect; 0: a free one.")
    ] = _DEFAULT_PORT,
    config: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Entities, as a Config.json declares them."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(file_okay=False, help="Keep entities and messages here.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KEY",
            help=f"Who connects must know it; may be repeated. Better in {KEYS_VARIABLE}, where"
            " no list of processes shows it.",
        ),
    ] = None,
    max_connections: Annotated[
        int, typer.Option(min=1, help="How many clients may be connected at once.")
    ] = 1000,
) -> None:
    """Run the Service Bus emulator, and nothing else, until SIGTERM or Ctrl-C."""
    keys = _keys([*(key or ()), *_exported(os.environ)])
    _check_reach(host, keys)
    place = _Place(host, port)
    with _startable(place), _emulator(config, data, keys, max_connections) as emulator:
        _run(_serve(emulator, place, _announcement(place, keys)))


@app.command("connection")
def connection(
    data: Annotated[
        Path | None, typer.Option(help="The data folder; instead of LUCIUS_DATA_DIR.")
    ] = None,
    bus_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Where the bus is; instead of LUCIUS_BUS_PORT."),
    ] = None,
) -> None:
    """Print the LUCIUS_SERVICEBUS_CONNECTION of services for the bus inside `lucius up`.

    With auth on it holds the key that the data folder keeps: only who may read that folder gets it.
    """
    from lucius_contract.errors import ContractError
    from lucius_orchestrator.bootstrap.bus import bus_key_file, connection_inside

    given = {"LUCIUS_DATA_DIR": data, "LUCIUS_BUS_PORT": bus_port}
    chosen = {name: str(value) for name, value in given.items() if value is not None}
    settings = settings_of({**os.environ, **chosen})
    if settings.shares_bus:
        raise Unsuitable("the bus is the one that the environment names, not inside `lucius up`")
    if settings.bus_port == 0:
        raise Unsuitable("LUCIUS_BUS_PORT is 0: give --bus-port, from the line `ready ... bus=...`")
    if settings.auth and not bus_key_file(settings).exists():
        raise EnvironmentFailed(
            f"there is no key in {settings.data_dir}: start `lucius up` first, or name its folder"
            " with --data"
        )
    try:
        print_line(connection_inside(settings, settings.bus_port))
    except ContractError as error:
        raise EnvironmentFailed(error.message) from error


def _exported(environ: Mapping[str, str]) -> list[str]:
    return [each.strip() for each in environ.get(KEYS_VARIABLE, "").split(",") if each.strip()]


def _keys(given: Sequence[str]) -> dict[str, str]:
    """A key may hold equal signs, its name may not. What is wrong is never shown."""
    keys: dict[str, str] = {}
    for text in given:
        name, _, key = text.partition("=")
        if not name.strip() or not key.strip():
            raise typer.BadParameter("must be NAME=KEY", param_hint=f"--key or {KEYS_VARIABLE}")
        keys[name.strip()] = key.strip()
    return keys


def _check_reach(host: str, keys: Mapping[str, str]) -> None:
    from lucius_settings.hosts import is_loopback

    if not keys and not is_loopback(host):
        raise Unsuitable(
            f"--host {host}: without keys only this machine may connect; give --key NAME=KEY or set"
            f" {KEYS_VARIABLE}, or listen on 127.0.0.1"
        )


@contextmanager
def _emulator(
    config: Path | None, data: Path | None, keys: Mapping[str, str], max_connections: int
) -> Iterator["Emulator"]:
    from servicebus_emulator.config import apply, load_config
    from servicebus_emulator.connection_limits import ConnectionLimits
    from servicebus_emulator.journal import Journal
    from servicebus_emulator.sas import Keys
    from servicebus_emulator.server import Emulator

    declared = None if config is None else load_config(config)
    if data is not None:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)  # messages may carry tokens
    journal = None if data is None else Journal(data)
    try:
        limits = ConnectionLimits(connections=max_connections)
        emulator = Emulator(keys=Keys(keys), journal=journal, limits=limits)
        if declared is not None:
            apply(emulator.broker, declared)
        yield emulator
    finally:
        if journal is not None:
            journal.close()


async def _serve(emulator: "Emulator", place: _Place, announce: Callable[[int], None]) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    await emulator.start(place.host, place.port)
    try:
        emulator.keep()
        announce(emulator.port)
        await stopping.wait()
    finally:
        await emulator.stop()


def _run(serving: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serving)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The faster one, where there is one."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop


def _announcement(place: _Place, keys: Mapping[str, str]) -> Callable[[int], None]:
    def announce(port: int) -> None:
        address = place.address(port)
        say(f"services connect with {_connection(address, keys)}")
        print_line(f"ready bus={address}")

    return announce


def _connection(address: str, keys: Mapping[str, str]) -> str:
    """With keys its own key is left out: it is a secret."""
    name = next(iter(keys), "local")
    key = "***" if keys else "local"
    return (
        f"Endpoint={address};SharedAccessKeyName={name};SharedAccessKey={key};"
        "UseDevelopmentEmulator=true;"
    )


@contextmanager
def _startable(place: _Place) -> Iterator[None]:
    from servicebus_emulator.broker import BrokerError
    from servicebus_emulator.config import ConfigError
    from servicebus_emulator.journal import JournalError

    try:
        yield
    except (BrokerError, ConfigError, JournalError) as error:
        raise EnvironmentFailed(str(error)) from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            reason = f"port {place.port} is taken: choose another with --port"
            raise EnvironmentFailed(reason) from error
        where = error.filename or place.host
        raise EnvironmentFailed(f"{where}: {error.strerror or error}") from error
