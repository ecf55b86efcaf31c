"""`lucius mock up`: an orchestrator for testing one service, in any language."""

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lucius_cli.failures import EnvironmentFailed, ExitCode, Refused, Unsuitable
from lucius_cli.output import print_line, say

if TYPE_CHECKING:
    from orchestrator_mock.control import Control
    from orchestrator_mock.stage import Stage

app = typer.Typer(help="A scripted orchestrator for one service under test.", no_args_is_help=True)


class _Wanted(NamedTuple):
    service: str
    step_type: str
    workspace: Path
    control_port: int
    bus_port: int
    lock_seconds: float
    reply_via: str


@app.callback()
def _mock() -> None:
    pass


@app.command("up")
def up(
    service: Annotated[str, typer.Option(help="The service: the name of its subscriptions.")],
    step_type: Annotated[
        str | None, typer.Option(help="Of the directives; else the service's name in capitals.")
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option(file_okay=False, help="The service's storage root.")
    ] = None,
    control_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of the control API; 0: a free one.")
    ] = 0,
    bus_port: Annotated[int, typer.Option(min=0, max=65535, help="Of the bus; 0: a free one.")] = 0,
    lock_seconds: Annotated[
        float, typer.Option(min=0.5, max=300, help="How long a message stays locked.")
    ] = 60.0,
    reply_via: Annotated[str, typer.Option(help="http or bus: what directives ask for.")] = "http",
    script: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Play this script, then stop."),
    ] = None,
    misbehave: Annotated[
        int | None, typer.Option(metavar="SEED", help="Misbehave as this seed says, then stop.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many jobs, when misbehaving.")] = 20,
) -> None:
    """Run the mock until SIGTERM or Ctrl-C; its verbs are a control API over HTTP."""
    if reply_via not in ("http", "bus"):
        raise Unsuitable(f"--reply-via {reply_via}: must be http or bus")
    with tempfile.TemporaryDirectory(prefix="lucius-mock-") as temporary:
        folder = (workspace or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        wanted = _Wanted(
            service,
            step_type or service.upper().replace("-", "_"),
            folder,
            control_port,
            bus_port,
            lock_seconds,
            reply_via,
        )
        steps = None if script is None else _read(script)
        asyncio.run(_serve(wanted, steps, misbehave, jobs))


def _read(path: Path) -> Any:
    import yaml

    from orchestrator_mock.script import ScriptError, read_script

    try:
        return read_script(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ScriptError) as error:
        raise Unsuitable(f"{path}: {error}") from error


async def _serve(wanted: _Wanted, steps: Any, seed: int | None, jobs: int) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with _running(wanted) as (stage, control):
        mock = stage.mock
        say(f"the service is to be started with LUCIUS_SERVICE={wanted.service}")
        say(f"  LUCIUS_SERVICEBUS_CONNECTION='{mock.connection_string}'")
        say(f"  LUCIUS_WORKSPACE_ROOT={wanted.workspace}")
        say(f"  LUCIUS_OUTPUT_ROOTS={wanted.workspace}")
        say("  LUCIUS_ALLOW_PRIVATE_ADDRESSES=on, because the mock serves inputs on this machine")
        print_line(f"ready control=http://127.0.0.1:{control.port} bus={mock.bus_address}")
        acting = asyncio.create_task(_act(stage, steps, seed, jobs))
        waiting = asyncio.create_task(stopping.wait())
        await asyncio.wait({acting, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if acting.done() and (steps is not None or seed is not None or acting.exception()):
            waiting.cancel()
            acting.result()
            return
        await waiting
        acting.cancel()


async def _act(stage: "Stage", steps: Any, seed: int | None, jobs: int) -> None:
    from orchestrator_mock.misbehaving import misbehave
    from orchestrator_mock.script import Player, ScriptError, ScriptFailed
    from orchestrator_mock.stage import Sending

    if steps is not None:
        try:
            await Player(stage).play(steps)
        except ScriptError as error:
            raise Unsuitable(str(error)) from error
        except ScriptFailed as error:
            raise Refused(str(error)) from error
        print_line("the script was played: all that it expects has come")
    if seed is not None:
        found = await misbehave(stage, Sending(), seed, jobs)
        print_line(str(found))
        if found.problems:
            raise typer.Exit(ExitCode.FAILED)


@asynccontextmanager
async def _running(wanted: _Wanted) -> AsyncIterator[tuple["Stage", "Control"]]:
    from lucius_orchestrator.domain.aggregate import ReplyVia
    from orchestrator_mock import Mock, MockSettings
    from orchestrator_mock.control import Control
    from orchestrator_mock.stage import Defaults, Stage

    settings = MockSettings(
        wanted.service, wanted.workspace, wanted.lock_seconds, bus_port=wanted.bus_port
    )
    defaults = Defaults(wanted.service, wanted.step_type, ReplyVia(wanted.reply_via))
    try:
        async with Mock(settings) as mock:
            control = Control(Stage(mock, defaults))
            await control.open(wanted.control_port)
            try:
                yield control.stage, control
            finally:
                await control.close()
    except OSError as error:
        raise EnvironmentFailed(f"a port cannot be used: {error.strerror or error}") from error
