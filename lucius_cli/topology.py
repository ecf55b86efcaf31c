"""`lucius topology`: the topics and subscriptions that the lanes need, and those that there are."""

import asyncio
import os
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lucius_cli.environment import settings_of
from lucius_cli.failures import EnvironmentFailed, ExitCode, Unsuitable
from lucius_cli.output import JsonFlag, Table, print_json, print_line, print_table, say

if TYPE_CHECKING:
    from lucius_bus.topology import Topology, TopologyReport
    from lucius_orchestrator.settings import Settings

app = typer.Typer(help="Topics, subscriptions and rules that the lanes need.", no_args_is_help=True)


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"
    CONFIG = "config"
    BICEP = "bicep"


@app.command()
def show(
    form: Annotated[
        Form,
        typer.Option(
            "--format", help="config: for an emulator, as Config.json; bicep: for a deployment."
        ),
    ] = Form.TABLE,
    as_json: JsonFlag = False,
) -> None:
    """Print what the protocols in force need; no bus is asked."""
    from lucius_orchestrator.adapters.bus import rendering

    topology = _wanted(settings_of(os.environ))
    chosen = Form.JSON if as_json else form
    if chosen is Form.CONFIG:
        print(rendering.as_config_json(topology), end="")
        return
    if chosen is Form.BICEP:
        print(rendering.as_bicep(topology), end="")
        return
    rows = rendering.as_rows(topology)
    if chosen is Form.JSON:
        print_json({"items": [row._asdict() for row in rows]})
    else:
        print_table(Table(rendering.Row._fields, rows))


@app.command()
def apply(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be created.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Create what is missing on the bus that LUCIUS_SERVICEBUS_CONNECTION or _NAMESPACE names.

    What exists is never changed. The exit code is 1 if anything is left otherwise than wanted.
    """
    settings = settings_of(os.environ)
    if not settings.shares_bus:
        raise Unsuitable(
            "no bus is named: set LUCIUS_SERVICEBUS_CONNECTION or LUCIUS_SERVICEBUS_NAMESPACE;"
            " the bus inside `lucius up` gets its topology at every start"
        )
    report = _report(settings, _wanted(settings), creates=not dry_run)
    if as_json:
        print_json(_as_json(report))
    else:
        _print(report)
    is_complete = not report.missing and not report.drift
    raise typer.Exit(ExitCode.FINE if is_complete else ExitCode.FAILED)


def _wanted(settings: "Settings") -> "Topology":
    from lucius_orchestrator.adapters.registry.problems import RegistryError
    from lucius_orchestrator.bootstrap.parts import real_world
    from lucius_orchestrator.bootstrap.protocol_source import read_once
    from lucius_orchestrator.bootstrap.topology import topology_of

    try:
        snapshot = asyncio.run(read_once(settings, real_world().clock)).snapshot
        return topology_of(snapshot, settings.artifacts.events_topic)
    except RegistryError as error:
        raise EnvironmentFailed(str(error)) from error


def _report(settings: "Settings", wanted: "Topology", *, creates: bool) -> "TopologyReport":
    from lucius_bus.port import BusError
    from lucius_outbox.redaction import redacted

    try:
        return asyncio.run(_visit(settings, wanted, creates=creates))
    except BusError as error:
        raise EnvironmentFailed(redacted(str(error))) from error


async def _visit(settings: "Settings", wanted: "Topology", *, creates: bool) -> "TopologyReport":
    from lucius_orchestrator.bootstrap.bus import open_topology

    async with open_topology(settings) as topology:
        return await (topology.apply(wanted) if creates else topology.compare(wanted))


def _as_json(report: "TopologyReport") -> dict[str, Any]:
    names = ("entity", "setting", "wanted", "found")
    return {
        "created": list(report.created),
        "missing": list(report.missing),
        "drift": [dict(zip(names, each, strict=True)) for each in report.drift],
    }


def _print(report: "TopologyReport") -> None:
    _print_all("created", report.created)
    _print_all("missing", report.missing)
    for entity, setting, wanted, found in report.drift:
        print_line(f"drift    {entity}: {setting} is {found}, wanted {wanted}")
    if report.missing:
        say(f"{len(report.missing)} are missing: create them without --dry-run")
    if report.drift:
        say("what exists is never changed: mend what is otherwise by hand, or delete it first")
    if not report.missing and not report.drift:
        say("all is there")


def _print_all(what: str, entities: Sequence[str]) -> None:
    for entity in entities:
        print_line(f"{what}  {entity}")
