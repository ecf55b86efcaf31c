"""Directives in `lucius_outbox`, settled in the transactions of the ledger.

A directive's body is kept as JSON text inside the outbox's payload: that column is jsonb, which
refuses NUL in a string and writes 1e300 with three hundred zeros.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pydantic_core

from lucius_contract.routing import LANES, directive_topic
from lucius_contract.states import OutboxState
from lucius_orchestrator.adapters.ledger import codec
from lucius_orchestrator.adapters.ledger.postgres import statements as sql
from lucius_orchestrator.adapters.ledger.postgres.columns import text
from lucius_orchestrator.domain.decision import DirectiveRow, OutboxKind, OutboxMark
from lucius_orchestrator.domain.directive import outbox_id
from lucius_orchestrator.ports.ledger import Claim, DirectiveStatus
from lucius_outbox.errors import LeaseLost
from lucius_outbox.message import Claimed, Failure, Message
from lucius_outbox.postgres.enqueueing import enqueue_all
from lucius_outbox.postgres.rows import PostgresRows, Transaction
from lucius_outbox.retry import Delays, RetryPolicy
from lucius_outbox.states import LEDGER_NAME, Status

WITHOUT_END = 2**31 - 1
NAMESPACES = {kind: f"lucius.{kind.lower()}" for kind in OutboxKind}
_TOPICS = [directive_topic(lane) for lane in range(LANES)]


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

    async def enqueue(self, transaction: Transaction, rows: Sequence[DirectiveRow]) -> None:
        await enqueue_all(
            transaction,
            [
                Message(
                    NAMESPACES[OutboxKind.DIRECTIVE],
                    row.topic,
                    _payload(row),
                    dedupe_key=row.outbox_id,
                    not_before=row.created_at if self._clock else None,
                )
                for row in rows
            ],
        )

    async def wake(self, transaction: Transaction, kind: OutboxKind) -> None:
        """Tell the dispatchers, of all processes, once the transaction has committed."""
        await transaction.execute(sql.WAKE, (NAMESPACES[kind],))

    async def claim(
        self, transaction: Transaction, kind: OutboxKind, size: int, lease: timedelta
    ) -> list[Claim]:
        claims = await self._rows[kind].claim_batch(transaction, size, lease)
        return [_claim(kind, claimed) for claimed in claims]

    async def release(self, transaction: Transaction, claims: Sequence[Claim]) -> None:
        for kind, held in self._by_kind(claims):
            await self.wake(transaction, kind)
            with suppress(LeaseLost):
                await self._rows[kind].release(transaction, held)

    async def postpone(self, transaction: Transaction, claims: Sequence[Claim], error: str) -> None:
        for kind, held in self._by_kind(claims):
            with suppress(LeaseLost):
                failures = [Failure(claimed, error) for claimed in held]
                await self._rows[kind].nack(transaction, failures)

    async def discard(self, transaction: Transaction, claims: Sequence[Claim]) -> None:
        for kind, held in self._by_kind(claims):
            with suppress(LeaseLost):
                await self._rows[kind].ack(transaction, held)

    async def settle(
        self, transaction: Transaction, marks: Sequence[OutboxMark], claim: Claim | None
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
                    await rows.nack(transaction, [failure])
                else:
                    await rows.ack(transaction, [held])

    async def status(
        self, connection: Transaction, job_id: str, step_id: str, attempt_no: int
    ) -> DirectiveStatus | None:
        values = {
            "now": self._clock() if self._clock else None,
            "namespace": NAMESPACES[OutboxKind.DIRECTIVE],
            "topics": _TOPICS,
            "outbox_id": text(outbox_id(job_id, step_id, attempt_no)),
            "job_id": text(job_id),
        }
        found = await (await connection.execute(sql.DIRECTIVE.encode(), values)).fetchone()
        if found is None:
            return None
        status, claimable = found
        return DirectiveStatus(OutboxState(LEDGER_NAME[Status(status)].value), claimable)

    async def prune(self, transaction: Transaction, older_than: timedelta, limit: int) -> int:
        pruned = 0
        for rows in self._rows.values():
            pruned += await rows.prune(transaction, older_than, limit - pruned)
        return pruned

    async def forbid_replay(self, transaction: Transaction) -> None:
        """A directive is never sent anew by hand: a redrive makes a new job."""
        await self._rows[OutboxKind.DIRECTIVE].forbid_replay(transaction, True)

    def _by_kind(self, claims: Sequence[Claim]) -> Iterator[tuple[OutboxKind, list[Claimed]]]:
        for kind in self._rows:
            held = [_token(claim) for claim in claims if claim.kind is kind]
            if held:
                yield kind, held


def _payload(row: DirectiveRow) -> dict[str, Any]:
    return {**codec.directive_payload(row), "body": codec.to_json(row.body)}


def _claim(kind: OutboxKind, claimed: Claimed) -> Claim:
    payload: Mapping[str, Any] = claimed.payload
    body = pydantic_core.from_json(payload["body"])
    row = codec.directive_of(claimed.topic, {**payload, "body": body})
    return Claim(body["jobId"], kind, row, claimed.attempts - 1, claimed)


def _token(claim: Claim) -> Claimed:
    assert isinstance(claim.token, Claimed), "a claim of this ledger"
    return claim.token
