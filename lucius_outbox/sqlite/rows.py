"""The verbs of the store inside a SQLite transaction that the caller has begun.

Whoever commits rows of its own together with the outbox's (a ledger that marks a step and its
message in one commit) uses these; everybody else uses `SqliteStore`. The transaction must hold the
write lock (BEGIN IMMEDIATE): it is what makes a claim atomic.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, groupby
from operator import attrgetter, itemgetter
from random import Random
from typing import Any
from uuid import uuid4

from lucius_outbox.errors import LeaseLost, OnDeadFailed, ReplayForbidden
from lucius_outbox.message import Claimed, Dead, Failure, Message, checked, new_ids
from lucius_outbox.redaction import redacted
from lucius_outbox.retry import RetryPolicy
from lucius_outbox.sqlite import statements as sql
from lucius_outbox.sqlite.times import microseconds, moment
from lucius_outbox.store import Buried, Replayed, Span, TopicStats, checked_replay

OnDead = Callable[[sqlite3.Connection, Dead], None]
_MICROSECOND = timedelta(microseconds=1)
_decode = json.JSONDecoder().decode
_SEQ = -1
_ORDER = itemgetter(-2, -1)  # next_attempt_at, seq


class SqliteRows:
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
        self._clock = clock or _utc_now
        self._chance = chance or Random().random  # noqa: S311 - spreads retries, guards nothing

    def claimable(self, transaction: sqlite3.Connection) -> bool:
        """Whether a claim is worth the write lock. Needs no transaction."""
        now = self._now()
        due = (self.namespace, now, self._policy.max_attempts, 1)
        return bool(_all(transaction, sql.DUE, due) or self._expired(transaction, now, 1))

    def claim_batch(
        self, transaction: sqlite3.Connection, size: int, lease: timedelta
    ) -> list[Claimed]:
        now = self._now()
        rows = self._expired(transaction, now, size)
        rows += self._due(transaction, now, size - len(rows))
        return self._take(transaction, sorted(rows, key=_ORDER), now, lease)

    def claim_named(
        self, transaction: sqlite3.Connection, topic: str, dedupe_key: str, lease: timedelta
    ) -> Claimed | None:
        """Take the row of a dedupe key, due or not, for as long as `lease`: for whoever knows which
        message it wants. None: there is none, it has ended or may not be tried again, another holds
        it, or an earlier row of its ordering key is pending or processing."""
        now, policy = self._now(), self._policy
        name = (self.namespace, topic, dedupe_key)
        rows = _all(transaction, sql.NAMED, (*name, policy.max_attempts, now, policy.max_reclaims))
        if not rows or self._is_blocked(transaction, rows[0]):
            return None
        (claimed,) = self._take(transaction, rows, now, lease)
        return claimed

    def queues(self, transaction: sqlite3.Connection, spans: Sequence[Span]) -> list[list[str]]:
        """Return, for each span, the queues in it that have pending rows, due or not.

        Needs no transaction. Costs a seek in an index per queue, however many rows are in them.
        Rows that a release without queues has written are in the queue "".
        """
        return [
            [queue for (queue,) in _all(transaction, sql.QUEUES, values)]
            for span in spans
            for values in ({"namespace": self.namespace, **span._asdict()},)
        ]

    def queue_groups(self, transaction: sqlite3.Connection, separator: str) -> list[str]:
        """Return what queues with pending rows have before the separator, a character, each once.

        Needs no transaction. Costs a seek in an index per group, however many queues are in it.
        """
        values = {
            "namespace": self.namespace,
            "separator": separator,
            "successor": chr(ord(separator) + 1),
        }
        rows = _all(transaction, sql.QUEUE_GROUPS, values)
        return list(dict.fromkeys(queue.partition(separator)[0] for (queue,) in rows))

    def claimable_in(self, transaction: sqlite3.Connection, queues: Collection[str]) -> bool:
        """Return whether a claim of these queues, or of rows whose lease has expired, is worth the
        write lock. Needs no transaction."""
        now = self._now()
        return bool(self._expired(transaction, now, 1)) or any(
            self._due_in(transaction, queue, now, 1) for queue in queues
        )

    def claim_queues(
        self,
        transaction: sqlite3.Connection,
        sizes: Mapping[str, int],
        lease: timedelta,
        *,
        expired: int = 0,
    ) -> list[Claimed]:
        """Take up to `expired` rows whose lease has expired, of any queue or none, then the oldest
        due rows of each queue, up to its size, in the order of `sizes`.

        Rows with an ordering key are left to `claim_batch` until they are claimed for the first
        time.
        """
        now = self._now()
        rows = sorted(self._expired(transaction, now, expired), key=_ORDER)
        for queue, size in sizes.items():
            rows += self._due_in(transaction, queue, now, size)
        return self._take(transaction, rows, now, lease)

    def enqueue_claimed(
        self, transaction: sqlite3.Connection, messages: Sequence[Message], lease: timedelta
    ) -> list[Claimed]:
        """Enqueue messages of this namespace without an ordering key and claim them at birth: for a
        dispatcher in the same process, which need not look for them. What was enqueued before is
        left out."""
        at, claim_no = self._clock(), next(self._claim_nos)
        now = microseconds(at)
        until = now + lease // _MICROSECOND
        held: Any = (1, 0, claim_no, False, at + lease, at)
        bodies = [checked(message) for message in messages]
        claims = []
        for new_id, body, message in zip(new_ids(len(messages)), bodies, messages, strict=True):
            row = (new_id, message.namespace, message.topic, message.tenant_id, message.dedupe_key)
            holder = (claim_no, self.worker_id, until)
            values = (*row, body, *holder, now, now, now, message.queue)
            if transaction.execute(sql.ENQUEUE_CLAIMED, values).rowcount:
                claims.append(Claimed(*row, None, message.payload, *held))
        return claims

    def ack(self, transaction: sqlite3.Connection, claims: Sequence[Claimed]) -> None:
        if len(claims) == 1:
            lost = self._ack_one(transaction, claims[0])
        else:
            lost = self._settle(transaction, sql.ACK, claims, self._now())
        self._release_keys(transaction, [claimed for claimed in claims if claimed.id not in lost])
        _require_none("ack", lost)

    def release(self, transaction: sqlite3.Connection, claims: Sequence[Claimed]) -> None:
        _require_none("release", self._settle(transaction, sql.RELEASE, claims, self._now()))

    def extend(
        self, transaction: sqlite3.Connection, claims: Sequence[Claimed], lease: timedelta
    ) -> None:
        now = self._now()
        until = now + lease // _MICROSECOND
        _require_none("extend", self._settle(transaction, sql.EXTEND, claims, until, now))

    def nack(self, transaction: sqlite3.Connection, failures: Sequence[Failure]) -> Buried:
        now, lost, buried = self._now(), [], Buried([], [])
        for failure in failures:
            claimed, error = failure.claimed, redacted(failure.error)
            holder = (json.dumps([claimed.id]), self.worker_id, claimed.claim_no)
            delay = self._policy.delay_after(claimed.attempts, self._chance())
            if delay is None or failure.permanent:
                found = self._bury(transaction, buried, sql.NACK_DEAD, (error, now, *holder))
            else:
                due = now + delay // _MICROSECOND
                values = (due, error, now, *holder)
                found = transaction.execute(sql.NACK_RETRY, values).rowcount == 1
            if not found:
                lost.append(claimed.id)
        _require_none("nack", lost, buried)
        return buried

    def sweep_dead(self, transaction: sqlite3.Connection, limit: int) -> Buried:
        now, policy, buried = self._now(), self._policy, Buried([], [])
        pending = (self.namespace, policy.max_attempts, limit)
        expired = (self.namespace, now, policy.max_reclaims, limit)
        spent = _all(transaction, sql.SPENT_PENDING, pending)
        spent += _all(transaction, sql.SPENT_PROCESSING, expired)
        for seq, error in spent[:limit]:
            self._bury(transaction, buried, sql.SWEEP, (error, now, seq))
        return buried

    def replay(
        self, transaction: sqlite3.Connection, ids: Sequence[str], *, by: str, reason: str
    ) -> int:
        chosen = checked_replay(ids, by, reason)
        if _all(transaction, sql.REPLAY_FORBIDDEN, (self.namespace,)):
            raise ReplayForbidden(self.namespace)
        now, rows = self._now(), (self.namespace, json.dumps(chosen))
        transaction.execute(sql.AUDIT_REPLAY, (by, redacted(reason), now, *rows))
        return transaction.execute(sql.REPLAY, (now, now, *rows)).rowcount

    def forbid_replay(self, transaction: sqlite3.Connection, forbidden: bool) -> None:
        transaction.execute(sql.FORBID_REPLAY, (self.namespace, forbidden))

    def replays(self, transaction: sqlite3.Connection, limit: int) -> list[Replayed]:
        return [
            Replayed(message_id, by, reason, moment(at), attempts, error)
            for message_id, by, reason, at, attempts, error in _all(
                transaction, sql.REPLAYS, (self.namespace, limit)
            )
        ]

    def dead(self, transaction: sqlite3.Connection, limit: int) -> list[Dead]:
        return [_dead(row) for row in _all(transaction, sql.DEAD, (self.namespace, limit))]

    def stats(self, transaction: sqlite3.Connection, *, delivered: bool) -> list[TopicStats]:
        counted = sql.STATS + (sql.STATS_DELIVERED if delivered else "")
        rows = _all(transaction, sql.by_topic(counted), {"namespace": self.namespace})
        now = moment(self._now())
        return [
            TopicStats(
                self.namespace,
                topic,
                pending,
                processing,
                dead,
                done if delivered else None,
                moment(oldest) if oldest is not None else None,
                now - moment(oldest) if oldest is not None else None,
            )
            for topic, pending, processing, dead, done, oldest in rows
        ]

    def prune(self, transaction: sqlite3.Connection, older_than: timedelta, limit: int) -> int:
        before = self._now() - older_than // _MICROSECOND
        return transaction.execute(sql.PRUNE, (self.namespace, before, limit)).rowcount

    def _now(self) -> int:
        return microseconds(self._clock())

    def _take(
        self, transaction: sqlite3.Connection, rows: list[Any], now: int, lease: timedelta
    ) -> list[Claimed]:
        if not rows:
            return []
        until = now + lease // _MICROSECOND
        seqs = json.dumps([row[_SEQ] for row in rows])
        claim_no = next(self._claim_nos)
        transaction.execute(sql.CLAIM, (claim_no, self.worker_id, until, now, seqs))
        return _claims(rows, claim_no, moment(until))

    def _expired(self, transaction: sqlite3.Connection, now: int, size: int) -> list[Any]:
        values = (self.namespace, now, self._policy.max_reclaims, size)
        return _all(transaction, sql.EXPIRED, values)

    def _due_in(
        self, transaction: sqlite3.Connection, queue: str, now: int, size: int
    ) -> list[Any]:
        values = (self.namespace, queue, now, self._policy.max_attempts, size)
        return _all(transaction, sql.DUE_IN_QUEUE, values)

    def _due(self, transaction: sqlite3.Connection, now: int, size: int) -> list[Any]:
        """Rows to claim. Those found behind an earlier row of their key are set aside until it
        ends, so that no later claim meets them again."""
        while True:
            due = (self.namespace, now, self._policy.max_attempts, size)
            rows = _all(transaction, sql.DUE, due)
            blocked = {row[_SEQ] for row in rows if self._is_blocked(transaction, row)}
            if not blocked:
                return rows
            transaction.execute(sql.SET_ASIDE, (json.dumps(sorted(blocked)),))
            if len(blocked) < len(rows):
                return [row for row in rows if row[_SEQ] not in blocked]

    def _is_blocked(self, transaction: sqlite3.Connection, row: Any) -> bool:
        _, namespace, topic, _, _, ordering_key, *_, seq = row
        return ordering_key is not None and bool(
            _all(transaction, sql.EARLIER, (namespace, topic, ordering_key, seq))
        )

    def _ack_one(self, transaction: sqlite3.Connection, claimed: Claimed) -> list[str]:
        values = (self._now(), claimed.id, self.worker_id, claimed.claim_no)
        return [] if transaction.execute(sql.ACK_ONE, values).rowcount else [claimed.id]

    def _settle(
        self,
        transaction: sqlite3.Connection,
        statement: str,
        claims: Sequence[Claimed],
        *values: int,
    ) -> list[str]:
        """The ids of rows that are not held; the others are changed."""
        lost: list[str] = []
        for claim_no, group in groupby(claims, attrgetter("claim_no")):
            ids = [claimed.id for claimed in group]
            held = (json.dumps(ids), self.worker_id, claim_no)
            transaction.execute("SAVEPOINT lucius_outbox_settle")
            if transaction.execute(statement, (*values, *held)).rowcount != len(ids):
                transaction.execute("ROLLBACK TO lucius_outbox_settle")
                still = {row_id for (row_id,) in _all(transaction, sql.HELD, held)}
                lost += [row_id for row_id in ids if row_id not in still]
                transaction.execute(statement, (*values, *held))
            transaction.execute("RELEASE lucius_outbox_settle")
        return lost

    def _bury(
        self,
        transaction: sqlite3.Connection,
        buried: Buried,
        statement: str,
        values: tuple[Any, ...],
    ) -> bool:
        """Mark one row dead together with what `on_dead` does, or neither; False: not held."""
        transaction.execute("SAVEPOINT lucius_outbox_dead")
        try:
            rows = [_dead(row) for row in _all(transaction, statement, values)]
            self._release_keys(transaction, rows)
            for dead in rows:
                self._tell(transaction, dead)
        except OnDeadFailed as error:
            transaction.execute("ROLLBACK TO lucius_outbox_dead")
            buried.failed.append(error)
            return True
        finally:
            transaction.execute("RELEASE lucius_outbox_dead")
        buried.dead.extend(rows)
        return bool(rows)

    def _tell(self, transaction: sqlite3.Connection, dead: Dead) -> None:
        if self._on_dead is None:
            return
        try:
            self._on_dead(transaction, dead)
        except Exception as error:
            raise OnDeadFailed(dead.id) from error

    def _release_keys(
        self, transaction: sqlite3.Connection, ended: Iterable[Claimed | Dead]
    ) -> None:
        for row in ended:
            if row.ordering_key is not None:
                transaction.execute(sql.NEXT_OF_KEY, (self.namespace, row.topic, row.ordering_key))


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _all(connection: sqlite3.Connection, statement: str, values: Any) -> list[Any]:
    """Rows as tuples, whatever row factory the caller's connection has."""
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(statement, values).fetchall()


def _claims(rows: Sequence[Any], claim_no: int, until: datetime) -> list[Claimed]:
    return [
        Claimed._make(
            (*row[:6], _decode(row[6]), *row[7:9], claim_no, row[9] == 1, until, moment(row[10]))
        )
        for row in rows
    ]


def _dead(row: Any) -> Dead:
    return Dead._make((*row[:6], _decode(row[6]), *row[7:10], moment(row[10])))


def _require_none(verb: str, lost: Sequence[str], buried: Buried | None = None) -> None:
    if lost:
        raise LeaseLost(verb, lost, buried)
