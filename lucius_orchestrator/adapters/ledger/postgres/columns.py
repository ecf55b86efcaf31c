"""Between the fields of rows and the values that PostgreSQL keeps."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from lucius_contract.audit import DeadLetterKind, EventType
from lucius_orchestrator.adapters.ledger import codec
from lucius_orchestrator.domain.aggregate import Aggregate, Job, Step
from lucius_orchestrator.domain.decision import AuditEvent
from lucius_orchestrator.domain.timers import Due, TimerKind
from lucius_orchestrator.ports.ledger import DeadLetterRow, Stored

_ESCAPE = "\x1a"  # SUBSTITUTE, which nobody writes
_ESCAPED = {f"{_ESCAPE}0": "\0", f"{_ESCAPE}1": _ESCAPE}
_ESCAPED_PATTERN = re.compile(f"{_ESCAPE}[01]")

Encoder = Callable[[Any], Any]


def text(value: str) -> str:
    """Text without NUL, the one character that PostgreSQL refuses; `text_of` is the way back."""
    if "\0" not in value and _ESCAPE not in value:
        return value
    return value.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")


def text_of(value: str) -> str:
    if _ESCAPE not in value:
        return value
    return _ESCAPED_PATTERN.sub(lambda found: _ESCAPED[found[0]], value)


def _optional(encode: Encoder) -> Encoder:
    return lambda value: None if value is None else encode(value)


def _encoder(name: str) -> Encoder:
    if name == "attempts":
        return codec.encode_attempts
    return _optional(codec.to_json) if name in codec.JSON_COLUMNS else _as_text


def _as_text(value: Any) -> Any:
    return text(value) if isinstance(value, str) else value


def _from_text(value: Any) -> Any:
    return text_of(value) if isinstance(value, str) else value


_ENCODERS = {name: _encoder(name) for name in (*codec.JOB_COLUMNS, *codec.STEP_COLUMNS)}


def encoded(changes: Mapping[str, Any]) -> list[Any]:
    return [_ENCODERS[name](value) for name, value in changes.items()]


def job_values(job: Job) -> list[Any]:
    return [_ENCODERS[name](getattr(job, name)) for name in codec.JOB_COLUMNS]


def _step_values(step: Step) -> list[Any]:
    return [_ENCODERS[name](getattr(step, name)) for name in codec.STEP_COLUMNS]


def step_rows(aggregate: Aggregate) -> str:
    """As one JSON text, by the names of the columns."""
    job_id, names = aggregate.job.job_id, ("job_id", "step_index", *codec.STEP_COLUMNS)
    rows = [(job_id, step.step_index, *_step_values(step)) for step in aggregate.steps]
    return codec.to_json([dict(zip(names, row, strict=True)) for row in rows])


def event_rows(job_id: str, events: Sequence[AuditEvent]) -> str:
    return codec.to_json([{"job_id": job_id, **_texts(event._asdict())} for event in events])


def letter_rows(letters: Iterable[DeadLetterRow]) -> str:
    """Each id once: one statement cannot write a row twice."""
    rows = {letter.id: _texts(letter._asdict()) for letter in letters}
    return codec.to_json(list(rows.values()))


def event_of(row: Sequence[Any]) -> AuditEvent:
    event = AuditEvent(*map(_from_text, row))
    return event._replace(type=EventType(event.type), attempt_no=_whole(event.attempt_no))


def letter_values(letter: DeadLetterRow) -> list[Any]:
    return [_as_text(value) for value in letter]


def letter_of(row: Sequence[Any]) -> DeadLetterRow:
    letter = DeadLetterRow(*map(_from_text, row))
    return letter._replace(kind=DeadLetterKind(letter.kind), attempt_no=_whole(letter.attempt_no))


def due_of(at: datetime | None, kind: str | None) -> Due | None:
    return None if at is None or kind is None else Due(at, TimerKind(kind))


def due_values(due: Due | None) -> tuple[datetime | None, str | None]:
    return (None, None) if due is None else (due.at, due.kind.value)


def job_of(document: str, values: Iterable[Any]) -> Job:
    plan, _ = codec.decode_plan(document)
    return codec.job_of(plan, _named(codec.JOB_COLUMNS, values))


def stored_of(rows: Sequence[Sequence[Any]]) -> Stored:
    """From the rows of `statements.LOAD`: one per step, the job's values in each, the document in
    the first."""
    version, due_at, due_kind, document, *values = rows[0]
    job_plan, step_plans = codec.decode_plan(document)
    width = len(codec.JOB_COLUMNS)
    job = codec.job_of(job_plan, _named(codec.JOB_COLUMNS, values[:width]))
    steps = tuple(
        codec.step_of(plan, _named(codec.STEP_COLUMNS, row[4 + width :]))
        for plan, row in zip(step_plans, rows, strict=True)
    )
    return Stored(Aggregate(job, steps), version, due_of(due_at, due_kind))


def _named(names: Sequence[str], values: Iterable[Any]) -> dict[str, Any]:
    return {name: _from_text(value) for name, value in zip(names, values, strict=True)}


def _texts(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _as_text(value) for name, value in fields.items()}


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)
