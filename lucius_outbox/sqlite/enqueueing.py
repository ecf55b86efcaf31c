"""Enqueue in the caller's own SQLite transaction."""

import json
import sqlite3
import time
from collections.abc import Sequence

from lucius_outbox.errors import NoTransaction
from lucius_outbox.message import Message, NewRow, Receipt, new_rows, receipts
from lucius_outbox.sqlite.times import microseconds

_INSERT = """
INSERT INTO lucius_outbox_messages
    (id, namespace, topic, tenant_id, dedupe_key, ordering_key, payload,
     next_attempt_at, created_at, updated_at, queue)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (namespace, topic, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
"""
_PRESENT = """
SELECT id FROM lucius_outbox_messages WHERE id IN (SELECT value FROM json_each(?))
"""


def enqueue(transaction: sqlite3.Connection, message: Message) -> Receipt:
    """One message, to be published once the caller's transaction has committed."""
    (receipt,) = enqueue_all(transaction, [message])
    return receipt


def enqueue_all(transaction: sqlite3.Connection, messages: Sequence[Message]) -> list[Receipt]:
    """All of them or, if one is invalid, none; a receipt for each.

    Never begins, commits or rolls back anything; a connection in autocommit mode outside a
    transaction is refused. Errors of sqlite3 pass through: they are about the caller's transaction.
    Wake the dispatcher after the commit (`SqliteStore.wake`), or its next poll finds the rows.
    """
    if _commits_by_itself(transaction) and not transaction.in_transaction:
        raise NoTransaction("the connection is in autocommit mode: execute BEGIN, then enqueue")
    rows = new_rows(messages)
    now = time.time_ns() // 1000
    before = transaction.total_changes
    values = [(*row[:7], _due(row, now), now, now, row.queue) for row in rows]
    transaction.executemany(_INSERT, values)
    if transaction.total_changes - before == len(rows):
        return receipts(rows, ())
    return receipts(rows, {row.id for row in rows} - _present(transaction, rows))


def _commits_by_itself(connection: sqlite3.Connection) -> bool:
    # `autocommit` came with Python 3.12, where it may also be -1: look at isolation_level.
    return connection.isolation_level is None or getattr(connection, "autocommit", -1) is True


def _due(row: NewRow, now: int) -> int:
    return now if row.not_before is None else microseconds(row.not_before)


def _present(transaction: sqlite3.Connection, rows: Sequence[NewRow]) -> set[str]:
    """Ids are new, so a row that has one is ours."""
    cursor = transaction.cursor()
    cursor.row_factory = None
    cursor.execute(_PRESENT, (json.dumps([row.id for row in rows]),))
    return {row_id for (row_id,) in cursor}
