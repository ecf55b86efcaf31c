"""Which rows of the index this process holds.

A claim is the ETag that the index row got from it. One that was given back, or whose time is over,
counts no more.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from lucius_orchestrator.adapters.ledger.tables.partition import Place
from lucius_orchestrator.adapters.ledger.tables.store import (
    BATCH_LIMIT,
    Delete,
    Merge,
    StoreError,
    Tables,
    Values,
)
from lucius_orchestrator.ports.ledger import Claim


class Hold(NamedTuple):
    """The token of a claim. The ETags are those of the index row as the claim left it and of the
    OUTBOX row, None where they were not seen. `until` is None of a row that nobody holds."""

    place: Place
    until: datetime | None
    etag: str | None
    outbox_etag: str | None


class Holds:
    def __init__(self, tables: Tables, clock: Callable[[], datetime]) -> None:
        self._tables = tables
        self._clock = clock
        self._held: dict[Place, Hold] = {}

    def keep(self, hold: Hold) -> None:
        self._held[hold.place] = hold

    async def take(self, free: Claim, until: datetime) -> Claim | None:
        """The claim of a row that nobody holds, if it is still as it was seen."""
        seen = free.token
        assert isinstance(seen, Hold), "a claim of this ledger"
        table, partition, row = seen.place
        try:
            (etag,) = await self._tables.batch(
                table, partition, [Merge(row, {"until": until}, seen.etag)]
            )
        except StoreError:
            return None
        hold = seen._replace(until=until, etag=etag)
        self.keep(hold)
        return free._replace(token=hold)

    def of(self, claim: Claim) -> Hold | None:
        """None: the claim was lost."""
        hold = claim.token
        if not isinstance(hold, Hold) or self._held.get(hold.place) != hold:
            return None
        return hold if hold.until is not None and self._clock() <= hold.until else None

    def let_go(self, place: Place) -> None:
        """Of a row that has ended."""
        self._held.pop(place, None)

    async def change(self, claim: Claim, values: Values) -> None:
        """Give the row back, unless the claim was lost."""
        hold = self.of(claim)
        if hold is None:
            return
        self.let_go(hold.place)
        table, partition, row = hold.place
        with suppress(StoreError):
            await self._tables.batch(table, partition, [Merge(row, values, hold.etag)])

    async def drop(self, claims: Sequence[Claim]) -> None:
        """Delete the rows, those of one lane together, but for claims that were lost."""
        lanes: dict[tuple[str, str], list[Delete]] = {}
        for claim in claims:
            hold = self.of(claim)
            if hold is not None:
                self.let_go(hold.place)
                table, partition, row = hold.place
                lanes.setdefault((table, partition), []).append(Delete(row, hold.etag))
        for lane, rows in lanes.items():
            for first in range(0, len(rows), BATCH_LIMIT):
                await self._delete(lane, rows[first : first + BATCH_LIMIT])

    async def _delete(self, lane: tuple[str, str], rows: Sequence[Delete]) -> None:
        try:
            await self._tables.batch(*lane, rows)
        except StoreError:
            if len(rows) > 1:  # another has one of them: the others all the same
                for row in rows:
                    await self._delete(lane, [row])

    def forget_lapsed(self, now: datetime) -> None:
        self._held = {
            place: hold for place, hold in self._held.items() if hold.until and hold.until >= now
        }
