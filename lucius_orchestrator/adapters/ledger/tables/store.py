"""What Azure Table Storage offers, and no more: the whole of what the table ledger may use.

A table holds partitions, a partition holds rows in the order of their keys. Rows of one partition
can be written together or not at all, up to a hundred at once; rows of two partitions cannot. Each
write gives a row a new ETag that it never had before. One query of one partition sees the state of
a single moment.

    StoreError
    ├── EntityExists     a row to insert is there
    ├── NotFound         a row to change or to delete is not there
    └── EtagMismatch     a row was written meanwhile

All three name the row, and mean that nothing of the batch was written. A client that repeats a
request whose answer was lost may report them although the first try was written: whoever draws
conclusions from them looks for its own token first.
"""

import re
from bisect import bisect_left, insort
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any, NamedTuple, Protocol

from lucius_orchestrator.ports.ledger import LedgerUnavailable

BATCH_LIMIT = 100
KEY_LIMIT = 512
_ILLEGAL = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f]")

Values = Mapping[str, Any]


class StoreError(Exception):
    """A condition of a batch did not hold; nothing of it was written."""

    def __init__(self, row: str) -> None:
        super().__init__(row)
        self.row = row


class EntityExists(StoreError):
    """The row to insert is there."""


class NotFound(StoreError):
    """The row to change or to delete is not there."""


class EtagMismatch(StoreError):
    """The row was written since it was read."""


class StoreUnavailable(LedgerUnavailable):
    """The store did not answer; what was asked may or may not have been done."""


class Row(NamedTuple):
    partition: str
    key: str
    etag: str
    values: Values


class Insert(NamedTuple):
    row: str
    values: Values


class Merge(NamedTuple):
    """Set these values of a row, None like any other, and keep those that are not named. Without an
    ETag: of whatever is there."""

    row: str
    values: Values
    etag: str | None = None


class Replace(NamedTuple):
    row: str
    values: Values
    etag: str


class Delete(NamedTuple):
    row: str
    etag: str | None = None


Operation = Insert | Merge | Replace | Delete


class Tables(Protocol):
    async def batch(
        self, table: str, partition: str, operations: Sequence[Operation]
    ) -> list[str | None]:
        """Do all of it or nothing. Each row at most once, at most a hundred. Returns the rows' new
        ETags, None for the deleted. The first operation whose condition fails is the one named."""

    async def get(self, table: str, partition: str, row: str) -> Row | None:
        """One row, or None."""

    async def query(
        self,
        table: str,
        partition: str,
        first: str,
        end: str,
        limit: int,
        also: str | None = None,
    ) -> list[Row]:
        """Rows of one partition with `first` <= key < `end`, in order, and the row `also`."""

    async def scan(self, table: str, after: tuple[str, str], end: str, limit: int) -> list[Row]:
        """Rows of several partitions in the order of (partition, key): those behind `after`, in
        partitions below `end`. The only read that costs as much as there are partitions."""

    async def close(self) -> None:
        """Give back what it holds; closing twice is nothing."""


class Call(NamedTuple):
    """A storage call that is about to be made."""

    verb: str
    table: str
    partition: str
    operations: tuple[Operation, ...] = ()


Hook = Callable[[Call], Awaitable[None]]


@dataclass(slots=True)
class _Partition:
    rows: dict[str, Row] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Shelf:
    """What all handles of one store share."""

    tables: dict[str, dict[str, _Partition]] = field(default_factory=dict)
    etags: "count[int]" = field(default_factory=lambda: count(1))


