"""Jobs, steps and events as a person reads them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lucius_cli.output import Table, age, moment

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lucius_cli.server_events import ServerEvent

JsonObject = dict[str, Any]

SNAPSHOT = "snapshot"
"""Name of the event that tells the whole job, where single events cannot tell what was missed."""

_FACTS = (
    ("job", "jobId"),
    ("state", "state"),
    ("tenant", "tenant_id"),
    ("type", "request_type"),
    ("created", "created_at"),
    ("updated", "updated_at"),
    ("completed", "completed_at"),
    ("deadline", "sla_deadline"),
    ("doc", "doc_id"),
    ("redrive of", "redrive_of"),
    ("correlation", "correlation_id"),
)


def facts(job: JsonObject) -> list[tuple[str, object]]:
    shown = [(name, _fact(member, job)) for name, member in _FACTS]
    return [*shown, ("output", job.get("final_output")), ("error", _error(job))]


def job_table(jobs: Sequence[JsonObject], now: datetime) -> Table:
    """What is always equally long stands first, so that lines stay aligned where they wrap."""
    return Table(
        ("job", "state", "age", "type", "tenant"),
        [
            [
                _text(job, "jobId"),
                _text(job, "state"),
                age(job.get("created_at"), now),
                _text(job, "request_type"),
                _text(job, "tenant_id"),
            ]
            for job in jobs
        ],
    )


def step_table(job: JsonObject) -> Table:
    return Table(
        ("step", "type", "state", "attempt", "note"),
        [
            [
                _text(step, "stepId"),
                _text(step, "step_type"),
                _text(step, "state"),
                _text(step, "attempt_no") or "0",
                _note(step),
            ]
            for step in job.get("steps", ())
        ],
    )


def dead_letter_table(letters: Iterable[JsonObject], now: datetime) -> Table:
    return Table(
        ("job", "step", "attempt", "kind", "age", "code", "message"),
        [
            [
                _text(letter, "jobId") or "-",
                _text(letter, "stepId") or "-",
                _text(letter, "attempt_no") or "-",
                _text(letter, "kind"),
                age(letter.get("last_at"), now),
                _text(letter, "code"),
                _text(letter, "message") + _redriven(letter),
            ]
            for letter in letters
        ],
    )


def event_line(event: "ServerEvent") -> str:
    """One line: when, of what, from where to where, and why."""
    data = event.data
    if event.name == SNAPSHOT:
        return f"{moment(data.get('updated_at'))}  job  {data.get('state')}  (as it is now)"
    attempt = f" attempt {data['attempt_no']}" if data.get("attempt_no") else ""
    return f"{moment(data.get('at'))}  {data.get('stepId') or 'job'}{attempt}  {_change(data)}"


def live_view(job: JsonObject) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from lucius_cli.output import rich_table, state_style

    title = Text.assemble(
        (_text(job, "jobId"), "bold"),
        "  ",
        (_text(job, "state"), state_style(_text(job, "state"))),
        f"  {_text(job, 'request_type')}",
    )
    return Group(title, rich_table(step_table(job)))


def _redriven(letter: JsonObject) -> str:
    return f" (redriven by {letter['redriven_by']})" if letter.get("redriven_by") else ""


def _change(data: JsonObject) -> str:
    before, after = data.get("before"), data.get("after")
    change = f"{before} -> {after}" if before else str(after or data.get("type") or "")
    why = [str(data[name]) for name in ("cause", "detail") if data.get(name)]
    if data.get("by"):
        why.append(f"by {data['by']}")
    return f"{change}  ({', '.join(why)})" if why else change


def _note(step: JsonObject) -> str:
    progress = step.get("progress") or {}
    if progress.get("fraction") is not None:
        return f"{progress['fraction']:.0%} {progress.get('note') or ''}".rstrip()
    return str(progress.get("note") or _error(step) or "")


def _error(row: JsonObject) -> str | None:
    error = row.get("error") or {}
    parts = (error.get("code"), error.get("message"))
    return ": ".join(str(part) for part in parts if part) or None


def _fact(member: str, row: JsonObject) -> str:
    text = _text(row, member)
    return moment(text) if member.endswith("_at") or member == "sla_deadline" else text


def _text(row: JsonObject, member: str) -> str:
    value = row.get(member)
    return "" if value is None else str(value)
