"""The rows of the store on Azure Table Storage.

| PartitionKey | RowKey | what |
| --- | --- | --- |
| the first digit of the bucket | `record!ae!job_1!step_01` | the record of a step |
| the same as its record | `lapsed!001767225660000000!job_1!step_01` | a result that waits to be \
reported, by the microsecond at which it lapses |
| `check` | `check` | what a check writes |

A record has `step` (the ids, as JSON), `token` (of the write), `lapse` (the moment in the key of
the second row, empty if there is none) and `document0`, `document1` and so on: the document, in
pieces, since a property has a limit.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from azure.core import MatchConditions
from azure.data.tables import TableEntity, UpdateMode

from lucius_sdk.idempotency_store.azure_layout import Place, lapse_of, spelled
from lucius_sdk.idempotency_store.errors import RecordUnreadable
from lucius_sdk.idempotency_store.records import Record, StepKey, decode, encode

PARTITIONS = "0123456789abcdef"
_PIECE = 64 * 1024  # the most that a property can hold; a row holds 1 MiB

Row = dict[str, Any]
Operation = tuple[Any, ...]
"""As the client's transactions take them."""


class Version(NamedTuple):
    """`lapse` says which row of the index was written with the record; empty for none."""

    etag: str
    lapse: str

    def __str__(self) -> str:
        return f"{self.etag}|{self.lapse}"


CHECK: Row = {"PartitionKey": "check", "RowKey": "check"}


def record_row(place: Place) -> Row:
    """The keys of a record."""
    return {"PartitionKey": place.bucket[0], "RowKey": f"record!{place.bucket}!{place.name}"}


def etag_of(row: TableEntity) -> str:
    return str(row.metadata["etag"])


def read_record(row: TableEntity) -> Record:
    pieces = [row[name] for name in _piece_names(row)]
    if not all(isinstance(piece, bytes) for piece in pieces):
        raise RecordUnreadable("the stored record is no document")
    return decode(b"".join(pieces))


def write_operations(
    key: StepKey, place: Place, record: Record, token: str, before: Version | None
) -> Iterator[Operation]:
    """The record comes first. Last, if at all, comes the removal of what is out of date."""
    lapse = lapse_of(record)
    row = record_row(place) | {"step": spelled(key), "token": token, "lapse": lapse}
    yield _replacing(row | _pieces(encode(record).encode()), before)
    if lapse:
        index = _lapse_row(place, lapse) | {"step": spelled(key)}
        yield "upsert", index, {"mode": UpdateMode.REPLACE}
    if before is not None and before.lapse not in ("", lapse):
        yield "delete", _lapse_row(place, before.lapse)


def removal_operations(row: TableEntity) -> Iterator[Operation]:
    """Of a record as it was found, with its row of the index."""
    yield "delete", row, _if_it_is(etag_of(row))
    if row.get("lapse"):
        partition, (_, _, name) = row["PartitionKey"], row["RowKey"].split("!", 2)
        yield "delete", _lapse_row(Place(partition, name), row["lapse"])


def lapsed_query(partition: str, before: str) -> str:
    keys = f"RowKey ge 'lapsed!' and RowKey lt 'lapsed!{before}'"
    return f"PartitionKey eq '{partition}' and {keys}"


def old_query(bucket: str, before: str) -> str:
    keys = f"RowKey ge 'record!{bucket}!' and RowKey lt 'record!{bucket}\"'"
    return f"PartitionKey eq '{bucket[0]}' and {keys} and Timestamp lt datetime'{before}'"


def _replacing(row: Row, before: Version | None) -> Operation:
    if before is None:
        return "create", row
    return "update", row, {"mode": UpdateMode.REPLACE, **_if_it_is(before.etag)}


def _if_it_is(etag: str) -> dict[str, Any]:
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


def _lapse_row(place: Place, lapse: str) -> Row:
    return {"PartitionKey": place.bucket[0], "RowKey": f"lapsed!{lapse}!{place.name}"}


def _pieces(document: bytes) -> Row:
    starts = range(0, len(document), _PIECE)
    return {f"document{n}": document[s : s + _PIECE] for n, s in enumerate(starts)}


def _piece_names(row: TableEntity) -> Iterator[str]:
    number = 0
    while f"document{number}" in row:
        yield f"document{number}"
        number += 1
