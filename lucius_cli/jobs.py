"""`lucius jobs` and `lucius dead-letters`: what a server knows of its jobs."""

import os
import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from lucius_cli.job_views import dead_letter_table, job_table
from lucius_cli.output import JsonFlag, Table, print_json, print_line, print_table, say
from lucius_cli.progress import exit_code, print_job, watched, watched_as_json
from lucius_cli.submit import report_accepted
from lucius_cli.watching import Retry

app = typer.Typer(help="Jobs of a server.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")]
Tenant = Annotated[str | None, typer.Option(help="Only of this tenant.")]
Limit = Annotated[int, typer.Option(min=1, help="How many to show at most.")]
All = Annotated[bool, typer.Option("--all", help="Show all there are, page after page.")]
Cursor = Annotated[str | None, typer.Option(help="Go on after an earlier list, as its JSON says.")]


@app.command("list")
def list_(
    tenant: Tenant = None,
    state: Annotated[str | None, typer.Option(help="Only in this state.")] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only of this request type.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only created since, as 2026-01-31T00:00:00Z.")
    ] = None,
    limit: Limit = 50,
    all_: All = False,
    cursor: Cursor = None,
    as_json: JsonFlag = False,
) -> None:
    """List jobs, the newest first."""
    from lucius_cli.client import connected

    filters = {"tenant_id": tenant, "state": state, "request_type": type_, "since": since}
    with connected(os.environ) as api:
        page = api.listed("/v1/jobs", filters, None if all_ else limit, cursor)
    if as_json:
        print_json({"items": page.items, "next_cursor": page.cursor})
    else:
        _print_list(
            job_table(page.items, datetime.now(UTC)), "no jobs", more=page.cursor is not None
        )


@app.command()
def show(job: JobId, as_json: JsonFlag = False) -> None:
    """Show a job and its steps."""
    from lucius_cli.client import connected

    with connected(os.environ) as api:
        print_job(api.job(job), as_json=as_json)


@app.command()
def watch(job: JobId, as_json: JsonFlag = False) -> None:
    """Follow a job to its end.

    The exit code is 0 if it SUCCEEDED and 1 if it ended otherwise.
    """
    from lucius_cli.client import connected

    with connected(os.environ) as api:
        if as_json:
            ended = watched_as_json(api, job, Retry())
        else:
            ended = watched(api, job, sys.stdout, Retry())
            say(f"{job} has ended: {ended['state']}")
    raise typer.Exit(exit_code(ended))


@app.command()
def cancel(job: JobId, as_json: JsonFlag = False) -> None:
    """Cancel a job; a step that is being worked on may finish first."""
    _command(job, "cancel", as_json=as_json)


@app.command()
def pause(job: JobId, as_json: JsonFlag = False) -> None:
    """Start no further step of a job until it is resumed."""
    _command(job, "pause", as_json=as_json)


@app.command()
def resume(job: JobId, as_json: JsonFlag = False) -> None:
    """Go on with a job that was paused."""
    _command(job, "resume", as_json=as_json)


@app.command()
def redrive(
    job: JobId,
    idempotency_key: Annotated[
        str | None, typer.Option(help="A further redrive of the same job needs one of its own.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a new job from one that failed, and print its id."""
    from lucius_cli.client import connected

    with connected(os.environ) as api:
        accepted = api.command(job, "redrive", idempotency_key)
    report_accepted(accepted, as_json=as_json)


def dead_letters(
    tenant: Tenant = None,
    kind: Annotated[str | None, typer.Option(help="JOB, STEP, OUTBOX or REPLY.")] = None,
    code: Annotated[str | None, typer.Option(help="Only with this error code.")] = None,
    limit: Limit = 50,
    all_: All = False,
    cursor: Cursor = None,
    as_json: JsonFlag = False,
) -> None:
    """List what failed for good, the newest first."""
    from lucius_cli.client import connected

    filters = {"tenant_id": tenant, "kind": kind, "code": code}
    with connected(os.environ) as api:
        page = api.listed("/v1/dead-letters", filters, None if all_ else limit, cursor)
    if as_json:
        print_json({"items": page.items, "next_cursor": page.cursor})
    else:
        table = dead_letter_table(page.items, datetime.now(UTC))
        _print_list(table, "no dead letters", more=page.cursor is not None)


def _command(job: str, verb: str, *, as_json: bool) -> None:
    from lucius_cli.client import connected

    with connected(os.environ) as api:
        answer = api.command(job, verb)
    if as_json:
        print_json(answer)
    else:
        print_line(f"{answer.get('jobId', job)} {answer.get('state', '')}")


def _print_list(table: Table, nothing: str, *, more: bool) -> None:
    if table.rows:
        print_table(table)
    else:
        say(nothing)
    if more:
        say("there are more: --limit N or --all")
