"""OUTBOX rows in `lucius_outbox`, settled in the transactions of the ledger."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from lucius_contract.routing import by_lane
from lucius_contract.states import OutboxState
from lucius_orchestrator.adapters.ledger.outbox_rows import (
    DIRECTIVE_KINDS,
    NAMESPACES,
    NEVER_REPLAYED,
    NOT_LOOKED_FOR,
    QUEUE_SEPARATOR,
    Named,
    as_seen_by,
    backlog_of,
    job_id_of,
    payload_of,
    queue_of,
    row_of,
    topic_of,
)
from lucius_orchestrator.adapters.ledger.postgres import statements as sql
from lucius_orchestrator.adapters.ledger.postgres.connections import Connection
from lucius_orchestrator.adapters.ledger.turns import (
    LAPSED_AT_ONCE,
    allotted,
    rooms_of,
    spans_of,
)
from lucius_orchestrator.domain.decision import OutboxKind, OutboxMark, OutboxRow
from lucius_orchestrator.ports.ledger import Backlog, Claim, DirectiveStatus, Stored, Turns
from lucius_outbox.errors import LeaseLost
from lucius_outbox.message import Claimed, Failure, Message
from lucius_outbox.postgres.enqueueing import enqueue_all
from lucius_outbox.postgres.rows import PostgresRows
from lucius_outbox.retry import Delays, RetryPolicy
from lucius_outbox.states import LEDGER_NAME, Status

WITHOUT_END = 2**31 - 1
_DIRECTIVES = [NAMESPACES[kind] for kind in DIRECTIVE_KINDS]


class PostgresDirectives:
    """OUTBOX rows of all kinds. An unreachable bus is not a try, so no row dies of too many.

    Without a `clock` leases and waits are measured by the database's.
    """

    def __init__(self, backoff: Sequence[timedelta], clock: Callable[[], datetime] | None) -> None:
        policy = RetryPolicy(WITHOUT_END, Delays(backoff), WITHOUT_END)
        self._clock = clock
        rows = {
            namespace: PostgresRows(namespace, policy=policy, clock=clock)
            for namespace in NAMESPACES.values()
        }
        # One for DIRECTIVEs and TURNs: only the one that has claimed a row can settle it.
        self._rows = {kind: rows[namespace] for kind, namespace in NAMESPACES.items()}

    async def enqueue(self, connection: Connection, rows: Sequence[OutboxRow]) -> None:
        await enqueue_all(
            connection,
            [
                Message(
                    NAMESPACES[row.kind],
                    topic_of(row),
                    payload_of(row),
                    dedupe_key=row.outbox_id,
                    not_before=row.created_at if self._clock else None,
                    queue=queue_of(row),
                )
                for row in rows
            ],
        )

    async def wake(self, connection: Connection, kind: OutboxKind) -> None:
        """Tell the dispatchers of all processes, once this is committed."""
        await connection.execute(sql.WAKE, (NAMESPACES[kind],))

    async def claim(
        self, connection: Connection, kind: OutboxKind, size: int, lease: timedelta
    ) -> list[Claim]:
        if kind in NOT_LOOKED_FOR:
            return []
        claims = await self._rows[kind].claim_batch(connection, size, lease)
        return await _claims(connection, kind, claims)

    async def claim_in_turn(
        self, connection: Connection, turns: Turns, lease: timedelta
    ) -> list[Claim]:
        kind = OutboxKind.DIRECTIVE
        rows = self._rows[kind]
        rooms = rooms_of(await rows.queue_groups(connection, QUEUE_SEPARATOR), turns)
        spans = spans_of(rooms, turns)
        found = await rows.queues(connection, spans) if spans else []
        sizes = allotted(rooms, found, turns)
        claims = await rows.claim_queues(connection, sizes, lease, expired=LAPSED_AT_ONCE)
        return await _claims(connection, kind, claims)

    async def take(
        self, connection: Connection, stored: Stored, name: Named, lease: timedelta
    ) -> Claim | None:
        kind, (_, topic, outbox_id) = OutboxKind.INVOCATION, name
        claimed = await self._rows[kind].claim_named(connection, topic, outbox_id, lease)
        if claimed is None:
            return None
        row, tries = row_of(kind, topic, claimed.payload), claimed.attempts - 1
        return Claim(job_id_of(row), kind, row, tries, claimed, stored.version, stored)

    async def release(self, connection: Connection, claims: Sequence[Claim]) -> None:
        for kind, held in self._by_kind(claims):
            with suppress(LeaseLost):
                await self._rows[kind].release(connection, held)
            await self.wake(connection, kind)

    async def postpone(self, connection: Connection, claims: Sequence[Claim], error: str) -> None:
        for kind, held in self._by_kind(claims):
            with suppress(LeaseLost):
                failures = [Failure(claimed, error) for claimed in held]
                await self._rows[kind].nack(connection, failures)

    async def discard(self, connection: Connection, claims: Sequence[Claim]) -> None:
        for kind, held in self._by_kind(claims):
            with suppress(LeaseLost):
                await self._rows[kind].ack(connection, held)

    async def settle(
        self, connection: Connection, marks: Sequence[OutboxMark], claim: Claim | None
    ) -> None:
        """End the row that the claim holds; one that was lost is its new holder's to end."""
        if claim is None:
            return
        rows, held = self._rows[claim.kind], _token(claim)
        for marked, state in marks:
            if marked != claim.row.outbox_id:
                continue
            with suppress(LeaseLost):
                if state is OutboxState.FAILED_FINAL:
                    failure = Failure(held, "refused for good", permanent=True)
                    await rows.nack(connection, [failure])
                else:
                    await rows.ack(connection, [held])

    async def status(self, connection: Connection, name: Named) -> DirectiveStatus | None:
        values = {
            "now": self._clock() if self._clock else None,
            "namespaces": _DIRECTIVES,
            "topic": name.topic,
            "outbox_id": name.outbox_id,
        }
        found = await (await connection.execute(sql.DIRECTIVE.encode(), values)).fetchone()
        if found is None:
            return None
        status, claimable = found
        state = OutboxState(LEDGER_NAME[Status(status)].value)
        return as_seen_by(name.attempt, DirectiveStatus(state, claimable))

    async def backlog(self, connection: Connection) -> dict[int, int]:
        namespaces = {"namespaces": _DIRECTIVES}
        return by_lane(await (await connection.execute(sql.BACKLOG, namespaces)).fetchall())

    async def backlogs(self, connection: Connection) -> list[Backlog]:
        namespaces = {"namespaces": [NAMESPACES[OutboxKind.DIRECTIVE]]}
        rows = await (await connection.execute(sql.BACKLOGS, namespaces)).fetchall()
        return [backlog_of(*row) for row in rows]

    async def prune(self, connection: Connection, older_than: timedelta, limit: int) -> int:
        pruned = 0
        for rows in set(self._rows.values()):
            pruned += await rows.prune(connection, older_than, limit - pruned)
            dead = {"now": self._clock() if self._clock else None, "older_than": older_than}
            values = {**dead, "namespace": rows.namespace, "limit": limit - pruned}
            pruned += (await connection.execute(sql.PRUNE_DEAD, values)).rowcount
        return pruned

    async def forbid_replay(self, connection: Connection) -> None:
        for kind in NEVER_REPLAYED:
            await self._rows[kind].forbid_replay(connection, True)

    def _by_kind(self, claims: Sequence[Claim]) -> Iterator[tuple[OutboxKind, list[Claimed]]]:
        for kind in self._rows:
            held = [_token(claim) for claim in claims if claim.kind is kind]
            if held:
                yield kind, held


async def _claims(
    connection: Connection, kind: OutboxKind, claims: Sequence[Claimed]
) -> list[Claim]:
    if not claims:
        return []
    rows = [row_of(kind, claimed.topic, claimed.payload) for claimed in claims]
    versions = await _versions(connection, rows)
    return [
        Claim(job_id, row.kind, row, claimed.attempts - 1, claimed, versions.get(job_id))
        for row, claimed in zip(rows, claims, strict=True)
        for job_id in (job_id_of(row),)
    ]


async def _versions(connection: Connection, rows: Sequence[OutboxRow]) -> dict[str, int]:
    job_ids = [job_id_of(row) for row in rows]
    return dict(await (await connection.execute(sql.VERSIONS, (job_ids,))).fetchall())


def _token(claim: Claim) -> Claimed:
    assert isinstance(claim.token, Claimed), "a claim of this ledger"
    return claim.token
