"""Enqueueing in the caller's own transaction."""

import json
import sqlite3
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import AsyncConnection

from lucius_outbox import InvalidMessage, NoTransaction, Outcome, postgres, sqlite
from lucius_outbox.message import MAX_LENGTH, new_ids, new_rows
from tests.outbox.backends import (
    Backend,
    Clock,
    PostgresBackend,
    SqliteBackend,
    commit,
    message,
    numbers,
)

LEASE = timedelta(seconds=30)


async def test_a_rolled_back_transaction_leaves_no_message(backend: Backend) -> None:
    async with backend.transaction(commit=False) as transaction:
        (receipt,) = await backend.enqueue(transaction, message(1, dedupe_key="k"))
        assert receipt.outcome is Outcome.ENQUEUED
    assert await backend.rows() == []
    (again,) = await commit(backend, message(1, dedupe_key="k"))
    assert again.outcome is Outcome.ENQUEUED


async def test_nothing_is_visible_to_others_before_the_caller_commits(backend: Backend) -> None:
    store = backend.store()
    async with backend.transaction() as transaction:
        await backend.enqueue(transaction, message(1))
        assert await backend.rows() == []
        assert await store.stats() == []
    assert numbers(await store.claim_batch(10, LEASE)) == [1]


async def test_a_new_row_begins_as_the_specification_says(backend: Backend) -> None:
    (receipt,) = await commit(
        backend, message(7, tenant_id="acme", dedupe_key="acme/7", ordering_key="doc")
    )
    (row,) = await backend.rows()
    assert row["id"] == receipt.id
    assert (row["status"], row["attempts"], row["reclaims"]) == ("pending", 0, 0)
    assert row["locked_by"] is row["locked_until"] is row["last_error"] is None
    assert row["created_at"] == row["updated_at"] == row["next_attempt_at"]
    assert abs(datetime.now(UTC) - row["created_at"]) < timedelta(hours=1)
    assert (row["tenant_id"], row["dedupe_key"]) == ("acme", "acme/7")


async def test_many_messages_get_a_receipt_each_in_their_order(backend: Backend) -> None:
    await commit(backend, message(0, dedupe_key="b"))
    receipts = await commit(
        backend,
        message(1, dedupe_key="a"),
        message(2, dedupe_key="b"),
        message(3),
        message(4, dedupe_key="a"),
        message(5, topic="other", dedupe_key="b"),
    )
    assert [receipt.outcome == Outcome.ENQUEUED for receipt in receipts] == [
        True,
        False,
        True,
        False,
        True,
    ]
    rows = {row["id"] for row in await backend.rows()}
    assert {receipt.id for receipt in receipts if receipt.id} < rows
    assert len(rows) == 4


async def test_no_messages_need_no_statement(backend: Backend) -> None:
    assert await commit(backend) == []


async def test_the_order_of_one_call_is_the_order_of_claims(backend: Backend) -> None:
    await commit(backend, *map(message, range(50)))
    assert numbers(await backend.store().claim_batch(50, LEASE)) == list(range(50))