class MemoryTables:
    """Tables in memory. Values stay Python objects; rows are copied when written and never changed.

    `before` is awaited before every call of this handle, so that a test can stop or break a writer
    between any two of them. `shared` gives another handle on the same rows: another process.
    Closing a handle closes that one alone.
    """

    def __init__(self, before: Hook | None = None, *, _shelf: _Shelf | None = None) -> None:
        self.before = before
        self._shelf = _shelf or _Shelf()
        self._closed = False

    def shared(self, before: Hook | None = None) -> "MemoryTables":
        return MemoryTables(before, _shelf=self._shelf)

    async def batch(
        self, table: str, partition: str, operations: Sequence[Operation]
    ) -> list[str | None]:
        if self.before is not None or self._closed:
            await self._announce(Call("batch", table, partition, tuple(operations)))
        check_batch(partition, operations)
        partitions = self._shelf.tables.setdefault(table, {})
        rows = partitions.get(partition) or _Partition()
        for operation in operations:
            _check_condition(operation, rows.rows.get(operation.row))
        etags = [self._write(partition, rows, operation) for operation in operations]
        if rows.keys:
            partitions[partition] = rows
        else:
            partitions.pop(partition, None)
        return etags

    async def get(self, table: str, partition: str, row: str) -> Row | None:
        if self.before is not None or self._closed:
            await self._announce(Call("get", table, partition))
        rows = self._rows(table, partition)
        return rows.rows.get(row) if rows else None

    async def query(
        self,
        table: str,
        partition: str,
        first: str,
        end: str,
        limit: int,
        also: str | None = None,
    ) -> list[Row]:
        if self.before is not None or self._closed:
            await self._announce(Call("query", table, partition))
        rows = self._rows(table, partition)
        if rows is None:
            return []
        place = bisect_left(rows.keys, first)
        stop = min(bisect_left(rows.keys, end), place + limit)
        keys = rows.keys[place:stop]
        if also in rows.rows and also not in keys:
            keys = sorted([*keys, also])[:limit]
        return [rows.rows[key] for key in keys]

    async def scan(self, table: str, after: tuple[str, str], end: str, limit: int) -> list[Row]:
        if self.before is not None or self._closed:
            await self._announce(Call("scan", table, after[0]))
        partitions = self._shelf.tables.get(table, {})
        found = (
            partitions[name].rows[key]
            for name in sorted(partitions)
            if after[0] <= name < end
            for key in partitions[name].keys
            if (name, key) > after
        )
        return list(islice(found, limit))

    async def close(self) -> None:
        self._closed = True

    async def _announce(self, call: Call) -> None:
        if self._closed:
            raise StoreUnavailable("the tables are closed")
        if self.before is not None:
            await self.before(call)

    def _rows(self, table: str, partition: str) -> _Partition | None:
        return self._shelf.tables.get(table, {}).get(partition)

    def _write(self, partition: str, rows: _Partition, operation: Operation) -> str | None:
        key = operation.row
        if isinstance(operation, Delete):
            del rows.rows[key]
            del rows.keys[bisect_left(rows.keys, key)]
            return None
        values = dict(operation.values)
        if isinstance(operation, Merge):
            values = {**rows.rows[key].values, **values}
        elif isinstance(operation, Insert):
            insort(rows.keys, key)
        etag = str(next(self._shelf.etags))
        rows.rows[key] = Row(partition, key, etag, values)
        return etag


def check_batch(partition: str, operations: Sequence[Operation]) -> None:
    if not 1 <= len(operations) <= BATCH_LIMIT:
        raise ValueError(f"a batch has 1 to {BATCH_LIMIT} operations, not {len(operations)}")
    keys = {operation.row for operation in operations}
    if len(keys) < len(operations):
        raise ValueError("a batch writes each row at most once")
    for key in (partition, *keys):
        if not 1 <= len(key) <= KEY_LIMIT or _ILLEGAL.search(key):
            raise ValueError(f"not a legal key: {key!r}")


def _check_condition(operation: Operation, row: Row | None) -> None:
    if isinstance(operation, Insert):
        if row is not None:
            raise EntityExists(operation.row)
    elif row is None:
        raise NotFound(operation.row)
    elif operation.etag is not None and operation.etag != row.etag:
        raise EtagMismatch(operation.row)
