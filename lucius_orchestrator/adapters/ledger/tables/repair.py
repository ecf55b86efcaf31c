"""Repair: index rows whose commit never came, and what hangs on the leash of a job that is over.

Every row is judged by itself, in three steps: does it stand; if not, can its commit still come
(then see to it that it cannot); does it stand now. Only then is it deleted. Rows that were just
written are passed over for a while, since their writer is most likely alive: to fence a commit that
is under way is safe, but costs its writer another try.

The indexes are read on from where the last call stopped, so that each call costs little and many
calls see every row.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.ending import Ending
from lucius_orchestrator.adapters.ledger.tables.indexes import (
    LETTERS,
    PENDING,
    STATES,
    TIMERS,
    WEBHOOK,
    WEBHOOK_DUE,
    WEBHOOKS,
    Indexes,
)
from lucius_orchestrator.adapters.ledger.tables.partition import (
    ABSENT,
    IndexRow,
    JobPartitions,
    Place,
)
from lucius_orchestrator.adapters.ledger.tables.store import Tables
from lucius_orchestrator.ports.ledger import Repair

EXAMINED = 1000
"""How many rows of each index one call looks at."""

_START = ("", "")
_STARTS = {WEBHOOKS: (WEBHOOK, f"{WEBHOOK_DUE}!")}
"""Of what was given up nobody announces anything."""


class Repairs:
    def __init__(
        self,
        tables: Tables,
        jobs: JobPartitions,
        indexes: Indexes,
        ending: Ending,
        *,
        clock: Callable[[], datetime],
        grace: timedelta,
    ) -> None:
        self._tables = tables
        self._jobs = jobs
        self._indexes = indexes
        self._ending = ending
        self._clock = clock
        self._grace = grace
        self._seen: dict[str, tuple[str, str]] = {}

    async def repair(self, limit: int) -> list[Repair]:
        done: list[Repair] = []
        for table in (TIMERS, PENDING, STATES, LETTERS, WEBHOOKS):
            if len(done) < limit:
                done += await self._sweep(table, limit - len(done))
        return done

    async def _sweep(self, table: str, limit: int) -> list[Repair]:
        done: list[Repair] = []
        after = self._seen.get(table) or _STARTS.get(table, _START)
        rows = await self._tables.scan(table, after, keys.END, EXAMINED)
        for row in rows:
            if len(done) == limit:
                return done
            repair = await self._mend(IndexRow(Place(table, row.partition, row.key), row.values))
            if repair is not None:
                done.append(repair)
            self._seen[table] = (row.partition, row.key)
        if len(rows) < EXAMINED:
            self._seen.pop(table, None)
        return done

    async def _mend(self, row: IndexRow) -> Repair | None:
        base: str | None = row.values.get("base")
        if base is None or await self._indexes.stands(row) or self._is_fresh(row):
            return None
        await self._jobs.fence(row.values["job_id"], base)
        if await self._indexes.stands(row):
            return None
        after = await self._delete(row)
        table, *key = row.place
        return Repair(table, "/".join(key), "names what is not so", after)

    def _is_fresh(self, row: IndexRow) -> bool:
        written_at: datetime = row.values["written_at"]
        return self._clock() - written_at < self._grace

    async def _delete(self, row: IndexRow) -> str:
        if row.place.table == TIMERS:
            return await self._let_go(row)
        await self._indexes.drop(row.place)
        return "deleted"

    async def _let_go(self, leash: IndexRow) -> str:
        """The leash of a job that has ended or will never be; or one that another has replaced."""
        head = await self._jobs.head(leash.values["job_id"])
        if head is not None and head.job is not None and head.is_terminal:
            await self._ending.finish(head.job, leash.place)
            return "the job has ended: slots given back, deleted"
        if head is not None and head.is_tombstone and leash.values["base"] == ABSENT:
            await self._ending.give_up(leash.values, leash.place)
            return "the job will never be: entry, slots and list row given up, deleted"
        await self._indexes.drop(leash.place)
        return "deleted"
