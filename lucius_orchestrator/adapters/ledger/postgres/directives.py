"""Directives in `lucius_outbox`, settled in the transactions of the ledger."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from lucius_contract.routing import by_lane
from lucius_contract.states import OutboxState
from lucius_orchestrator.adapters.ledger import codec
from lucius_orchestrator.adapters.ledger.postgres import statements as sql
from lucius_orchestrator.adapters.ledger.postgres.connections import Connection
from lucius_orchestrator.domain.decision import DirectiveRow, OutboxKind, OutboxMark
from lucius_orchestrator.ports.ledger import Claim, DirectiveStatus
from lucius_outbox.errors import LeaseLost
from lucius_outbox.message import Claimed, Failure, Message
from lucius_outbox.postgres.enqueueing import enqueue_all
from lucius_outbox.postgres.rows import PostgresRows
from lucius_outbox.retry import Delays, RetryPolicy
from lucius_outbox.states import LEDGER_NAME, Status

WITHOUT_END = 2**31 - 1
NAMESPACES = {kind: f"lucius.{kind.lower()}" for kind in OutboxKind}


class PostgresDirectives:
    """OUTBOX rows of all kinds. An unreachable bus is not a try, so no row dies of too many.

    Without a `clock` leases and waits are measured by the database's.
    """

    def __init__(self, backoff: Sequence[timedelta], clock: Callable[[], datetime] | None) -> None:
        policy = RetryPolicy(WITHOUT_END, Delays(backoff), WITHOUT_END)
        self._clock = clock
        self._rows = {
            kind: PostgresRows(namespace, policy=policy, clock=clock)
            for kind, namespace in NAMESPACES.items()
        }

    async def enqueue(self, connection: Connection, rows: Sequence[DirectiveRow]) -> None:
        await enqueue_all(
            connection,
            [
                Message(
                    NAMESPACES[OutboxKind.DIRECTIVE],
                    row.topic,
                    codec.directive_payload(row),
                    dedupe_key=row.outbox_id,
                    not_before=row.created_at if self._clock else None,
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
        claims = await self._rows[kind].claim_batch(connection, size, lease)
        if not claims:
            return []
        rows = [codec.directive_of(claimed.topic, claimed.payload) for claimed in claims]
        versions = await _versions(connection, rows)
        return [
            Claim(job_id, kind, row, claimed.attempts - 1, claimed, versions.get(job_id))
            for row, claimed in zip(rows, claims, strict=True)
            for job_id in (row.body["jobId"],)
        ]

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

    async def status(
        self, connection: Connection, topic: str, outbox_id: str
    ) -> DirectiveStatus | None:
        values = {
            "now": self._clock() if self._clock else None,
            "namespace": NAMESPACES[OutboxKind.DIRECTIVE],
            "topic": topic,
            "outbox_id": outbox_id,
        }
        found = await (await connection.execute(sql.DIRECTIVE.encode(), values)).fetchone()
        if found is None:
            return None
        status, claimable = found
        return DirectiveStatus(OutboxState(LEDGER_NAME[Status(status)].value), claimable)

    async def backlog(self, connection: Connection) -> dict[int, int]:
        namespace = {"namespace": NAMESPACES[OutboxKind.DIRECTIVE]}
        return by_lane(await (await connection.execute(sql.BACKLOG, namespace)).fetchall())

    async def prune(self, connection: Connection, older_than: timedelta, limit: int) -> int:
        pruned = 0
        for rows in self._rows.values():
            pruned += await rows.prune(connection, older_than, limit - pruned)
            dead = {"now": self._clock() if self._clock else None, "older_than": older_than}
            values = {**dead, "namespace": rows.namespace, "limit": limit - pruned}
            pruned += (await connection.execute(sql.PRUNE_DEAD, values)).rowcount
        return pruned

    async def forbid_replay(self, connection: Connection) -> None:
        """A directive is never sent anew by hand: a redrive makes a new job."""
        await self._rows[OutboxKind.DIRECTIVE].forbid_replay(connection, True)

    def _by_kind(self, claims: Sequence[Claim]) -> Iterator[tuple[OutboxKind, list[Claimed]]]:
        for kind in self._rows:
            held = [_token(claim) for claim in claims if claim.kind is kind]
            if held:
                yield kind, held


async def _versions(connection: Connection, rows: Sequence[DirectiveRow]) -> dict[str, int]:
    job_ids = [row.body["jobId"] for row in rows]
    return dict(await (await connection.execute(sql.VERSIONS, (job_ids,))).fetchall())


def _token(claim: Claim) -> Claimed:
    assert isinstance(claim.token, Claimed), "a claim of this ledger"
    return claim.token
