"""How the values of a row are spelled in a table.

Every property is JSON text, also where it is only a number or a name, so that there is a null:
a merge cannot take a property away. The JOB row and the STEP rows have one property for each field
of a job or a step. A text that is longer than a property may be goes on in `name__2`, `name__3`
and so on; each is full but the last, which may be empty, and what comes behind the last is what an
earlier, longer text has left there.

Members that a later release adds are passed over; those that an earlier one did not have are what
the field is without them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Any, NamedTuple, get_type_hints

import pydantic_core
from pydantic import TypeAdapter

from lucius_contract.audit import DeadLetterKind
from lucius_contract.states import OutboxState
from lucius_orchestrator.adapters.ledger import codec, outbox_rows
from lucius_orchestrator.adapters.ledger.tables.partition import JOB, JOBS, STEP_ROWS, Place
from lucius_orchestrator.adapters.ledger.tables.store import Values
from lucius_orchestrator.domain.aggregate import Job, Step
from lucius_orchestrator.domain.decision import OutboxKind, OutboxRow
from lucius_orchestrator.domain.timers import Due
from lucius_orchestrator.ports.ledger import DeadLetterRow

Properties = Mapping[str, str]

PIECE = 16_000
"""Characters of a property: Azure allows 32 Ki units of UTF-16, of which one may need two."""

ENTITY_LIMIT = 1024 * 1024
_OVERHEAD = 8
_PIECE_MARK = "__"


class _Spelling(NamedTuple):
    dump: Callable[[Any], str]
    load: Callable[[str], Any]


def _typed(kind: Any) -> _Spelling:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    return _Spelling(lambda value: adapter.dump_json(value).decode(), adapter.validate_json)


def _dump_letter(letter: DeadLetterRow) -> str:
    return codec.to_json(letter._asdict())


_letter = TypeAdapter(DeadLetterRow).validate_python


def _load_letter(text: str) -> DeadLetterRow:
    stored = pydantic_core.from_json(text)
    return DeadLetterRow(*_letter([stored.get(name) for name in DeadLetterRow._fields]))


def _load_outgoing(text: str) -> OutboxRow:
    stored = pydantic_core.from_json(text)
    return outbox_rows.row_of(OutboxKind(stored["kind"]), stored["topic"], stored)


def _dump_outgoing(row: OutboxRow) -> str:
    where = {"kind": outbox_rows.kind_as_written(row).value, "topic": outbox_rows.topic_of(row)}
    return codec.to_json({**where, **outbox_rows.payload_of(row)})


_PLAIN = _Spelling(codec.to_json, pydantic_core.from_json)
_PLACE, _DUE, _TIME = _typed(Place | None), _typed(Due | None), _typed(datetime | None)
_VALUES: Mapping[str, _Spelling] = {
    "timer": _DUE,
    "due": _DUE,
    "leash": _PLACE,
    "ended": _PLACE,
    "pending": _PLACE,
    "index": _PLACE,
    "written_at": _TIME,
    "due_at": _TIME,
    "until": _TIME,
    "first_at": _TIME,
    "reported_at": _TIME,
    "state": _typed(OutboxState),
    "kind": _typed(DeadLetterKind),
    "events": _Spelling(codec.encode_events, lambda text: tuple(codec.decode_events(text))),
    "row": _Spelling(_dump_outgoing, _load_outgoing),
    "letter": _Spelling(_dump_letter, _load_letter),
}


class _Record:
    """A job or a step: a property for each of its fields."""

    def __init__(self, kind: type[Any], columns: Iterable[str]) -> None:
        hints = get_type_hints(kind)
        self._kind = kind
        self._spellings = {field.name: _typed(hints[field.name]) for field in fields(kind)}
        self._required = {f.name for f in fields(kind) if f.default is MISSING}
        self._columns = tuple(columns)

    def dump(self, value: Any, *, whole: bool) -> Iterator[tuple[str, str]]:
        """A job changes in its columns alone: the rest is written once."""
        for name in self._spellings if whole else self._columns:
            yield name, self._spellings[name].dump(getattr(value, name))

    def load(self, texts: Mapping[str, str]) -> Any:
        """None: the row holds none."""
        if not self._required <= texts.keys():
            return None
        found = {
            name: spelling.load(texts[name])
            for name, spelling in self._spellings.items()
            if name in texts
        }
        return self._kind(**found)

    def __contains__(self, name: str) -> bool:
        return name in self._spellings


_JOB = _Record(Job, codec.JOB_COLUMNS)
_STEP = _Record(Step, codec.STEP_COLUMNS)
_RECORDS: Mapping[str, _Record] = {"job": _JOB, "step": _STEP}


def to_properties(values: Values, *, whole: bool) -> dict[str, str]:
    """`whole`: of a new row; else of one that is there and keeps what is not named."""
    properties: dict[str, str] = {}
    for name, value in values.items():
        record = _RECORDS.get(name)
        if record is not None:
            spelled = record.dump(value, whole=whole)
        else:
            spelled = iter([(name, _VALUES.get(name, _PLAIN).dump(value))])
        for property_name, text in spelled:
            properties.update(_pieces(property_name, text))
    return properties


def to_values(table: str, row: str, properties: Properties) -> dict[str, Any]:
    texts = {
        name: _whole(name, text, properties)
        for name, text in properties.items()
        if _PIECE_MARK not in name
    }
    record = _record_of(table, row)
    values = {
        name: _VALUES.get(name, _PLAIN).load(text)
        for name, text in texts.items()
        if record is None or name not in record[1] or name == "tenant_id"
    }
    if record is not None:
        name, kind = record
        found = kind.load(texts)
        if found is not None:
            values[name] = found
    return values


def size_of(properties: Properties) -> int:
    """In bytes, as Azure counts them; keys and time stamp are within its allowance."""
    return sum(
        _OVERHEAD + 2 * len(name) + len(text.encode("utf-16-le"))
        for name, text in properties.items()
    )


def _record_of(table: str, row: str) -> tuple[str, _Record] | None:
    if table != JOBS:
        return None
    if row == JOB:
        return "job", _JOB
    return ("step", _STEP) if STEP_ROWS[0] <= row < STEP_ROWS[1] else None


def _pieces(name: str, text: str) -> Iterator[tuple[str, str]]:
    yield name, text[:PIECE]
    for number, start in enumerate(range(PIECE, len(text) + 1, PIECE), start=2):
        yield f"{name}{_PIECE_MARK}{number}", text[start : start + PIECE]


def _whole(name: str, text: str, properties: Properties) -> str:
    if len(text) < PIECE:
        return text
    pieces, number = [text], 2
    while len(pieces[-1]) == PIECE:
        pieces.append(properties[f"{name}{_PIECE_MARK}{number}"])
        number += 1
    return "".join(pieces)
