"""Messages that are claimed at birth, on SQLite."""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lucius_outbox.message import JsonText, Message
from lucius_outbox.retry import RetryPolicy
from lucius_outbox.sqlite import migrate
from lucius_outbox.sqlite.rows import SqliteRows

LEASE = timedelta(seconds=30)


class Clock:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def transaction(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "outbox.db", isolation_level=None)
    migrate(connection)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


def test_they_are_held_at_once_and_taken_over_when_the_lease_is_over(
    transaction: sqlite3.Connection,
) -> None:
    clock = Clock()
    rows, others = (SqliteRows("n", policy=RetryPolicy(), clock=clock) for _ in range(2))
    message = Message("n", "t", {"a": 1}, dedupe_key="k")
    (claimed,) = rows.enqueue_claimed(transaction, [message], LEASE)
    assert (claimed.payload, claimed.attempts, claimed.reclaimed) == ({"a": 1}, 1, False)
    assert others.claim_batch(transaction, 10, LEASE) == []
    clock.now += timedelta(seconds=31)
    (reclaimed,) = others.claim_batch(transaction, 10, LEASE)
    assert (reclaimed.id, reclaimed.payload, reclaimed.reclaimed) == (claimed.id, {"a": 1}, True)


def test_what_was_enqueued_before_is_left_out(transaction: sqlite3.Connection) -> None:
    rows = SqliteRows("n", policy=RetryPolicy(), clock=Clock())
    first = Message("n", "t", {"a": 1}, dedupe_key="k")
    other = Message("n", "t", {"a": 2}, dedupe_key="l")
    rows.enqueue_claimed(transaction, [first], LEASE)
    assert [c.dedupe_key for c in rows.enqueue_claimed(transaction, [first, other], LEASE)] == ["l"]


def test_the_holder_settles_them(transaction: sqlite3.Connection) -> None:
    clock = Clock()
    rows = SqliteRows("n", policy=RetryPolicy(), clock=clock)
    claims = rows.enqueue_claimed(transaction, [Message("n", "t", {})], LEASE)
    rows.ack(transaction, claims)
    clock.now += timedelta(hours=1)
    assert rows.claim_batch(transaction, 10, LEASE) == []


def test_text_that_is_json_already_is_stored_as_it_is(transaction: sqlite3.Connection) -> None:
    rows = SqliteRows("n", policy=RetryPolicy(), clock=Clock())
    text = JsonText('{"b": 1.0,  "a": "\\u0000"}')
    rows.enqueue_claimed(transaction, [Message("n", "t", text)], LEASE)
    stored = transaction.execute("SELECT payload FROM lucius_outbox_messages").fetchone()
    assert stored == (text,)
