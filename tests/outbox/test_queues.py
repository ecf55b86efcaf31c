"""Messages that are listed and claimed by their queues, inside a caller's transaction."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

import lucius_outbox.postgres.schema as postgres_schema
import lucius_outbox.sqlite.schema as sqlite_schema
from lucius_outbox import Claimed, Delays, Failure, RetryPolicy, postgres, sqlite
from lucius_outbox.postgres import statements as postgres_sql
from lucius_outbox.postgres.rows import PostgresRows
from lucius_outbox.sqlite import statements as sqlite_sql
from lucius_outbox.sqlite.rows import SqliteRows
from lucius_outbox.store import Span
from tests.names import unique
from tests.outbox.backends import (
    NAMESPACE,
    TABLE,
    Backend,
    Clock,
    PostgresBackend,
    SqliteBackend,
    commit,
    message,
    numbers,
)

LEASE = timedelta(seconds=30)
POLICY = RetryPolicy(max_attempts=5, backoff=Delays([timedelta(minutes=10)]), max_reclaims=2)
ALL = Span("", "\U0010ffff", 100)
NAMES = ["a/x", "a/ü/'\"%s", "a-b/x", "a0/x", "z", "z/x", "\U0001f980/\ue000"]
IN_ORDER = sorted(NAMES, key=str.encode)


class Worker:
    """The verbs of one worker, each in a transaction of its own."""

    def __init__(self, backend: Backend, clock: Clock | None) -> None:
        rows = SqliteRows if backend.name == "sqlite" else PostgresRows
        self.rows: Any = rows(NAMESPACE, policy=POLICY, clock=clock)
        self._backend = backend

    async def does(self, verb: str, *values: Any, **named: Any) -> Any:
        async with self._backend.transaction() as transaction:
            answer = getattr(self.rows, verb)(transaction, *values, **named)
            return await answer if isawaitable(answer) else answer

    async def queues(self, *spans: Span) -> list[list[str]]:
        found: list[list[str]] = await self.does("queues", spans or [ALL])
        return found

    async def groups(self) -> list[str]:
        found: list[str] = await self.does("queue_groups", "/")
        return found

    async def claim(self, expired: int = 0, **sizes: int) -> list[Claimed]:
        claims: list[Claimed] = await self.does("claim_queues", sizes, LEASE, expired=expired)
        return claims

    async def claims(self, expired: int = 0, **sizes: int) -> list[int]:
        return numbers(await self.claim(expired, **sizes))


NewWorker = Callable[[], Worker]


@pytest.fixture
def new_worker(backend: Backend, clock: Clock) -> NewWorker:
    return lambda: Worker(backend, clock)


@pytest.fixture
def worker(new_worker: NewWorker) -> Worker:
    return new_worker()


async def test_queues_with_pending_rows_are_listed_once_in_the_order_of_their_bytes(
    backend: Backend, worker: Worker
) -> None:
    for name in [*NAMES, *reversed(NAMES)]:
        await commit(backend, message(queue=name))
    await commit(backend, message(), message(ordering_key="k"))
    await commit(backend, message(queue="elsewhere", namespace="other"))
    assert await worker.queues() == [IN_ORDER]


async def test_a_span_begins_behind_a_queue_and_ends_with_one(
    backend: Backend, worker: Worker
) -> None:
    await commit(backend, *(message(queue=name) for name in "abcde"))
    spans = [Span("b", "d", 9), Span("", "b", 9), Span("bb", "zz", 1), Span("", "z", 0)]
    found = await worker.queues(*spans, Span("d", "c", 9), Span("e", "z", 9), Span("", "e", 2))
    assert found == [["c", "d"], ["a", "b"], ["c"], [], [], [], ["a", "b"]]
    assert await worker.does("queues", []) == []


async def test_a_queue_is_listed_while_rows_are_pending_due_or_not(
    backend: Backend, worker: Worker, clock: Clock
) -> None:
    later = clock.now + timedelta(hours=1)
    await commit(backend, message(1, queue="now"), message(2, queue="later", not_before=later))
    assert await worker.queues() == [["later", "now"]]
    claims = await worker.claim(now=1)
    assert await worker.queues() == [["later"]]
    await worker.does("release", claims)
    assert await worker.queues() == [["later", "now"]]
    await worker.does("ack", await worker.claim(now=1))
    assert await worker.queues() == [["later"]]


async def test_groups_are_what_is_before_the_first_separator(
    backend: Backend, worker: Worker
) -> None:
    """Each once, also if some of its queues have no separator."""
    assert await worker.groups() == []
    await commit(backend, message())
    assert await worker.groups() == []
    await commit(backend, *(message(queue=name) for name in [*NAMES, "a/x/y", "z-/x", "a/"]))
    assert await worker.groups() == ["a-b", "a", "a0", "z", "z-", "\U0001f980"]


async def test_a_claim_takes_the_oldest_rows_of_each_queue_in_the_order_asked_for(
    backend: Backend, worker: Worker
) -> None:
    await commit(backend, *(message(n, queue="abc"[n % 3]) for n in range(9)), message(9))
    assert await worker.claims(c=2, a=1, d=5) == [2, 5, 0]
    assert await worker.claims(b=0) == []
    assert await worker.claims() == []
    assert await worker.claims(a=9, b=9, c=9) == [3, 6, 1, 4, 7, 8]
    assert numbers(await worker.does("claim_batch", 10, LEASE)) == [9]


async def test_a_claim_is_a_claim_as_any_other(
    backend: Backend, worker: Worker, clock: Clock
) -> None:
    await commit(backend, message(7, queue="q", tenant_id="acme", dedupe_key="acme/7"))
    (claimed,) = await worker.claim(q=1)
    (row,) = await backend.rows()
    assert (claimed.id, claimed.namespace, claimed.topic) == (row["id"], NAMESPACE, "t")
    assert (claimed.tenant_id, claimed.dedupe_key, claimed.ordering_key) == (
        "acme",
        "acme/7",
        None,
    )
    assert (claimed.attempts, claimed.reclaims, claimed.reclaimed) == (1, 0, False)
    assert row["locked_until"] == claimed.locked_until == clock.now + LEASE
    assert (row["queue"], row["created_at"]) == ("q", claimed.created_at)


async def test_rows_of_a_queue_are_found_by_a_claim_of_all_rows_too(
    backend: Backend, worker: Worker
) -> None:
    await commit(backend, message(1, queue="q"), message(2), message(3, queue="p"))
    assert numbers(await worker.does("claim_batch", 10, LEASE)) == [1, 2, 3]


async def test_a_row_that_is_not_due_is_passed_over_and_keeps_its_queue(
    backend: Backend, worker: Worker, clock: Clock
) -> None:
    await commit(backend, *(message(n, queue="q") for n in (1, 2)))
    (first,) = await worker.claim(q=1)
    await worker.does("nack", [Failure(first, "away")])
    assert await worker.claims(q=9) == [2]
    clock.advance(minutes=10)
    await commit(backend, message(3, queue="q", not_before=clock.now + timedelta(seconds=1)))
    clock.advance(seconds=1)
    assert await worker.claims(q=9) == [1, 3]


async def test_a_row_that_was_released_is_the_first_of_its_queue_again(
    backend: Backend, worker: Worker
) -> None:
    await commit(backend, *(message(n, queue="q") for n in (1, 2)))
    await worker.does("release", await worker.claim(q=1))
    assert await worker.claims(q=9) == [1, 2]


async def test_expired_leases_come_first_and_only_as_many_as_asked_for(
    backend: Backend, new_worker: NewWorker, clock: Clock
) -> None:
    one, other = new_worker(), new_worker()
    await commit(backend, message(1, queue="q"), message(2), message(3, queue="p"))
    await commit(backend, message(4, queue="q"))
    await one.does("claim_batch", 3, LEASE)
    clock.advance(seconds=30)
    assert await other.claims(expired=9) == []
    clock.advance(seconds=1)
    assert await other.claims() == []
    claims = await other.claim(2, q=9)
    assert numbers(claims) == [1, 2, 4]
    assert [claimed.reclaimed for claimed in claims] == [True, True, False]
    assert [claimed.attempts for claimed in claims] == [1, 1, 1]
    assert await one.claims(expired=9) == [3]


async def test_rows_without_attempts_or_reclaims_left_are_not_taken(
    backend: Backend, worker: Worker, clock: Clock
) -> None:
    await commit(backend, message(1, queue="q"), message(2, queue="p"))
    await worker.claim(p=1)
    clock.advance(minutes=1)
    async with backend.transaction() as transaction:
        spent = f"UPDATE {TABLE} SET attempts = 5, reclaims = 2"
        await backend.execute(transaction, spent)
    assert await worker.claims(expired=9, q=9, p=9) == []


async def test_claims_at_once_take_no_row_twice(backend: Backend, new_worker: NewWorker) -> None:
    await commit(backend, *(message(n, queue="abc"[n % 3]) for n in range(30)))
    answers = await asyncio.gather(*(new_worker().claims(a=3, b=3, c=3) for _ in range(4)))
    taken = sorted(number for answer in answers for number in answer)
    assert taken == sorted(set(taken))
    assert set(taken) >= set(range(9))


async def test_a_claim_passes_over_rows_of_a_queue_that_another_claim_has_locked(
    postgres_backend: PostgresBackend, clock: Clock
) -> None:
    await commit(postgres_backend, *(message(n, queue="q") for n in range(3)))
    one, other = (Worker(postgres_backend, clock) for _ in range(2))
    async with postgres_backend.transaction() as transaction:
        claims = await one.rows.claim_queues(transaction, {"q": 2}, LEASE)
        assert numbers(claims) == [0, 1]  # not committed
        assert await other.claims(q=2) == [2]


def test_a_row_that_was_claimed_at_birth_has_a_queue(tmp_path: Path, clock: Clock) -> None:
    connection = sqlite3.connect(tmp_path / "outbox.db", isolation_level=None)
    sqlite.migrate(connection)
    rows = SqliteRows(NAMESPACE, policy=POLICY, clock=clock)
    claims = rows.enqueue_claimed(connection, [message(1, queue="q"), message(2)], LEASE)
    assert rows.queues(connection, [ALL]) == [[]]
    rows.release(connection, claims)
    assert rows.queues(connection, [ALL]) == [["q"]]
    assert numbers(rows.claim_queues(connection, {"q": 9}, LEASE)) == [1]
    connection.close()


def test_whether_a_claim_of_queues_is_worth_the_write_lock(tmp_path: Path, clock: Clock) -> None:
    connection = sqlite3.connect(tmp_path / "outbox.db", isolation_level=None)
    sqlite.migrate(connection)
    rows = SqliteRows(NAMESPACE, policy=POLICY, clock=clock)
    later = clock.now + timedelta(hours=1)
    connection.execute("BEGIN")
    sqlite.enqueue(connection, message(queue="now"))
    sqlite.enqueue(connection, message(queue="later", not_before=later))
    connection.execute("COMMIT")
    assert rows.claimable_in(connection, ["later", "now"])
    assert not rows.claimable_in(connection, ["later", "never"])
    assert not rows.claimable_in(connection, [])
    rows.claim_queues(connection, {"now": 1}, LEASE)
    assert not rows.claimable_in(connection, ["now"])
    clock.advance(seconds=31)
    assert rows.claimable_in(connection, [])
    connection.close()


class OldRelease:
    """A database of the release before queues, and what that release says to it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def enqueue(self, *keys: str, ordering_key: str | None = None) -> None:
        on_sqlite = self._backend.name == "sqlite"
        new_id, now = ("lower(hex(randomblob(16)))", "0") if on_sqlite else _POSTGRES
        columns = "id, namespace, topic, dedupe_key, ordering_key, payload, next_attempt_at"
        times = ", created_at, updated_at" if on_sqlite else ""
        ordering = f"'{ordering_key}'" if ordering_key else "NULL"
        async with self._backend.transaction() as transaction:
            for key in keys:
                await self._backend.execute(
                    transaction,
                    f"INSERT INTO {TABLE} ({columns}{times}) VALUES ({new_id}, '{NAMESPACE}', 't',"
                    f""" '{key}', {ordering}, '{{"n": {key}}}', {now}"""
                    f"{', 0, 0' if on_sqlite else ''})",
                )

    async def due(self) -> list[Any]:
        """As a claim of that release finds them."""
        index = "INDEXED BY lucius_outbox_due" if self._backend.name == "sqlite" else ""
        waiting = "waiting = 0" if self._backend.name == "sqlite" else "NOT waiting"
        async with self._backend.transaction() as transaction:
            return await self._backend.execute(
                transaction,
                f"SELECT dedupe_key FROM {TABLE} {index} WHERE namespace = '{NAMESPACE}'"
                f" AND status = 'pending' AND {waiting} ORDER BY next_attempt_at, seq",
            )


