"""Queues of directives: which of them wait, and their oldest rows.

A look begins with one page of the index. If it holds all rows, they are grouped in memory. If not,
the look skips: it asks for the first rows behind a key that sorts behind everything of a partition,
and so gets from one lane and service to the next, and from queue to queue, however many rows lie in
between. Lanes come before services in the partitions, so that each lane is walked by itself and the
walks are merged by tenant. All that costs a call for each lane, service and mode, and at most one
more for each queue that is listed or read further than its head.

Rows that are held or not due yet lie among the others. Nothing but reading tells them apart:

*   Behind the head of a queue in which no row is free one page is read in each look, and the next
    look goes on behind it, until the end was seen; then it begins again.
*   A walk that has met `FRUITLESS` reads without a free row stops, and the next one goes on there.

So what hides a row costs a bounded number of calls, and hides it for a bounded number of looks.

Weaker than on SQL: while there are more rows than a page holds, a look does not see all rows whose
claim has lapsed. It sees those at the heads of lanes, services and queues, and those of one page
that moves on through the whole index: a lapsed row is found after as many looks as there are pages,
or when its queue has its turn. The order of a queue is exact among the rows that were read.
"""

import heapq
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from lucius_contract import routing
from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.indexes import (
    PENDING,
    QUEUES,
    pending_partition,
    queue_partition,
)
from lucius_orchestrator.adapters.ledger.tables.lanes import (
    PAGE,
    Range,
    Stretch,
    is_free,
    is_lapsed,
    lane_of,
    queue_of,
    read_on,
    stretches,
)
from lucius_orchestrator.adapters.ledger.tables.partition import Place
from lucius_orchestrator.adapters.ledger.tables.store import Row, Tables
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.ports.ledger import Queue

GLANCE = 20
"""Rows that are read to see what comes next: heads of several queues, or of one that is deep."""

FRUITLESS = 5
REMEMBERED = 1000
"""Places at which later looks go on. Of the oldest, which are forgotten, looks begin anew."""

_ALL = Range.of(OutboxKind.DIRECTIVE)
_START = (_ALL.first, "")


class Head(NamedTuple):
    """Free rows of a partition, as far as it was read: up to `behind`, or to its end if None."""

    partition: str
    free: list[Row]
    behind: str | None


class Waiting(NamedTuple):
    """A queue that has free rows; in mode BURST its heads lie in several lanes."""

    queue: Queue
    heads: list[Head]


class Look(Protocol):
    """What may be claimed at one moment."""

    services: list[str]
    """Those that directives wait for."""

    unnamed: list[Head]
    """Rows of the previous release, lane by lane."""

    def lapsed(self) -> list[Row]:
        """Return the rows that were met since the last call whose claim has lapsed. They are in no
        head."""

    async def waiting(
        self, service: str, mode: Mode, last: Queue | None, count: int
    ) -> list[Waiting]:
        """Return up to `count` queues, those behind the last one first, each once."""

    async def of(self, queue: Queue) -> Waiting:
        """Return a queue by its name, with or without free rows."""

    async def rows(self, heads: Sequence[Head], count: int) -> list[Row]:
        """Return free rows, the one that became due first in front; at least `count`, if the heads
        and a page behind each have as many."""


