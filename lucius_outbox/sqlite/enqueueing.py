"""Enqueue in the caller's own SQLite transaction."""

import sqlite3
import time
from collections.abc import Sequence

from lucius_outbox.errors import NoTransaction
from lucius_outbox.message import Message, NewRow, Receipt, new_rows, receipts
from lucius_outbox.sqlite.times import microseconds

_INSERT = """
INSERT INTO lucius_outbox_messages
    (id, namespace, topic, tenant_id, dedupe_key, ordering_key, payload,
     next_attempt_at, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (namespace, topic, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
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
    if transaction.isolation_level is None and not transaction.in_transaction:
        raise NoTransaction("the connection is in autocommit mode: execute BEGIN, then enqueue")
    rows = new_rows(messages)
    now = time.time_ns() // 1000
    return receipts(rows, [row.id for row in rows if _inserted(transaction, row, now)])


def _inserted(transaction: sqlite3.Connection, row: NewRow, now: int) -> bool:
    due = now if row.not_before is None else microseconds(row.not_before)
    return transaction.execute(_INSERT, (*row[:7], due, now, now)).rowcount == 1