_POSTGRES = ("gen_random_uuid()", "'2020-01-01'")


@pytest.fixture
async def upgraded(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, postgres_uri: str, tmp_path: Path
) -> AsyncIterator[Backend]:
    """A database that the release before made, with two rows of its own, then migrated."""
    schema = sqlite_schema if backend.name == "sqlite" else postgres_schema
    known = schema.OUTBOX.migrations
    monkeypatch.setattr(schema.OUTBOX, "migrations", known[:1])
    if backend.name == "sqlite":
        (tmp_path / "old").mkdir()
        old: Backend = SqliteBackend(tmp_path / "old")
    else:
        old = PostgresBackend(postgres_uri, unique("old"))
        await old.open()
    await OldRelease(old).enqueue("1", "2")
    monkeypatch.setattr(schema.OUTBOX, "migrations", known)
    async with old.transaction() as transaction:
        if backend.name == "sqlite":
            sqlite.migrate(transaction)
        else:
            await postgres.migrate(transaction)
    yield old
    await old.close()


async def test_rows_of_a_release_without_queues_are_in_the_queue_of_no_name(
    upgraded: Backend, clock: Clock
) -> None:
    """Those that were there before, and those that it writes while both releases run."""
    worker, old = Worker(upgraded, clock), OldRelease(upgraded)
    await old.enqueue("3")
    await old.enqueue("4", "5", ordering_key="k")
    await commit(upgraded, message(6, queue="q", dedupe_key="6"), message(7, dedupe_key="7"))
    assert [key for (key,) in await old.due()] == ["1", "2", "3", "4", "5", "6", "7"]
    assert await worker.queues(Span("", "z", 9)) == [["q"]]
    assert await worker.groups() == ["", "q"]
    assert await worker.claims(**{"": 2}) == [1, 2]
    assert await worker.claims(**{"": 9, "q": 9}) == [3, 6], "rows with an ordering key are left"
    assert numbers(await worker.does("claim_batch", 9, LEASE)) == [4, 7]


