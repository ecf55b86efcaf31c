"""`lucius update`: what a newer skeleton changes, merged into a service."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lucius_cli.failures import ExitCode
from lucius_cli.output import JsonFlag, Table, print_json, print_line, print_table, say, visible

if TYPE_CHECKING:
    from lucius_cli.skeleton.merging import Change
    from lucius_cli.skeleton.updating import Update


def update(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", exists=True, file_okay=False, help="The service's.")
    ] = Path(),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the changes as a diff, write nothing.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Merge what a newer skeleton changed. Exit code 1: there are conflicts to resolve."""
    from lucius_cli.skeleton.updating import plan_update

    planned = plan_update(folder)
    if not dry_run:
        planned.check_committed()
        planned.apply()
    if as_json:
        print_json(_document(folder, planned, dry_run))
    else:
        _tell(planned, dry_run)
    if planned.conflicts:
        raise typer.Exit(ExitCode.FAILED)


def _document(folder: Path, planned: "Update", dry_run: bool) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "from": planned.before.template,
        "to": planned.newer.template,
        "written": not dry_run,
        "conflicts": planned.conflicts,
        "changes": [
            {
                "path": change.path,
                "kind": change.kind,
                "note": change.note,
                "diff": _printable(change),
            }
            for change in planned.changes
        ],
    }


def _tell(planned: "Update", dry_run: bool) -> None:
    from lucius_cli.skeleton.merging import OURS_MARK, Kind

    before, newer = planned.before.template, planned.newer.template
    if before == newer:
        say("the skeleton has nothing newer")
    else:
        say(f"from version {before} of the skeleton to {newer}")
    if planned.changes:
        rows = [(change.kind, change.path, change.note) for change in planned.changes]
        print_table(Table(("change", "file", ""), rows))
    for change in planned.changes:
        if change.diff and (dry_run or change.kind is Kind.KEPT):
            _show(change)
    if planned.conflicts and not dry_run:
        say(f"resolve the conflicts: look for {OURS_MARK} in {', '.join(planned.conflicts)}")


def _show(change: "Change") -> None:
    from lucius_cli.skeleton.merging import Kind

    if change.kind is Kind.KEPT:
        print_line(f"\n{change.path} is left as it is; the skeleton has changed there:")
    # Tabs are part of a diff, and steer no terminal.
    print("\t".join(map(visible, _printable(change).split("\t"))), end="")


def _printable(change: "Change") -> str:
    """A file may hold bytes that are no text."""
    return change.diff.encode(errors="backslashreplace").decode()
