"""Entry point of the `lucius` command: results on stdout, everything else on stderr.

Exit codes: 0 fine, 1 the thing asked about failed, 2 usage, 3 the environment failed; `conform`
adds 5, incomplete.
"""

import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from lucius_cli import (
    artifacts,
    bus,
    configuration,
    conform,
    doctor,
    jobs,
    keys,
    lookup,
    mock,
    new,
    services,
    serving,
    submit,
    topology,
    update,
)
from lucius_cli.demo import command as demo
from lucius_cli.failures import ExitCode, explained
from lucius_cli.output import say

app = typer.Typer(
    name="lucius",
    help="Run and inspect LUCIUS, the orchestrator of document-processing services.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("up")(serving.up)
app.command("serve")(serving.serve)
app.command("demo")(demo.demo)
app.add_typer(bus.app, name="bus")
app.add_typer(topology.app, name="topology")
app.command("new")(new.new)
app.command("update")(update.update)
app.add_typer(mock.app, name="mock")
app.add_typer(conform.app, name="conform")
app.add_typer(keys.app, name="keys")
app.command("submit")(submit.submit)
app.add_typer(jobs.app, name="jobs")
app.command("dead-letters")(jobs.dead_letters)
app.command("services")(services.services)
app.add_typer(artifacts.app, name="artifacts")
app.command("config")(configuration.config)
app.command("doctor")(doctor.doctor)
app.command("lane")(lookup.lane)
app.command("hash")(lookup.hash_)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"lucius {version('lucius-sdk')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits; `arguments` are the process's unless given."""
    try:
        app(arguments)
    except KeyboardInterrupt:
        if arguments is None:  # it ends already; another Ctrl-C would only show where it was
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:
        failure = explained(error)
        if failure is None:
            raise
        from lucius_outbox.redaction import without_url_credentials

        say(without_url_credentials(str(failure)))
        sys.exit(failure.exit_code)
