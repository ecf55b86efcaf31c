"""Between rows and the values that a database keeps: a field is a column of the same name."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from lucius_artifacts.catalogue.texts import require_storable
from lucius_artifacts.model import (
    AuditRecord,
    Blob,
    Claim,
    Doomed,
    Entry,
    Fence,
    Hold,
    Producer,
    Run,
    Upload,
    Version,
)
from lucius_artifacts.states import VersionState

Row = TypeVar("Row")
Moment = Callable[[Any], datetime]


class Table(Generic[Row]):
    """`key` names the columns that tell its rows apart."""

    def __init__(self, name: str, kind: type[Row], *key: str) -> None:
        hints = get_type_hints(kind)
        self.name = f"lucius_artifacts_{name}"
        self.key = key
        self.columns = tuple(hints)
        self._row = kind
        self._types = tuple(_type_of(hint) for hint in hints.values())

    def values(self, row: Row) -> dict[str, Any]:
        values = {name: getattr(row, name) for name in self.columns}
        require_storable(values.items())
        return values

    def row(self, values: Sequence[Any], moment: Moment) -> Row:
        columns = zip(self._types, values, strict=True)
        return self._row(*(_decoded(kind, value, moment) for kind, value in columns))


def _type_of(hint: Any) -> Any:
    """Without the None that an optional field allows."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    return kinds[0] if kinds else hint


def _decoded(kind: Any, value: Any, moment: Moment) -> Any:
    if value is None:
        return None
    return moment(value) if kind is datetime else kind(value)


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version without its entries."""

    tenant_id: str
    name: str
    number: int
    state: VersionState
    created_at: datetime
    created_by: str
    job_id: str | None
    step_id: str | None
    attempt_no: int | None
    epoch: int | None
    published_at: datetime | None
    tombstoned_at: datetime | None
    retained_until: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class EntryRow:
    tenant_id: str
    name: str
    number: int
    path: str
    digest: str
    length: int
    media_type: str


UPLOADS = Table("uploads", Upload, "upload_id")
BLOBS = Table("blobs", Blob, "object_key")
CLAIMS = Table("claims", Claim, "tenant_id", "digest")
VERSIONS = Table("versions", VersionRow, "tenant_id", "name", "number")
ENTRIES = Table("entries", EntryRow, "tenant_id", "name", "number", "path")
HOLDS = Table("holds", Hold, "job_id", "digest")
DOOMED = Table("doomed", Doomed, "object_key")
RUNS = Table("runs", Run, "run_id")
AUDIT = Table("audit", AuditRecord)


def version_row(version: Version) -> VersionRow:
    producer = version.producer
    return VersionRow(
        version.tenant_id,
        version.name,
        version.number,
        version.state,
        version.created_at,
        version.created_by,
        producer.job_id if producer else None,
        producer.fence.step_id if producer else None,
        producer.fence.attempt_no if producer else None,
        producer.fence.epoch if producer else None,
        version.published_at,
        version.tombstoned_at,
        version.retained_until,
        version.reason,
    )


def entry_rows(version: Version) -> list[EntryRow]:
    key = (version.tenant_id, version.name, version.number)
    return [
        EntryRow(*key, entry.path, entry.digest, entry.length, entry.media_type)
        for entry in version.entries
    ]


def version_of(row: VersionRow, entries: Iterable[EntryRow]) -> Version:
    return Version(
        row.tenant_id,
        row.name,
        row.number,
        row.state,
        tuple(Entry(each.path, each.digest, each.length, each.media_type) for each in entries),
        row.created_at,
        row.created_by,
        _producer(row),
        row.published_at,
        row.tombstoned_at,
        row.retained_until,
        row.reason,
    )


def _producer(row: VersionRow) -> Producer | None:
    if row.job_id is None or row.step_id is None or row.attempt_no is None or row.epoch is None:
        return None
    return Producer(row.job_id, Fence(row.step_id, row.attempt_no, row.epoch))
