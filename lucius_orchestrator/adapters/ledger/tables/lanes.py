"""Index rows of OUTBOX rows, oldest first, and how many of them there are.

What waits of a kind lies in a partition for each lane. Directives lie in a partition for each lane
and queue, but for those of the previous release. See `indexes`.
"""

import heapq
from collections import Counter
from collections.abc import AsyncIterator, Collection
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.indexes import PENDING, QUEUES
from lucius_orchestrator.adapters.ledger.tables.store import Row, Tables, Values
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.ports.ledger import Backlog, Queue

PAGE = 1000
"""The most that one read of Azure Tables returns."""


class Range(NamedTuple):
    """Partitions from `first` on, below `end`."""

    first: str
    end: str

    @classmethod
    def of(cls, kind: OutboxKind) -> "Range":
        first, end = keys.below(kind.value)
        return cls(first, keys.below(QUEUES)[1] if kind is OutboxKind.DIRECTIVE else end)


class Stretch(NamedTuple):
    """Rows of one partition that follow each other. `behind` is the key behind which it may have
    more; None: these were the last."""

    partition: str
    rows: list[Row]
    behind: str | None


def is_free(values: Values, now: datetime) -> bool:
    due_at: datetime = values["due_at"]
    return due_at <= now and not is_claimed(values, now)


def is_claimed(values: Values, now: datetime) -> bool:
    until: datetime | None = values["until"]
    return until is not None and until >= now


def is_lapsed(values: Values, now: datetime) -> bool:
    """Whether a dispatcher had claimed the row, and did not settle it in time."""
    until: datetime | None = values["until"]
    return until is not None and until < now


def lane_of(row: Row) -> int:
    return int(row.partition.split("!")[1])


def queue_of(row: Row) -> Queue | None:
    """Return the queue of a directive, None for a row of the previous release."""
    if not row.partition.startswith(f"{QUEUES}!"):
        return None
    values = row.values
    return Queue(values["service"], Mode(values["mode"]), values["tenant_id"])


def stretches(rows: list[Row], *, is_full: bool) -> list[Stretch]:
    """Return what a scan has found, by partition. `is_full`: there may be more of the last one."""
    found = [
        Stretch(partition, list(group), None)
        for partition, group in groupby(rows, lambda row: row.partition)
    ]
    if is_full and found:
        found[-1] = found[-1]._replace(behind=rows[-1].key)
    return found


async def read_on(tables: Tables, partition: str, behind: str) -> Stretch:
    page = await tables.query(PENDING, partition, f"{behind}!", keys.END, PAGE)
    return Stretch(partition, page, page[-1].key if len(page) == PAGE else None)


async def partitions(tables: Tables, within: Range) -> AsyncIterator[Stretch]:
    """Yield how each partition begins. Costs a call for a thousand rows, or for each partition that
    has as many."""
    first = within.first
    while rows := await tables.scan(PENDING, (first, ""), within.end, PAGE):
        is_full = len(rows) == PAGE
        for stretch in stretches(rows, is_full=is_full):
            yield stretch
        if not is_full:
            return
        first = f"{rows[-1].partition}!"


class Lanes:
    """Index rows of some lanes, merged by their keys, which begin with the time. One scan sees them
    all, unless there are very many: then each partition is read as far as it is needed."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._heap: list[tuple[str, Stretch]] = []

    @classmethod
    async def open(cls, tables: Tables, kind: OutboxKind, lanes: Collection[int]) -> "Lanes":
        found = cls(tables)
        async for stretch in partitions(tables, Range.of(kind)):
            if lane_of(stretch.rows[0]) in lanes:
                found._push(stretch._replace(rows=stretch.rows[::-1]))
        return found

    async def oldest(self) -> Row | None:
        if not self._heap:
            return None
        _, stretch = heapq.heappop(self._heap)
        row = stretch.rows.pop()
        if not stretch.rows and stretch.behind is not None:
            following = await read_on(self._tables, stretch.partition, stretch.behind)
            stretch = following._replace(rows=following.rows[::-1])
        self._push(stretch)
        return row

    def _push(self, stretch: Stretch) -> None:
        """Its rows with the oldest last."""
        if stretch.rows:
            heapq.heappush(self._heap, (stretch.rows[-1].key, stretch))


async def counted(tables: Tables, kind: OutboxKind) -> Counter[int]:
    """Return how many rows of the kind each lane has."""
    return Counter([lane_of(row) async for row in _all(tables, kind)])


async def backlogs(tables: Tables) -> list[Backlog]:
    """Return what waits by service and lane. Of a row of the previous release only its partition
    could name the service, and does not: it counts for the service ""."""
    counts, oldest = Counter[tuple[str, int]](), dict[tuple[str, int], datetime]()
    async for row in _all(tables, OutboxKind.DIRECTIVE):
        queue, at = queue_of(row), keys.moment_of(row.key)
        place = queue.service if queue else "", lane_of(row)
        counts[place] += 1
        oldest[place] = min(at, oldest.get(place, at))
    return [Backlog(*place, count, oldest[place]) for place, count in sorted(counts.items())]


async def _all(tables: Tables, kind: OutboxKind) -> AsyncIterator[Row]:
    first, end = Range.of(kind)
    after = first, ""
    while rows := await tables.scan(PENDING, after, end, PAGE):
        for row in rows:
            yield row
        if len(rows) < PAGE:
            return
        after = rows[-1].partition, rows[-1].key
