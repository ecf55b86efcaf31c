"""Progress of a job while it runs: a live table on a terminal, lines elsewhere."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from lucius_cli.failures import EnvironmentFailed, ExitCode
from lucius_cli.job_views import event_line, facts, live_view, step_table
from lucius_cli.output import (
    console,
    one_line,
    print_facts,
    print_json,
    print_json_line,
    print_table,
    say,
)
from lucius_cli.watching import FROM_THE_BEGINNING, Retry, follow
from lucius_contract.states import JobState

if TYPE_CHECKING:
    from lucius_cli.client import Api

JsonObject = dict[str, Any]


def watched(api: "Api", job_id: str, stream: TextIO, retry: Retry) -> JsonObject:
    """Show the job's progress on the stream until it has ended; the job as it ended."""
    show = _live if stream.isatty() else _lines
    show(api, job_id, stream, retry)
    return api.job(job_id)


def watched_as_json(api: "Api", job_id: str, retry: Retry) -> JsonObject:
    """One JSON object per line: the events, and the job as it ended."""
    for event in follow(api, job_id, FROM_THE_BEGINNING, retry, _lost(say)):
        print_json_line(event._asdict())
    job = api.job(job_id)
    print_json_line({"id": None, "name": "job", "data": job})
    return job


def print_job(job: JsonObject, *, as_json: bool) -> None:
    if as_json:
        print_json(job)
        return
    print_facts(facts(job))
    print()
    print_table(step_table(job))


def exit_code(job: JsonObject) -> ExitCode:
    return ExitCode.FINE if job.get("state") == JobState.SUCCEEDED else ExitCode.FAILED


def _lines(api: "Api", job_id: str, stream: TextIO, retry: Retry) -> None:
    for event in follow(api, job_id, FROM_THE_BEGINNING, retry, _lost(say)):
        print(one_line(event_line(event)), file=stream, flush=True)


def _live(api: "Api", job_id: str, stream: TextIO, retry: Retry) -> None:
    """The table is drawn from the job itself; events say when to look again."""
    from rich.live import Live

    job = api.job(job_id)
    screen = console(stream)
    with Live(live_view(job), console=screen, auto_refresh=False) as live:
        lost = _lost(lambda text: screen.print(text, markup=False))
        for _ in follow(api, job_id, str(job["seq"]), retry, lost):
            with suppress(EnvironmentFailed):  # a lost connection is noticed by `follow`
                live.update(live_view(api.job(job_id)), refresh=True)
        live.update(live_view(api.job(job_id)), refresh=True)


def _lost(tell: Callable[[str], None]) -> Callable[[str], None]:
    return lambda reason: tell(f"{reason}; trying again")
