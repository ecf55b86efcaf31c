"""Directives in `lucius_outbox`, settled in the transactions of the ledger."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from lucius_contract.routing import by_lane
from lucius_contract.states import OutboxState
from lucius_orchestrator.adapters.ledger import codec
from lucius_orchestrator.adapters.ledger.sqlite import statements as sql
from lucius_orchestrator.adapters.ledger.sqlite.columns import SqliteVersion
from lucius_orchestrator.domain.decision import DirectiveRow, OutboxKind, OutboxMark
from lucius_orchestrator.ports.ledger import Adopter, Claim, DirectiveStatus
from lucius_outbox.errors import LeaseLost
from lucius_outbox.message import Claimed, Failure, Message
from lucius_outbox.retry import Delays, RetryPolicy
from lucius_outbox.sqlite.enqueueing import enqueue_all
from lucius_outbox.sqlite.rows import SqliteRows
from lucius_outbox.sqlite.times import microseconds
from lucius_outbox.states import LEDGER_NAME, Status

WITHOUT_END = 2**31 - 1
NAMESPACES = {kind: f"lucius.{kind.lower()}" for kind in OutboxKind}


class Adoption(NamedTuple):
    kind: OutboxKind
    lease: timedelta
    adopter: Adopter


class SqliteDirectives:
    """OUTBOX rows of all kinds. An unreachable bus is not a try, so no row dies of too many."""

    def __init__(
        self,
        backoff: Sequence[timedelta],
        clock: Callable[[], datetime],
        *,
        clock_is_injected: bool,
    ) -> None:
        policy = RetryPolicy(WITHOUT_END, Delays(backoff), WITHOUT_END)
        self._clock = clock
        self._clock_is_injected = clock_is_injected
        self._adoption: Adoption | None = None
        self._rows = {
            kind: SqliteRows(namespace, policy=policy, clock=clock)
            for kind, namespace in NAMESPACES.items()
        }

    def adopt(self, kind: OutboxKind, lease: timedelta, adopter: Adopter) -> Callable[[], None]:
        adoption = self._adoption = Adoption(kind, lease, adopter)

        def end() -> None:
            if self._adoption is adoption:
                self._adoption = None

        return end

    def enqueue(
        self,
        transaction: sqlite3.Connection,
        rows: Sequence[DirectiveRow],
        version: SqliteVersion,
    ) -> list[Claim]:
        """The claims of rows that the adopter shall have once they are durable."""
        kind, adoption = OutboxKind.DIRECTIVE, self._adoption
        messages = [self._message(row) for row in rows]
        if adoption is None or adoption.kind is not kind or not adoption.adopter.wants():
            enqueue_all(transaction, messages)
            return []
        claims = self._rows[kind].enqueue_claimed(transaction, messages, adoption.lease)
        by_key = {row.outbox_id: row for row in rows}
        return [
            Claim(row.body["jobId"], kind, row, 0, claimed, version)
            for claimed in claims
            for row in (by_key[str(claimed.dedupe_key)],)
        ]

    def hand_over(self, claims: Sequence[Claim]) -> None:
        """Give durable rows to the adopter; if it has gone meanwhile, their leases run out."""
        if claims and self._adoption is not None:
            self._adoption.adopter.take(claims)

    def _message(self, row: DirectiveRow) -> Message:
        return Message(
            NAMESPACES[OutboxKind.DIRECTIVE],
            row.topic,
            codec.directive_text(row),
            dedupe_key=row.outbox_id,
            not_before=row.created_at if self._clock_is_injected else None,
        )

    def claim(
        self, transaction: sqlite3.Connection, kind: OutboxKind, size: int, lease: timedelta
    ) -> list[Claim]:
        claims = self._rows[kind].claim_batch(transaction, size, lease)
        rows = [codec.directive_of(claimed.topic, claimed.payload) for claimed in claims]
        versions = _versions(transaction, rows)
        return [
            Claim(job_id, kind, row, claimed.attempts - 1, claimed, versions.get(job_id))
            for row, claimed in zip(rows, claims, strict=True)
            for job_id in (row.body["jobId"],)
        ]

    def has_claimable(self, connection: sqlite3.Connection, kind: OutboxKind) -> bool:
        return self._rows[kind].claimable(connection)

    def release(self, transaction: sqlite3.Connection, claims: Sequence[Claim]) -> None:
        for rows, held in self._by_kind(claims):
            with suppress(LeaseLost):
                rows.release(transaction, held)

    def postpone(
        self, transaction: sqlite3.Connection, claims: Sequence[Claim], error: str
    ) -> None:
        for rows, held in self._by_kind(claims):
            with suppress(LeaseLost):
                rows.nack(transaction, [Failure(claimed, error) for claimed in held])

    def discard(self, transaction: sqlite3.Connection, claims: Sequence[Claim]) -> None:
        for rows, held in self._by_kind(claims):
            with suppress(LeaseLost):
                rows.ack(transaction, held)

    def settle(
        self, transaction: sqlite3.Connection, marks: Sequence[OutboxMark], claim: Claim | None
    ) -> None:
        """End the row that the claim holds; one that was lost is its new holder's to end."""
        if claim is None:
            return
        rows, held = self._rows[claim.kind], [_token(claim)]
        for outbox_id, state in marks:
            if outbox_id != claim.row.outbox_id:
                continue
            with suppress(LeaseLost):
                if state is OutboxState.FAILED_FINAL:
                    rows.nack(transaction, [Failure(held[0], "refused for good", permanent=True)])
                else:
                    rows.ack(transaction, held)

    def status(
        self, connection: sqlite3.Connection, topic: str, outbox_id: str
    ) -> DirectiveStatus | None:
        key = (NAMESPACES[OutboxKind.DIRECTIVE], topic, outbox_id)
        found = connection.execute(sql.DIRECTIVE, key).fetchone()
        if found is None:
            return None
        status, due_at, locked_until = found
        now = microseconds(self._clock())
        free = locked_until is None or locked_until < now
        state = OutboxState(LEDGER_NAME[Status(status)].value)
        return DirectiveStatus(state, state is OutboxState.PENDING and free and due_at <= now)

    def backlog(self, connection: sqlite3.Connection) -> dict[int, int]:
        namespace = {"namespace": NAMESPACES[OutboxKind.DIRECTIVE]}
        return by_lane(connection.execute(sql.BACKLOG, namespace).fetchall())

    def prune(self, transaction: sqlite3.Connection, before: datetime, limit: int) -> int:
        older_than = self._clock() - before
        pruned = 0
        for rows in self._rows.values():
            pruned += rows.prune(transaction, older_than, limit - pruned)
            dead = (rows.namespace, microseconds(before), limit - pruned)
            pruned += transaction.execute(sql.PRUNE_DEAD, dead).rowcount
        return pruned

    def forbid_replay(self, transaction: sqlite3.Connection) -> None:
        """A directive is never sent anew by hand: a redrive makes a new job."""
        self._rows[OutboxKind.DIRECTIVE].forbid_replay(transaction, True)

    def _by_kind(self, claims: Sequence[Claim]) -> Iterator[tuple[SqliteRows, list[Claimed]]]:
        for kind, rows in self._rows.items():
            held = [_token(claim) for claim in claims if claim.kind is kind]
            if held:
                yield rows, held


def _versions(
    transaction: sqlite3.Connection, directives: Iterable[DirectiveRow]
) -> dict[str, SqliteVersion]:
    job_ids = json.dumps([row.body["jobId"] for row in directives])
    found = transaction.execute(sql.VERSIONS, (job_ids,))
    return {job_id: SqliteVersion(job_no, number) for job_id, job_no, number in found}


def _token(claim: Claim) -> Claimed:
    assert isinstance(claim.token, Claimed), "a claim of this ledger"
    return claim.token