async def test_not_before_delays_the_first_attempt(backend: Backend, clock: Clock) -> None:
    store = backend.store(clock)
    await commit(backend, message(1, not_before=clock.now + timedelta(minutes=5)), message(2))
    claims = await store.claim_batch(10, LEASE)
    assert numbers(claims) == [2]
    await store.ack(claims)
    clock.advance(minutes=5)
    assert numbers(await store.claim_batch(10, LEASE)) == [1]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"namespace": ""}, "namespace"),
        ({"namespace": None}, "namespace"),
        ({"topic": "x" * (MAX_LENGTH["topic"] + 1)}, "topic"),
        ({"topic": "ü" * (MAX_LENGTH["topic"] // 2 + 1)}, "topic"),
        ({"topic": "nul\0"}, "topic"),
        ({"tenant_id": "half \ud800"}, "tenant_id"),
        ({"ordering_key": ""}, "ordering_key"),
        ({"dedupe_key": 7}, "dedupe_key"),
        ({"tenant_id": "acme", "dedupe_key": "other/1"}, "dedupe_key"),
        ({"tenant_id": "acme", "dedupe_key": "acme"}, "dedupe_key"),
        ({"tenant_id": "acme", "dedupe_key": "acme2/1"}, "dedupe_key"),
        ({"payload": {"x": object()}}, "payload"),
        ({"payload": float("nan")}, "payload"),
        ({"payload": {"a": ["half \ud800"]}}, "payload"),
        ({"payload": {"a": ["nul\0"]}}, "payload"),
        ({"payload": {"nul\0": 1}}, "payload"),
        ({"not_before": datetime(2026, 1, 1)}, "not_before"),  # noqa: DTZ001
        ({"queue": ""}, "queue"),
        ({"queue": "q", "ordering_key": "k"}, "queue"),
    ],
)
async def test_a_bad_message_is_refused_and_the_transaction_goes_on(
    backend: Backend, fields: dict[str, Any], field: str
) -> None:
    async with backend.transaction() as transaction:
        await backend.enqueue(transaction, message(1))
        with pytest.raises(InvalidMessage) as refusal:
            await backend.enqueue(transaction, message(2), message(3, **fields))
        assert refusal.value.field == field
        await backend.enqueue(transaction, message(4))
    assert numbers(await backend.store().claim_batch(10, LEASE)) == [1, 4]


async def test_a_key_of_the_right_tenant_is_taken(backend: Backend) -> None:
    for fields in (
        {"tenant_id": "acme", "dedupe_key": "acme/1"},
        {"tenant_id": "acme"},
        {"dedupe_key": "anything"},
    ):
        (receipt,) = await commit(backend, message(1, **fields))
        assert receipt.outcome is Outcome.ENQUEUED


async def test_limits_leave_room_in_every_index(backend: Backend) -> None:
    longest = {name: "ü" * (size // 2) for name, size in MAX_LENGTH.items()}
    tenant = longest["tenant_id"]
    key = tenant + "/" + longest["dedupe_key"]
    longest["dedupe_key"] = key.encode()[: MAX_LENGTH["dedupe_key"] - 1].decode()
    queue = longest.pop("queue")
    await commit(backend, message(1, **longest))
    del longest["ordering_key"], longest["dedupe_key"]
    await commit(backend, message(2, **longest, queue=queue))
    store = backend.store(namespace=longest["namespace"])
    claims = await store.claim_batch(2, LEASE)
    assert numbers(claims) == [1, 2]
    await store.ack(claims)


async def test_a_connection_in_autocommit_mode_is_refused_outside_a_transaction(
    sqlite_backend: SqliteBackend, postgres_backend: PostgresBackend
) -> None:
    connection = sqlite3.connect(sqlite_backend.path, isolation_level=None)
    with pytest.raises(NoTransaction):
        sqlite.enqueue(connection, message(1))
    newer: Any = SimpleNamespace(isolation_level="", autocommit=True, in_transaction=False)
    with pytest.raises(NoTransaction):  # a connection as Python 3.12 makes them
        sqlite.enqueue(newer, message(1))
    connection.execute("BEGIN")
    assert sqlite.enqueue(connection, message(2)).id
    connection.execute("COMMIT")
    connection.close()
    assert len(await sqlite_backend.rows()) == 1

    async with await AsyncConnection.connect(postgres_backend.uri, autocommit=True) as on_postgres:
        with pytest.raises(NoTransaction):
            await postgres.enqueue(on_postgres, message(1))
        async with on_postgres.transaction():
            assert (await postgres.enqueue(on_postgres, message(2))).id
    assert len(await postgres_backend.rows()) == 1


async def test_many_messages_are_one_round_trip(
    postgres_backend: PostgresBackend, tmp_path: Path
) -> None:
    async with postgres_backend.transaction() as transaction:
        await transaction.execute("SELECT 1")  # its BEGIN is not ours
        with (tmp_path / "trace").open("w+") as trace:
            transaction.pgconn.trace(trace.fileno())
            await postgres.enqueue_all(transaction, [message(n) for n in range(500)])
            transaction.pgconn.untrace()
            trace.seek(0)
            sent = [line.split() for line in trace if "\tF\t" in line]
    assert [words[-1] for words in sent].count("Sync") == 1
    assert not [words for words in sent if "Query" in words]


async def test_it_works_whatever_rows_the_callers_connection_makes(
    sqlite_backend: SqliteBackend,
) -> None:
    async with sqlite_backend.transaction() as connection:
        connection.row_factory = sqlite3.Row
        sqlite.enqueue(connection, message(1, dedupe_key="k"))
        assert sqlite.enqueue(connection, message(1, dedupe_key="k")).id is None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda values: (
        st.lists(values, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
            values,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, min_size=1, max_size=8))
def test_payloads_come_back_as_they_went_in(payloads: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder, "outbox.db"))
        sqlite.migrate(connection)
        with connection:
            sqlite.enqueue_all(connection, [message(payload=payload) for payload in payloads])
        rows = connection.execute("SELECT payload FROM lucius_outbox_messages ORDER BY seq")
        assert [json.loads(row) for (row,) in rows] == payloads
        connection.close()


async def test_payloads_come_back_as_they_went_in_from_jsonb(
    postgres_backend: PostgresBackend,
) -> None:
    payloads: list[Any] = [
        None,
        True,
        0,
        1.5,
        "ü\\u0000 \\",
        ["\\u0000", 7],
        [],
        {},
        {"a": [{"b": "\n\t\"'"}]},
    ]
    await commit(postgres_backend, *(message(payload=payload) for payload in payloads))
    claims = await postgres_backend.store().claim_batch(20, LEASE)
    assert [claimed.payload for claimed in claims] == payloads


def test_ids_are_uuids_of_version_7_that_sort_by_time() -> None:
    ids = new_ids(1000)
    assert len(set(ids)) == 1000
    assert all(text[14] == "7" and text[19] in "89ab" and len(text) == 36 for text in ids)
    stamp = int(ids[0].replace("-", "")[:12], 16) / 1000
    assert abs(stamp - datetime.now(UTC).timestamp()) < 60


def test_every_message_is_checked_before_the_first_is_written() -> None:
    with pytest.raises(InvalidMessage):
        new_rows([message(1), message(2, topic="")])