MANY = 20_000


async def fill(backend: Backend) -> None:
    """One queue with nearly all rows, of two groups, and one whose row is the newest."""
    await commit(backend, message(0, queue="full/x"))
    async with backend.transaction() as transaction:
        new_id = "gen_random_uuid()" if backend.name == "postgres" else "hex(randomblob(16))"
        columns = "namespace, topic, payload, next_attempt_at, created_at, updated_at, queue"
        await backend.execute(
            transaction,
            f"WITH RECURSIVE numbers (n) AS"
            f" (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {MANY})"
            f" INSERT INTO {TABLE} (id, {columns})"
            f" SELECT {new_id}, {columns} FROM numbers, {TABLE} WHERE queue = 'full/x'",
        )
    await commit(backend, message(1, queue="rare/x"))


async def test_listing_and_claiming_step_over_the_rows_of_a_full_queue(
    sqlite_backend: SqliteBackend, clock: Clock
) -> None:
    """Measured in steps of SQLite's machine, which are the same at every run."""
    await fill(sqlite_backend)
    rows = SqliteRows(NAMESPACE, policy=POLICY, clock=clock)
    async with sqlite_backend.transaction() as connection:
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 100
            return 0

        connection.set_progress_handler(count, 100)
        assert rows.queue_groups(connection, "/") == ["full", "rare"]
        assert rows.queues(connection, [ALL]) == [["full/x", "rare/x"]]
        assert rows.claimable_in(connection, ["rare/x"])
        claims = rows.claim_queues(connection, {"rare/x": 1, "full/x": 2}, LEASE, expired=9)
    assert numbers(claims) == [1, 0, 0]
    assert steps < MANY / 10


