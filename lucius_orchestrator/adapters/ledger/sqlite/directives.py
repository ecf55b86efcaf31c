"""OUTBOX rows in `lucius_outbox`, settled in the transactions of the ledger."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from lucius_contract.routing import by_lane, directive_topic
from lucius_contract.states import OutboxState
from lucius_orchestrator.adapters.ledger.outbox_rows import (
    DIRECTIVE_KINDS,
    LOOKED_FOR,
    NAMESPACES,
    NEVER_REPLAYED,
    NOT_LOOKED_FOR,
    QUEUE_SEPARATOR,
    Named,
    as_seen_by,
    backlog_of,
    job_id_of,
    named_rows,
    queue_of,
    row_of,
    text_of,
    topic_of,
)
from lucius_orchestrator.adapters.ledger.sqlite import statements as sql
from lucius_orchestrator.adapters.ledger.sqlite.columns import SqliteVersion
from lucius_orchestrator.adapters.ledger.turns import (
    LAPSED_AT_ONCE,
    allotted,
    rooms_of,
    spans_of,
)
from lucius_orchestrator.domain.aggregate import Aggregate
from lucius_orchestrator.domain.decision import OutboxKind, OutboxMark, OutboxRow
from lucius_orchestrator.ports.ledger import (
    Adopter,
    Backlog,
    Claim,
    DirectiveStatus,
    Stored,
    Turns,
)
from lucius_outbox.errors import LeaseLost
from lucius_outbox.message import Claimed, Failure, Message
from lucius_outbox.retry import Delays, RetryPolicy
from lucius_outbox.sqlite.enqueueing import enqueue_all
from lucius_outbox.sqlite.rows import SqliteRows
from lucius_outbox.sqlite.times import microseconds
from lucius_outbox.states import LEDGER_NAME, Status

WITHOUT_END = 2**31 - 1
_DIRECTIVES = tuple(NAMESPACES[kind] for kind in DIRECTIVE_KINDS)
_QUEUED = (NAMESPACES[OutboxKind.DIRECTIVE],)


class Adoption(NamedTuple):
    lease: timedelta
    adopter: Adopter


class Births(NamedTuple):
    """What came of rows that a commit brings: claims for their adopters, and whether there are
    others that somebody has to look for."""

    claims: list[Claim]
    are_waiting: bool


NO_BIRTHS = Births([], are_waiting=False)


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
        self._adoptions: dict[OutboxKind, Adoption] = {}
        rows = {
            namespace: SqliteRows(namespace, policy=policy, clock=clock)
            for namespace in NAMESPACES.values()
        }
        # One for DIRECTIVEs and TURNs: only the one that has claimed a row can settle it.
        self._rows = {kind: rows[namespace] for kind, namespace in NAMESPACES.items()}

    def adopt(self, kind: OutboxKind, lease: timedelta, adopter: Adopter) -> Callable[[], None]:
        adoption = Adoption(lease, adopter)
        if kind not in NOT_LOOKED_FOR:
            self._adoptions[kind] = adoption

        def end() -> None:
            if self._adoptions.get(kind) is adoption:
                del self._adoptions[kind]

        return end

    def enqueue(
        self, transaction: sqlite3.Connection, rows: Sequence[OutboxRow], version: SqliteVersion
    ) -> Births:
        claims, are_waiting = list[Claim](), False
        for row in rows:
            adoption, message = self._adoptions.get(row.kind), self._message(row)
            if adoption is None or not adoption.adopter.wants(row):
                enqueue_all(transaction, [message])
                are_waiting |= message.namespace in LOOKED_FOR
                continue
            held = self._rows[row.kind].enqueue_claimed(transaction, [message], adoption.lease)
            claims += [Claim(job_id_of(row), row.kind, row, 0, token, version) for token in held]
        return Births(claims, are_waiting)

    def hand_over(self, claims: Sequence[Claim]) -> None:
        """Give durable rows to their adopters; if one has gone meanwhile, the leases run out."""
        for claim in claims:
            adoption = self._adoptions.get(claim.kind)
            if adoption is not None:
                adoption.adopter.take([claim])

    def _message(self, row: OutboxRow) -> Message:
        return Message(
            NAMESPACES[row.kind],
            topic_of(row),
            text_of(row),
            dedupe_key=row.outbox_id,
            not_before=row.created_at if self._clock_is_injected else None,
            queue=queue_of(row),
        )

    def claim(
        self, transaction: sqlite3.Connection, kind: OutboxKind, size: int, lease: timedelta
    ) -> list[Claim]:
        if kind in NOT_LOOKED_FOR:
            return []
        return _claims(transaction, kind, self._rows[kind].claim_batch(transaction, size, lease))

    def allotted(self, connection: sqlite3.Connection, turns: Turns) -> dict[str, int]:
        """Return how many directives to claim from which queues. Only reads."""
        rows = self._rows[OutboxKind.DIRECTIVE]
        rooms = rooms_of(rows.queue_groups(connection, QUEUE_SEPARATOR), turns)
        return allotted(rooms, rows.queues(connection, spans_of(rooms, turns)), turns)

    def has_claimable_in(self, connection: sqlite3.Connection, queues: Collection[str]) -> bool:
        """Return whether there is a row due in the queues, or a claim that has lapsed."""
        return self._rows[OutboxKind.DIRECTIVE].claimable_in(connection, queues)

    def claim_queues(
        self, transaction: sqlite3.Connection, sizes: Mapping[str, int], lease: timedelta
    ) -> list[Claim]:
        kind = OutboxKind.DIRECTIVE
        claims = self._rows[kind].claim_queues(transaction, sizes, lease, expired=LAPSED_AT_ONCE)
        return _claims(transaction, kind, claims)

    def take(
        self, transaction: sqlite3.Connection, stored: Stored, name: Named, lease: timedelta
    ) -> Claim | None:
        kind, (_, topic, outbox_id) = OutboxKind.INVOCATION, name
        claimed = self._rows[kind].claim_named(transaction, topic, outbox_id, lease)
        if claimed is None:
            return None
        row, tries = row_of(kind, topic, claimed.payload), claimed.attempts - 1
        return Claim(job_id_of(row), kind, row, tries, claimed, stored.version, stored)

    def forget(self, transaction: sqlite3.Connection, aggregate: Aggregate) -> None:
        """INVOCATIONs that nobody asked for, of a job that goes: no claim would ever meet them. And
        TURNs, which would wait until their service has room."""
        topic = directive_topic(aggregate.job.route.lane)
        for kind, names in named_rows(aggregate).items():
            key = (NAMESPACES[kind], topic, json.dumps(names))
            transaction.execute(sql.FORGET_NAMED, key)

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

    def status(self, connection: sqlite3.Connection, name: Named) -> DirectiveStatus | None:
        key = (*_DIRECTIVES, name.topic, name.outbox_id)
        found = connection.execute(sql.DIRECTIVE, key).fetchone()
        if found is None:
            return None
        status, due_at, locked_until = found
        now = microseconds(self._clock())
        free = locked_until is None or locked_until < now
        state = OutboxState(LEDGER_NAME[Status(status)].value)
        is_claimable = state is OutboxState.PENDING and free and due_at <= now
        return as_seen_by(name.attempt, DirectiveStatus(state, is_claimable))

    def backlog(self, connection: sqlite3.Connection) -> dict[int, int]:
        return by_lane(connection.execute(sql.BACKLOG, _DIRECTIVES * 2).fetchall())

    def backlogs(self, connection: sqlite3.Connection) -> list[Backlog]:
        return [
            backlog_of(service, topic, count, datetime.fromisoformat(oldest))
            for service, topic, count, oldest in connection.execute(sql.BACKLOGS, _QUEUED * 2)
        ]

    def prune(self, transaction: sqlite3.Connection, before: datetime, limit: int) -> int:
        older_than = self._clock() - before
        pruned = 0
        for rows in set(self._rows.values()):
            pruned += rows.prune(transaction, older_than, limit - pruned)
            dead = (rows.namespace, microseconds(before), limit - pruned)
            pruned += transaction.execute(sql.PRUNE_DEAD, dead).rowcount
        return pruned

    def forbid_replay(self, transaction: sqlite3.Connection) -> None:
        for kind in NEVER_REPLAYED:
            self._rows[kind].forbid_replay(transaction, True)

    def _by_kind(self, claims: Sequence[Claim]) -> Iterator[tuple[SqliteRows, list[Claimed]]]:
        for kind, rows in self._rows.items():
            held = [_token(claim) for claim in claims if claim.kind is kind]
            if held:
                yield rows, held


def _claims(
    transaction: sqlite3.Connection, kind: OutboxKind, claims: Sequence[Claimed]
) -> list[Claim]:
    rows = [row_of(kind, claimed.topic, claimed.payload) for claimed in claims]
    versions = _versions(transaction, rows)
    return [
        Claim(job_id, row.kind, row, claimed.attempts - 1, claimed, versions.get(job_id))
        for row, claimed in zip(rows, claims, strict=True)
        for job_id in (job_id_of(row),)
    ]


def _versions(
    transaction: sqlite3.Connection, rows: Iterable[OutboxRow]
) -> dict[str, SqliteVersion]:
    job_ids = json.dumps([job_id_of(row) for row in rows])
    found = transaction.execute(sql.VERSIONS, (job_ids,))
    return {job_id: SqliteVersion(job_no, number) for job_id, job_no, number in found}


def _token(claim: Claim) -> Claimed:
    assert isinstance(claim.token, Claimed), "a claim of this ledger"
    return claim.token