class Queues:
    """Makes looks, and remembers where the next one goes on."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._swept = _START
        self.cursors = Places()
        """Behind which row a partition is read next, if nothing is free at its head."""
        self.stops = Places()
        """With which partition the next walk begins, by lane, service and mode."""

    async def look(self, lanes: Collection[int], now: datetime) -> Look:
        page = await self._tables.scan(PENDING, _START, _ALL.end, PAGE)
        if len(page) < PAGE:
            self._swept = _START
            return WholeLook((row for row in page if lane_of(row) in lanes), now)
        look = SkippingLook(self._tables, self, lanes, now)
        await look.begin(page, await self._sweep(page))
        return look

    async def _sweep(self, first_page: list[Row]) -> list[Row]:
        """Return the page that comes next in a round through the index."""
        page = first_page
        if self._swept != _START:
            page = await self._tables.scan(PENDING, self._swept, _ALL.end, PAGE)
        is_full = len(page) == PAGE
        self._swept = (page[-1].partition, page[-1].key) if is_full else _START
        return page


class Places(dict[str, str]):
    """As many as are remembered."""

    def __setitem__(self, name: str, place: str) -> None:
        super().__setitem__(name, place)
        if len(self) > REMEMBERED:
            del self[next(iter(self))]


class WholeLook:
    """At all rows, in memory."""

    def __init__(self, rows: Iterable[Row], now: datetime) -> None:
        self.unnamed: list[Head] = []
        self._lapsed: list[Row] = []
        self._queues: dict[Queue, Waiting] = {}
        self._services = set[str]()
        for stretch in stretches(list(rows), is_full=False):
            self._add(stretch, now)
        self.services = sorted(self._services)

    def lapsed(self) -> list[Row]:
        lapsed, self._lapsed = self._lapsed, []
        return lapsed

    async def waiting(
        self, service: str, mode: Mode, last: Queue | None, count: int
    ) -> list[Waiting]:
        found = [
            waiting
            for queue, waiting in self._queues.items()
            if (queue.service, queue.mode) == (service, mode)
        ]
        return _in_turn(found, last)[:count]

    async def of(self, queue: Queue) -> Waiting:
        return self._queues.get(queue, Waiting(queue, []))

    async def rows(self, heads: Sequence[Head], count: int) -> list[Row]:  # noqa: ARG002
        return _in_order(heads)

    def _add(self, stretch: Stretch, now: datetime) -> None:
        queue, (lapsed, free) = queue_of(stretch.rows[0]), _claimable(stretch.rows, now)
        self._lapsed += lapsed
        head = Head(stretch.partition, free, None)
        if queue is None:
            self.unnamed.append(head)
            return
        self._services.add(queue.service)
        if free:
            self._queues.setdefault(queue, Waiting(queue, [])).heads.append(head)


class SkippingLook:
    """At rows as they are needed."""

    def __init__(
        self, tables: Tables, queues: Queues, lanes: Collection[int], now: datetime
    ) -> None:
        self.tables = tables
        self.queues = queues
        self._lanes = sorted(lanes)
        self._now = now
        self._lapsed: dict[Place, Row] = {}
        self._lanes_of: dict[tuple[str, Mode], set[int]] = {}
        self.services: list[str] = []
        self.unnamed: list[Head] = []

    async def begin(self, page: list[Row], swept: list[Row]) -> None:
        for row in (*page, *swept):
            if lane_of(row) in self._lanes:
                self._free([row])
        for lane in self._lanes:
            await self._discover(lane)
        self.services = sorted({service for service, _ in self._lanes_of})
        if queue_of(page[0]) is None:  # they come first in the index
            for lane in self._lanes:
                partition = pending_partition(OutboxKind.DIRECTIVE, lane)
                self.unnamed.append(await self.head(Stretch(partition, [], "")))

    def lapsed(self) -> list[Row]:
        lapsed, self._lapsed = self._lapsed, {}
        return list(lapsed.values())

    async def waiting(
        self, service: str, mode: Mode, last: Queue | None, count: int
    ) -> list[Waiting]:
        """Merges the walks of the lanes by tenant."""
        ahead: list[tuple[_Turn, int, Head, _Walk]] = []
        found: dict[Queue, Waiting] = {}

        async def go_on(walk: _Walk) -> None:
            head = await walk.next()
            if head is not None:
                heapq.heappush(ahead, (_turn(_queue(head), last), walk.lane, head, walk))

        for lane in sorted(self._lanes_of.get((service, mode), ())):
            await go_on(_Walk(self, lane, service, mode, last))
        while ahead:
            _, _, head, walk = heapq.heappop(ahead)
            queue = _queue(head)
            if len(found) == count and queue not in found:
                break
            found.setdefault(queue, Waiting(queue, [])).heads.append(head)
            await go_on(walk)
        return _in_turn(found.values(), last)

    async def of(self, queue: Queue) -> Waiting:
        lanes = self._lanes_of.get((queue.service, queue.mode), set())
        if queue.mode is Mode.DEFAULT:
            lanes = lanes & {routing.lane_of(queue.tenant_id.strip().lower())}
        partitions = [queue_partition(queue, lane) for lane in sorted(lanes)]
        return Waiting(queue, [await self.head(Stretch(each, [], "")) for each in partitions])

    async def rows(self, heads: Sequence[Head], count: int) -> list[Row]:
        """Reads on where a row that was not read may belong among the first."""
        rows = _in_order(heads)[:count]
        newest = max(row.key for row in rows) if len(rows) == count else keys.END
        return _in_order([await self._read_on(head, newest) for head in heads])

    async def head(self, stretch: Stretch) -> Head:
        """Return the free rows of a partition that begins so. If there are none, look behind."""
        partition, rows, behind = stretch
        free, cursors = self._free(rows), self.queues.cursors
        start = cursors.pop(partition, None)
        if free or behind is None:
            return Head(partition, free, behind)
        start = max(start or behind, behind)
        following = await read_on(self.tables, partition, start)
        free = self._free(following.rows)
        if free:
            cursors[partition] = start
        elif following.behind is not None:
            cursors[partition] = following.behind
        return Head(partition, free, following.behind)

    async def _read_on(self, head: Head, newest: str) -> Head:
        if head.behind is None or head.behind >= newest:
            return head
        following = await read_on(self.tables, head.partition, head.behind)
        free = [*head.free, *self._free(following.rows)]
        return Head(head.partition, free, following.behind)

    async def _discover(self, lane: int) -> None:
        """Find the services and modes that have rows in the lane."""
        first, end = keys.below(QUEUES, f"{lane:02d}")
        while rows := await self.tables.scan(PENDING, (first, ""), end, GLANCE):
            self._free(rows)
            for row in rows:
                queue = queue_of(row)
                if queue is not None:
                    self._lanes_of.setdefault((queue.service, queue.mode), set()).add(lane)
            if len(rows) < GLANCE:
                return
            first = rows[-1].partition.rpartition("!")[0] + '"'

    def _free(self, rows: Iterable[Row]) -> list[Row]:
        lapsed, free = _claimable(rows, self._now)
        self._lapsed |= {Place(PENDING, row.partition, row.key): row for row in lapsed}
        return free


class _Walk:
    """The partitions of a lane, service and mode that have free rows, from behind those of the last
    queue to the end, and then from the first on."""

    def __init__(
        self, look: SkippingLook, lane: int, service: str, mode: Mode, last: Queue | None
    ) -> None:
        self.lane = lane
        self._look = look
        self._name = keys.key(QUEUES, f"{lane:02d}", service, mode.value)
        first, end = f"{self._name}!", f'{self._name}"'
        start = f"{queue_partition(last, lane)}!" if last is not None else first
        start = look.queues.stops.pop(self._name, start)
        self._left = deque([Range(start, end), Range(first, start)])
        self._ready = deque[Head]()
        self._limit = GLANCE
        self._fruitless = 0

    async def next(self) -> Head | None:
        while self._left and not self._ready:
            await self._read(*self._left.popleft())
        return self._ready.popleft() if self._ready else None

    async def _read(self, first: str, end: str) -> None:
        if first >= end:
            return
        rows = await self._look.tables.scan(PENDING, (first, ""), end, self._limit)
        is_full = len(rows) == self._limit
        if is_full:
            self._left.appendleft(Range(f"{rows[-1].partition}!", end))
        heads = [await self._look.head(each) for each in stretches(rows, is_full=is_full)]
        self._ready.extend(head for head in heads if head.free)
        self._limit = GLANCE if self._ready else PAGE
        if is_full and not self._ready:
            self._count_fruitless()

    def _count_fruitless(self) -> None:
        self._fruitless += 1
        if self._fruitless == FRUITLESS:
            self._look.queues.stops[self._name] = self._left[0].first
            self._left.clear()


_Turn = tuple[bool, str]


def _turn(queue: Queue, last: Queue | None) -> _Turn:
    """Sorts as the queues of a service and mode have their turns."""
    tenant = keys.part(queue.tenant_id)
    return last is not None and tenant <= keys.part(last.tenant_id), tenant


def _in_turn(waiting: Iterable[Waiting], last: Queue | None) -> list[Waiting]:
    return sorted(waiting, key=lambda each: _turn(each.queue, last))


def _queue(head: Head) -> Queue:
    queue = queue_of(head.free[0])
    assert queue is not None, "a walk meets rows of queues alone"
    return queue


def _claimable(rows: Iterable[Row], now: datetime) -> tuple[list[Row], list[Row]]:
    """Return those whose claim has lapsed, and the others that are free."""
    lapsed, free = list[Row](), list[Row]()
    for row in rows:
        if is_free(row.values, now):
            (lapsed if is_lapsed(row.values, now) else free).append(row)
    return lapsed, free


def _in_order(heads: Iterable[Head]) -> list[Row]:
    rows = [row for head in heads for row in head.free]
    return sorted(rows, key=lambda row: (row.values["due_at"], row.key))