def test_every_step_of_sqlite_is_a_seek_in_the_index(sqlite_backend: SqliteBackend) -> None:
    connection = sqlite3.connect(sqlite_backend.path)
    spans = {"namespace": NAMESPACE, "after": "", "upto": "z", "limit": 9}
    plans: dict[str, tuple[str, Any]] = {
        sqlite_sql.QUEUES: ("queue>? AND queue<?", spans),
        sqlite_sql.QUEUE_GROUPS: ("queue>?", {**spans, "separator": "/", "successor": "0"}),
        sqlite_sql.DUE_IN_QUEUE: (
            "queue=? AND next_attempt_at<?",
            (NAMESPACE, "q", 0, 5, 9),
        ),
    }
    for statement, (condition, values) in plans.items():
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        seeks = [line for line in plan if "lucius_outbox_queues" in line]
        assert seeks, plan
        assert all(f"(namespace=? AND {condition})" in seek for seek in seeks), plan
        assert not any("TEMP B-TREE" in line for line in plan), plan
    connection.close()


@pytest.mark.parametrize("analyzed", ["never", "before the rows came", "after"])
async def test_listing_and_claiming_read_few_rows_whatever_the_statistics_say(
    postgres_backend: PostgresBackend, analyzed: str
) -> None:
    rows = PostgresRows(NAMESPACE, policy=POLICY)
    sizes = {"queues": ["rare/x", "full/x"], "counts": [1, 2], "expired": 9}
    separators = {"separator": "/", "successor": "0"}
    spans = {"after": ["", "g"], "upto": ["z", "z"], "limits": [9, 9]}
    values = rows._values({"lease": LEASE, "claim_no": 1, **sizes, **separators, **spans})
    async with postgres_backend.transaction() as connection:
        await connection.execute(f"ALTER TABLE {TABLE} SET (autovacuum_enabled = false)")
        if analyzed == "before the rows came":
            await connection.execute(
                f"INSERT INTO {TABLE} (id, namespace, topic, payload, status)"
                " SELECT gen_random_uuid(), 'tests', 't', '{}', 'delivered'"
                f" FROM generate_series(1, {MANY})"
            )
            await connection.execute(f"ANALYZE {TABLE}")
    await fill(postgres_backend)
    async with postgres_backend.transaction() as connection:
        if analyzed == "after":
            await connection.execute(f"ANALYZE {TABLE}")
        for statement in (
            postgres_sql.QUEUES,
            postgres_sql.QUEUE_GROUPS,
            postgres_sql.CLAIM_QUEUES,
        ):
            explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"
            cursor = await connection.execute(explain.encode(), values)
            ((plan,),) = await cursor.fetchall()
            assert most_rows(plan[0]["Plan"]) < 100, plan


def most_rows(plan: dict[str, Any]) -> int:
    """Rows that a node of the plan has looked at, at most."""
    seen = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    below = [most_rows(child) for child in plan.get("Plans", [])]
    return int(max([seen * plan["Actual Loops"], *below]))


async def test_settings_of_the_database_do_not_change_the_order(
    postgres_backend: PostgresBackend, clock: Clock
) -> None:
    """Queues are compared by their bytes, as in Python."""
    await commit(postgres_backend, *(message(queue=name) for name in ["b", "B", "a", "ä", "_"]))
    address = make_conninfo(postgres_backend.uri)
    async with await AsyncConnection.connect(address) as connection:
        rows = PostgresRows(NAMESPACE, policy=POLICY, clock=clock)
        assert await rows.queues(connection, [ALL]) == [["B", "_", "a", "b", "ä"]]
