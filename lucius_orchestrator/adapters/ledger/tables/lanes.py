"""Index rows of OUTBOX rows, lane by lane."""

import heapq
from collections import Counter
from collections.abc import Collection

from lucius_contract.routing import LANES
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.indexes import PENDING, pending_partition
from lucius_orchestrator.adapters.ledger.tables.store import Row, Tables
from lucius_orchestrator.domain.decision import OutboxKind

_PAGE = 1000


class Lanes:
    """Index rows of some lanes, merged by their keys, which begin with the time. One scan sees them
    all, unless there are very many: then each lane is read alone."""

    def __init__(self, tables: Tables, kind: OutboxKind) -> None:
        self._tables = tables
        self._kind = kind
        self._pages: list[tuple[str, int, list[Row], bool]] = []

    @classmethod
    async def open(cls, tables: Tables, kind: OutboxKind, lanes: Collection[int]) -> "Lanes":
        found = cls(tables, kind)
        first, end = keys.below(kind.value)
        rows = await tables.scan(PENDING, (first, ""), end, _PAGE)
        if len(rows) < _PAGE:
            partitions = {pending_partition(kind, lane) for lane in lanes}
            wanted = [row for row in rows if row.partition in partitions]
            found._push(0, sorted(wanted, key=_key, reverse=True), is_full=False)
        else:
            for lane in lanes:
                await found._read(lane, "")
        return found

    async def oldest(self) -> Row | None:
        if not self._pages:
            return None
        _, lane, rows, is_full = heapq.heappop(self._pages)
        row = rows.pop()
        if rows:
            self._push(lane, rows, is_full=is_full)
        elif is_full:
            await self._read(lane, row.key + "!")
        return row

    async def _read(self, lane: int, first: str) -> None:
        partition = pending_partition(self._kind, lane)
        page = await self._tables.query(PENDING, partition, first, keys.END, _PAGE)
        self._push(lane, page[::-1], is_full=len(page) == _PAGE)

    def _push(self, lane: int, rows: list[Row], *, is_full: bool) -> None:
        """`rows` with the oldest last."""
        if rows:
            heapq.heappush(self._pages, (rows[-1].key, lane, rows, is_full))


def _key(row: Row) -> str:
    return row.key


async def counted(tables: Tables, kind: OutboxKind) -> Counter[int]:
    """How many rows of the kind each lane has."""
    first, end = keys.below(kind.value)
    after, found = (first, ""), Counter[str]()
    while rows := await tables.scan(PENDING, after, end, _PAGE):
        found.update(row.partition for row in rows)
        after = rows[-1].partition, rows[-1].key
        if len(rows) < _PAGE:
            break
    lanes = {pending_partition(kind, lane): lane for lane in range(LANES)}
    return Counter({lanes[partition]: count for partition, count in found.items()})
