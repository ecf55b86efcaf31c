"""Between the fields of rows and the values that SQLite keeps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from lucius_contract.audit import DeadLetterKind
from lucius_orchestrator.adapters.ledger import codec
from lucius_orchestrator.domain.aggregate import Aggregate, Job, Step
from lucius_orchestrator.domain.timers import Due, TimerKind
from lucius_orchestrator.ports.ledger import DeadLetterRow, Stored
from lucius_outbox.sqlite.times import microseconds, moment, optional_microseconds

STEPS_PER_JOB = 32
"""Step numbers that belong to one job; a protocol has at most 30 steps."""

Encoder = Callable[[Any], Any]


class SqliteVersion(NamedTuple):
    """`job_no` finds the rows without an index; `number` is what every commit moves."""

    job_no: int
    number: int


def _optional(encode: Encoder) -> Encoder:
    return lambda value: None if value is None else encode(value)


def _encoder(name: str) -> Encoder:
    if name == "state":
        return str.__str__  # the driver binds plain text faster than an enum
    if name in codec.TIME_COLUMNS:
        return optional_microseconds
    if name == "attempts":
        return lambda attempts: codec.encode_attempts(attempts) if attempts else "[]"
    if name == "artifacts":
        return lambda artifacts: codec.to_json(artifacts) if artifacts else "[]"
    return _optional(codec.to_json) if name in codec.JSON_COLUMNS else _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


_ENCODERS = {name: _encoder(name) for name in (*codec.JOB_COLUMNS, *codec.STEP_COLUMNS)}


_JOB_ENCODERS = tuple((name, _ENCODERS[name]) for name in codec.JOB_COLUMNS)
_STEP_ENCODERS = tuple((name, _ENCODERS[name]) for name in codec.STEP_COLUMNS)


def encoded(changes: Mapping[str, Any]) -> list[Any]:
    return [_ENCODERS[name](value) for name, value in changes.items()]


def job_values(job: Job) -> list[Any]:
    row = job.__dict__
    return [encode(row[name]) for name, encode in _JOB_ENCODERS]


def step_values(step: Step) -> list[Any]:
    row = step.__dict__
    return [encode(row[name]) for name, encode in _STEP_ENCODERS]


def letter_values(letter: DeadLetterRow) -> list[Any]:
    return [microseconds(value) if isinstance(value, datetime) else value for value in letter]


def letter_of(row: Sequence[Any]) -> DeadLetterRow:
    letter = DeadLetterRow(*row)
    return letter._replace(
        kind=DeadLetterKind(letter.kind),
        first_at=moment(row[8]),
        last_at=moment(row[9]),
    )


def due_of(at: int | None, kind: str | None) -> Due | None:
    return None if at is None or kind is None else Due(moment(at), TimerKind(kind))


def due_values(due: Due | None) -> tuple[int | None, str | None]:
    return (None, None) if due is None else (microseconds(due.at), due.kind.value)


def job_of(document: str, values: Iterable[Any]) -> Job:
    plan, _ = codec.decode_plan(document)
    return codec.job_of(plan, _decoded(codec.JOB_COLUMNS, values))


def stored_of(rows: Sequence[Sequence[Any]]) -> Stored:
    """From the rows of `statements.LOAD`: one per step, the job's values in each."""
    job_no, version, due_at, due_kind, document, *values = rows[0]
    job_plan, step_plans = codec.decode_plan(document)
    width = len(codec.JOB_COLUMNS)
    job = codec.job_of(job_plan, _decoded(codec.JOB_COLUMNS, values[:width]))
    steps = tuple(
        codec.step_of(plan, _decoded(codec.STEP_COLUMNS, row[5 + width :]))
        for plan, row in zip(step_plans, rows, strict=True)
    )
    return Stored(Aggregate(job, steps), SqliteVersion(job_no, version), due_of(due_at, due_kind))


def _decoded(names: Sequence[str], values: Iterable[Any]) -> dict[str, Any]:
    return {
        name: moment(value) if name in codec.TIME_COLUMNS and value is not None else value
        for name, value in zip(names, values, strict=True)
    }
