"""Entry point of the `lucius` command: results on stdout, everything else on stderr.

Exit codes: 0 fine, 1 the thing asked about failed, 2 usage, 3 the environment failed.
"""

import sys
from enum import IntEnum

import typer

from lucius_cli import lookup
from lucius_contract.errors import ContractError


class ExitCode(IntEnum):
    FAILED = 1


app = typer.Typer(
    name="lucius",
    help="Run and inspect LUCIUS, the orchestrator of document-processing services.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("lane")(lookup.lane)
app.command("hash")(lookup.hash_)


@app.callback()
def _root() -> None:
    """Keeps the commands named even while there are few of them."""


def main() -> None:
    try:
        app()
    except ContractError as error:
        print(error, file=sys.stderr)
        sys.exit(ExitCode.FAILED)
