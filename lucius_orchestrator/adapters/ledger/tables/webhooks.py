"""Webhooks to deliver: a row for each, all in one partition.

A key begins with the state of its row and the moment that counts in this state, so that who looks
for work reads what is due and nothing else:

    DUE!<when to try>!…      to be tried, or announced by a commit that is under way
    HELD!<until when>!…      somebody delivers it; later than that, anybody may
    SPENT!<since when>!…     given up, and its dead letter is still to be written
    DEAD!<enqueued when>!…   given up

and ends with what the row keeps for life: `<job>!<token>!<position>`. From one state to another a
row goes by a batch that deletes it under the one key, on its ETag, and inserts it under the other:
of two who want it one gets it. One that was delivered is deleted.

The commit that ends a job announces its webhooks as it does its other index rows, and they stand if
the end that the JOB row names is theirs. Who takes one for the first time finds that out; from then
on the row depends on no job, and has no `base`. A removal sees to it beforehand: the webhooks of a
job that is gone are delivered like any others.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.indexes import WEBHOOK, WEBHOOK_DUE, WEBHOOKS
from lucius_orchestrator.adapters.ledger.tables.partition import IndexRow, JobPartitions, Place
from lucius_orchestrator.adapters.ledger.tables.store import (
    BATCH_LIMIT,
    Delete,
    EntityExists,
    Insert,
    Merge,
    Operation,
    Replace,
    Row,
    StoreError,
    Tables,
    Values,
)

DUE, HELD, SPENT, DEAD = WEBHOOK_DUE, "HELD", "SPENT", "DEAD"

_PAGE = 1000
_TOGETHER = 10
"""Rows in one batch: each may hold an error as long as a RESULT, and a request ends at 4 MiB."""


class Move(NamedTuple):
    """A row, the key that it gets and its values there; `moved_by` names this move alone."""

    row: Row
    key: str
    values: Values

    @property
    def operations(self) -> list[Operation]:
        if self.key == self.row.key:
            return [Replace(self.key, self.values, self.row.etag)]
        return [Delete(self.row.key, self.row.etag), Insert(self.key, self.values)]


class Webhooks:
    def __init__(self, tables: Tables, jobs: JobPartitions) -> None:
        self._tables = tables
        self._jobs = jobs
        self._wakes: list[Callable[[], None]] = []

    async def announce(self, rows: Sequence[IndexRow]) -> None:
        """All of one commit; if they are there, an answer was lost."""
        if rows:
            with suppress(EntityExists):
                await self._write([Insert(place.row, values) for place, values in rows])

    def wake(self) -> None:
        """Say that a commit brought some."""
        for wake in list(self._wakes):
            wake()

    async def listen(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)
        try:
            await asyncio.Event().wait()
        finally:
            self._wakes.remove(wake)

    async def find(
        self, state: str, end: str, limit: int, wanted: Callable[[Row], Awaitable[bool]]
    ) -> list[Row]:
        """The first rows of a state, up to the key `end`, that are wanted."""
        found: list[Row] = []
        first = f"{state}!"
        while len(found) < limit:
            page = await self._tables.query(WEBHOOKS, WEBHOOK, first, end, limit)
            for row in page:
                if len(found) < limit and await wanted(row):
                    found.append(row)
            if len(page) < limit:
                break
            first = page[-1].key + "!"
        return found

    async def all(self, state: str) -> AsyncIterator[Row]:
        first, end = f"{state}!", f'{state}"'
        while page := await self._tables.query(WEBHOOKS, WEBHOOK, first, end, _PAGE):
            for row in page:
                yield row
            first = page[-1].key + "!"

    async def stands(self, row: Row) -> bool:
        """Whether the end that it tells of has come. A row whose commit can never come is deleted,
        unless it was changed meanwhile."""
        base: str | None = row.values["base"]
        if base is None:
            return True
        head = await self._jobs.head(row.values["job_id"])
        if head is not None and head.ended == row.values["ended"]:
            return True
        if head is None or head.etag != base:
            await self.delete([row])
        return False

    async def move(self, moves: Sequence[Move]) -> list[Row | None]:
        """The rows as they are now; None for those that others have changed meanwhile."""
        moved: list[Row | None] = []
        for first in range(0, len(moves), _TOGETHER):
            some = moves[first : first + _TOGETHER]
            try:
                moved += await self._move(some)
            except StoreError:
                moved += [await self._move_alone(move) for move in some]
        return moved

    async def is_unchanged(self, row: Row) -> bool:
        found = await self._tables.get(WEBHOOKS, WEBHOOK, row.key)
        return found is not None and found.etag == row.etag

    async def delete(self, rows: Sequence[Row]) -> None:
        """Those that are as they were read."""
        for first in range(0, len(rows), BATCH_LIMIT):
            some = [Delete(row.key, row.etag) for row in rows[first : first + BATCH_LIMIT]]
            try:
                await self._write(some)
            except StoreError:
                for deletion in some:
                    with suppress(StoreError):
                        await self._write([deletion])

    async def outlive(self, ended: Place) -> None:
        """Let the webhooks of this end depend on their job no more: it is about to go."""
        first, end = f"{DUE}!{ended.row}!", f'{DUE}!{ended.row}"'
        for row in await self._tables.query(WEBHOOKS, WEBHOOK, first, end, BATCH_LIMIT):
            with suppress(StoreError):  # somebody has it: then it does not any more
                await self._write([Merge(row.key, {"base": None}, row.etag)])

    async def prune(self, before: datetime, limit: int) -> int:
        """Forget some that were given up before the moment; their dead letters stay."""
        if limit <= 0:
            return 0
        end = key_of(DEAD, before)
        rows = await self._tables.query(WEBHOOKS, WEBHOOK, f"{DEAD}!", end, limit)
        ended = [row for row in rows if row.values["due_at"] < before]
        await self.delete(ended)
        return len(ended)

    async def _move(self, moves: Sequence[Move]) -> list[Row]:
        etags = await self._write([step for move in moves for step in move.operations])
        written = [etag for etag in etags if etag is not None]
        return [
            Row(WEBHOOK, move.key, etag, move.values)
            for move, etag in zip(moves, written, strict=True)
        ]

    async def _move_alone(self, move: Move) -> Row | None:
        try:
            (row,) = await self._move([move])
        except StoreError:
            found = await self._tables.get(WEBHOOKS, WEBHOOK, move.key)
            was_moved = found is not None and found.values["moved_by"] == move.values["moved_by"]
            return found if was_moved else None
        return row

    async def _write(self, operations: Sequence[Operation]) -> list[str | None]:
        return await self._tables.batch(WEBHOOKS, WEBHOOK, operations)


def key_of(state: str, at: datetime, row: Row | None = None) -> str:
    """The key of a row in a state; without one, a key before all of that moment."""
    begin = f"{state}!{keys.moment(at)}"
    return f"{begin}!{row.key.split('!', 2)[2]}" if row else begin


def through(state: str, at: datetime) -> str:
    """Behind all keys of a state up to a moment."""
    return f'{state}!{keys.moment(at)}"'
