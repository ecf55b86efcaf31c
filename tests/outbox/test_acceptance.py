"""The acceptance criteria of the specification (section 6), in its order, on both databases."""

import asyncio
from datetime import timedelta

import pytest

from lucius_outbox import EqualJitter, Failure, LeaseLost, Message, Outcome, RetryPolicy, one_by_one
from lucius_outbox.message import Claimed
from lucius_outbox.publishing import failures_of
from tests.outbox.backends import TABLE, Backend, Clock, commit, message, numbers

LEASE = timedelta(seconds=30)


async def test_at_most_one_row_per_dedupe_key_committed_with_the_side_effects(
    backend: Backend,
) -> None:
    async with backend.transaction() as transaction:
        await backend.execute(transaction, "CREATE TABLE effects (n integer)")
    for _ in range(3):
        async with backend.transaction() as transaction:
            await backend.execute(transaction, "INSERT INTO effects VALUES (1)")
            await backend.enqueue(transaction, message(1, dedupe_key="event-1"))
    async with backend.transaction(commit=False) as transaction:
        await backend.execute(transaction, "INSERT INTO effects VALUES (2)")
        await backend.enqueue(transaction, message(2, dedupe_key="event-2"))

    rows = await backend.rows()
    assert [(row["dedupe_key"], row["status"], row["attempts"]) for row in rows] == [
        ("event-1", "pending", 0)
    ]
    async with backend.transaction() as transaction:
        assert await backend.execute(transaction, "SELECT DISTINCT n FROM effects") == [(1,)]


async def test_the_partial_unique_index_enforces_it_whatever_code_inserts(backend: Backend) -> None:
    await commit(backend, message(1, dedupe_key="event-1"), message(2), message(3))
    copy = f"""
        INSERT INTO {TABLE} (id, namespace, topic, dedupe_key, payload, next_attempt_at,
                             created_at, updated_at)
        SELECT '00000000-0000-7000-8000-000000000000', namespace, topic, dedupe_key, payload,
               next_attempt_at, created_at, updated_at
        FROM {TABLE} WHERE dedupe_key = 'event-1'
    """
    with pytest.raises(Exception, match=r"(?i)unique"):
        async with backend.transaction() as transaction:
            await backend.execute(transaction, copy)
    assert len(await backend.rows()) == 3


async def test_the_loser_of_an_idempotency_race_sees_already_enqueued(backend: Backend) -> None:
    async def produce(number: int) -> Outcome:
        (receipt,) = await commit(backend, message(number, dedupe_key="the-event"))
        assert (receipt.id is None) == (receipt.outcome is Outcome.ALREADY_ENQUEUED)
        return receipt.outcome

    outcomes = await asyncio.gather(*map(produce, range(8)))
    assert sorted(outcomes) == [Outcome.ALREADY_ENQUEUED] * 7 + [Outcome.ENQUEUED]
    assert len(await backend.rows()) == 1


async def test_concurrent_dispatchers_do_not_process_a_row_twice(backend: Backend) -> None:
    await commit(backend, *map(message, range(300)))

    async def work() -> list[Claimed]:
        store, mine = backend.store(), []
        while claims := await store.claim_batch(7, LEASE):
            mine += claims
            await store.ack(claims)
        return mine

    taken = [
        claimed for mine in await asyncio.gather(*(work() for _ in range(6))) for claimed in mine
    ]
    assert sorted(numbers(taken)) == list(range(300))
    assert {row["status"] for row in await backend.rows()} == {"delivered"}


async def test_rows_of_a_crashed_dispatcher_are_reclaimed_after_their_lease(
    backend: Backend, clock: Clock
) -> None:
    await commit(backend, message(1), message(2))
    crashed, other = backend.store(clock), backend.store(clock)
    (first, _) = await crashed.claim_batch(10, LEASE)

    clock.advance(seconds=30)
    assert await other.claim_batch(10, LEASE) == []
    clock.advance(microseconds=1)
    taken = await other.claim_batch(10, LEASE)

    assert numbers(taken) == [1, 2]
    assert all(claimed.reclaimed and claimed.attempts == 1 for claimed in taken)
    with pytest.raises(LeaseLost) as lost:
        await crashed.ack([first])
    assert lost.value.ids == (first.id,)
    await other.ack(taken)


async def test_failures_are_rescheduled_later_and_later_with_their_error(
    backend: Backend, clock: Clock
) -> None:
    policy = RetryPolicy(max_attempts=6, backoff=EqualJitter(timedelta(seconds=4)))
    store = backend.store(clock, policy=policy)
    await commit(backend, message(1))
    waits = []
    for attempt in range(1, 6):
        (claimed,) = await store.claim_batch(10, LEASE)
        assert claimed.attempts == attempt
        await store.nack([Failure(claimed, f"the bus said no, {attempt}")])
        (row,) = await backend.rows()
        assert (row["status"], row["attempts"]) == ("pending", attempt)
        assert row["last_error"] == f"the bus said no, {attempt}"
        assert row["locked_by"] is row["locked_until"] is None
        assert row["updated_at"] == clock.now
        waits.append(row["next_attempt_at"] - clock.now)
        assert await store.claim_batch(10, LEASE) == []
        clock.now = row["next_attempt_at"]
    for attempt, wait in enumerate(waits, start=1):
        delay = timedelta(seconds=4) * 2 ** (attempt - 1)
        assert delay / 2 <= wait <= delay


async def test_publishing_is_safe_under_retries_by_the_dedupe_key(
    backend: Backend, clock: Clock
) -> None:
    """A consumer that is idempotent on the key applies each event once, whatever happens to us:
    an ambiguous failure, a crash before the ack, a second enqueue of the same event."""
    store = backend.store(clock)
    applied: dict[str, object] = {}
    deliveries = 0

    async def publish(claimed: Claimed) -> None:
        nonlocal deliveries
        deliveries += 1
        assert claimed.dedupe_key is not None
        applied.setdefault(claimed.dedupe_key, claimed.payload)
        if deliveries == 1:
            raise ConnectionError("the answer was lost")

    event = Message("tests", "usage", {"n": 1}, tenant_id="acme", dedupe_key="acme/turn-1")
    for _ in range(2):
        await commit(backend, event)
    for _ in range(3):
        claims = await store.claim_batch(10, LEASE)
        failures = await failures_of(one_by_one(publish), claims, LEASE)
        if failures:
            await store.nack(failures)
        clock.advance(minutes=10)  # the second delivery is never acked: its lease runs out
    assert deliveries == 3
    assert applied == {"acme/turn-1": {"n": 1}}
