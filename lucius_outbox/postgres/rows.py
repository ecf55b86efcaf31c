"""The verbs of the store inside a PostgreSQL transaction of the caller.

Whoever commits rows of its own together with the outbox's (a ledger that marks a step and its
message in one commit) uses these; everybody else uses `PostgresStore`. The transaction must be READ
COMMITTED, PostgreSQL's default.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count, groupby
from operator import attrgetter
from random import Random
from typing import Any
from uuid import uuid4

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from lucius_outbox.errors import LeaseLost, OnDeadFailed, ReplayForbidden
from lucius_outbox.message import Claimed, Dead, Failure
from lucius_outbox.postgres import statements as sql
from lucius_outbox.redaction import redacted
from lucius_outbox.retry import RetryPolicy
from lucius_outbox.store import Buried, Replayed, Span, TopicStats, checked_replay

Transaction = AsyncConnection[Any]
OnDead = Callable[[Transaction, Dead], Awaitable[None]]


class PostgresRows:
    def __init__(
        self,
        namespace: str,
        *,
        policy: RetryPolicy,
        on_dead: OnDead | None = None,
        clock: Callable[[], datetime] | None = None,
        chance: Callable[[], float] | None = None,
    ) -> None:
        self.namespace = namespace
        self.worker_id = str(uuid4())
        self._claim_nos = count(1)
        self._policy = policy
        self._on_dead = on_dead
        self._clock = clock
        self._chance = chance or Random().random  # noqa: S311 - spreads retries, guards nothing

    async def claim_batch(
        self, transaction: Transaction, size: int, lease: timedelta
    ) -> list[Claimed]:
        claim_no = next(self._claim_nos)
        while True:
            rows = await self._all(
                transaction, sql.CLAIM, size=size, lease=lease, claim_no=claim_no
            )
            if rows[0][1] is not None:
                return [Claimed(*row[1:]) for row in rows]
            set_aside: int = rows[0][0]
            if set_aside == 0:
                return []

    async def claim_named(
        self, transaction: Transaction, topic: str, dedupe_key: str, lease: timedelta
    ) -> Claimed | None:
        """Take the row of a dedupe key, due or not, for as long as `lease`: for whoever knows which
        message it wants. None: there is none, it has ended or may not be tried again, another holds
        it, or an earlier row of its ordering key is pending or processing."""
        named = {"topic": topic, "dedupe_key": dedupe_key, "lease": lease}
        claim_no = next(self._claim_nos)
        rows = await self._all(transaction, sql.CLAIM_NAMED, claim_no=claim_no, **named)
        return Claimed(*rows[0]) if rows else None

    async def queues(self, transaction: Transaction, spans: Sequence[Span]) -> list[list[str]]:
        """Return, for each span, the queues in it that have pending rows, due or not.

        One round trip; costs a seek in an index per queue, however many rows are in them. Rows that
        a release without queues has written are in the queue "".
        """
        rows = await self._all(
            transaction,
            sql.QUEUES,
            after=[span.after for span in spans],
            upto=[span.upto for span in spans],
            limits=[span.limit for span in spans],
        )
        found: list[list[str]] = [[] for _ in spans]
        for position, queue in rows:
            found[position].append(queue)
        return found

    async def queue_groups(self, transaction: Transaction, separator: str) -> list[str]:
        """Return what queues with pending rows have before the separator, a character, each once.

        One round trip; costs a seek in an index per group, however many queues are in it.
        """
        successor = chr(ord(separator) + 1)
        rows = await self._all(
            transaction, sql.QUEUE_GROUPS, separator=separator, successor=successor
        )
        return list(dict.fromkeys(queue.partition(separator)[0] for (queue,) in rows))

    async def claim_queues(
        self,
        transaction: Transaction,
        sizes: Mapping[str, int],
        lease: timedelta,
        *,
        expired: int = 0,
    ) -> list[Claimed]:
        """Take up to `expired` rows whose lease has expired, of any queue or none, then the oldest
        due rows of each queue, up to its size, in the order of `sizes`.

        Rows with an ordering key are left to `claim_batch` until they are claimed for the first
        time. One round trip.
        """
        rows = await self._all(
            transaction,
            sql.CLAIM_QUEUES,
            queues=list(sizes),
            counts=list(sizes.values()),
            expired=expired,
            lease=lease,
            claim_no=next(self._claim_nos),
        )
        return [Claimed(*row) for row in rows]

    async def ack(self, transaction: Transaction, claims: Sequence[Claimed]) -> None:
        lost = await self._settle(transaction, sql.ACK, claims)
        await self._release_keys(transaction, [claim for claim in claims if claim.id not in lost])
        _require_none("ack", lost)

    async def release(self, transaction: Transaction, claims: Sequence[Claimed]) -> None:
        _require_none("release", await self._settle(transaction, sql.RELEASE, claims))

    async def extend(
        self, transaction: Transaction, claims: Sequence[Claimed], lease: timedelta
    ) -> None:
        _require_none("extend", await self._settle(transaction, sql.EXTEND, claims, lease=lease))

    async def nack(self, transaction: Transaction, failures: Sequence[Failure]) -> Buried:
        buried, lost = Buried([], []), list[str]()
        retries: dict[int, list[tuple[Failure, timedelta]]] = {}
        for failure in failures:
            claimed = failure.claimed
            delay = self._policy.delay_after(claimed.attempts, self._chance())
            if delay is not None and not failure.permanent:
                retries.setdefault(claimed.claim_no, []).append((failure, delay))
            elif not await self._bury(
                transaction,
                buried,
                sql.DIE,
                ids=sql.uuids([claimed.id]),
                claim_no=claimed.claim_no,
                error=redacted(failure.error),
            ):
                lost.append(claimed.id)
        for claim_no, failed in retries.items():
            lost += await self._retry(transaction, claim_no, failed)
        _require_none("nack", lost, buried)
        return buried

    async def sweep_dead(self, transaction: Transaction, limit: int) -> Buried:
        buried = Buried([], [])
        for row_id, error in await self._all(transaction, sql.SPENT, limit=limit):
            await self._bury(transaction, buried, sql.SWEEP, id=row_id, error=error)
        return buried

    async def replay(
        self, transaction: Transaction, ids: Sequence[str], *, by: str, reason: str
    ) -> int:
        chosen = checked_replay(ids, by, reason)
        if await self._all(transaction, sql.REPLAY_FORBIDDEN):
            raise ReplayForbidden(self.namespace)
        return await self._change(
            transaction, sql.REPLAY, ids=sql.uuids(chosen), by=by, reason=redacted(reason)
        )

    async def forbid_replay(self, transaction: Transaction, forbidden: bool) -> None:
        await self._change(transaction, sql.FORBID_REPLAY, forbidden=forbidden)

    async def replays(self, transaction: Transaction, limit: int) -> list[Replayed]:
        return [Replayed(*row) for row in await self._all(transaction, sql.REPLAYS, limit=limit)]

    async def dead(self, transaction: Transaction, limit: int) -> list[Dead]:
        return [Dead(*row) for row in await self._all(transaction, sql.DEAD, limit=limit)]

    async def stats(self, transaction: Transaction, *, delivered: bool) -> list[TopicStats]:
        rows = await self._all(transaction, sql.STATS_WITH_DELIVERED if delivered else sql.STATS)
        return [
            TopicStats(
                self.namespace,
                topic,
                pending,
                processing,
                dead,
                done if delivered else None,
                oldest,
                age,
            )
            for topic, pending, processing, dead, done, oldest, age in rows
        ]

    async def prune(self, transaction: Transaction, older_than: timedelta, limit: int) -> int:
        return await self._change(transaction, sql.PRUNE, older_than=older_than, limit=limit)

    async def _retry(
        self, transaction: Transaction, claim_no: int, failed: Sequence[tuple[Failure, timedelta]]
    ) -> list[str]:
        lost = await self._all(
            transaction,
            sql.RETRY,
            claim_no=claim_no,
            ids=sql.uuids(failure.claimed.id for failure, _ in failed),
            delays=[delay for _, delay in failed],
            errors=[redacted(failure.error) for failure, _ in failed],
        )
        return [row[0] for row in lost]

    async def _settle(
        self,
        transaction: Transaction,
        statement: str,
        claims: Sequence[Claimed],
        **values: Any,
    ) -> list[str]:
        """The ids of rows that are not held; the others are changed."""
        lost: list[str] = []
        for claim_no, group in groupby(claims, attrgetter("claim_no")):
            ids = sql.uuids(claimed.id for claimed in group)
            rows = await self._all(transaction, statement, ids=ids, claim_no=claim_no, **values)
            lost += [row[0] for row in rows]
        return lost

    async def _bury(
        self, transaction: Transaction, buried: Buried, statement: str, **values: Any
    ) -> bool:
        """Mark one row dead together with what `on_dead` does, or neither; False: not held."""
        try:
            async with transaction.transaction():
                rows = [Dead(*row) for row in await self._all(transaction, statement, **values)]
                await self._release_keys(transaction, rows)
                for dead in rows:
                    await self._tell(transaction, dead)
        except OnDeadFailed as error:
            buried.failed.append(error)
            return True
        buried.dead.extend(rows)
        return bool(rows)

    async def _tell(self, transaction: Transaction, dead: Dead) -> None:
        if self._on_dead is None:
            return
        try:
            await self._on_dead(transaction, dead)
        except Exception as error:
            raise OnDeadFailed(dead.id) from error

    async def _release_keys(
        self, transaction: Transaction, ended: Iterable[Claimed | Dead]
    ) -> None:
        keys = {(row.topic, row.ordering_key) for row in ended if row.ordering_key is not None}
        if keys:
            topics, names = map(list, zip(*sorted(keys), strict=True))
            await self._change(transaction, sql.NEXT_OF_KEYS, topics=topics, keys=names)

    async def _all(self, transaction: Transaction, statement: str, **values: Any) -> list[Any]:
        async with transaction.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(statement.encode(), self._values(values))
            return await cursor.fetchall()

    async def _change(self, transaction: Transaction, statement: str, **values: Any) -> int:
        async with transaction.cursor() as cursor:
            await cursor.execute(statement.encode(), self._values(values))
            return cursor.rowcount

    def _values(self, values: dict[str, Any]) -> dict[str, Any]:
        return {
            "now": self._clock() if self._clock else None,
            "namespace": self.namespace,
            "worker": self.worker_id,
            "max_attempts": self._policy.max_attempts,
            "max_reclaims": self._policy.max_reclaims,
            **values,
        }


def _require_none(verb: str, lost: Sequence[str], buried: Buried | None = None) -> None:
    if lost:
        raise LeaseLost(verb, lost, buried)
