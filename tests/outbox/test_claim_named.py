"""Messages that are claimed by their dedupe key, inside a caller's transaction."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from inspect import isawaitable
from typing import Any

import pytest

from lucius_outbox import Claimed, Delays, Failure, Message, RetryPolicy
from lucius_outbox.postgres.rows import PostgresRows
from lucius_outbox.sqlite.rows import SqliteRows
from tests.outbox.backends import NAMESPACE, Backend, Clock, commit, message

LEASE = timedelta(seconds=30)
TWICE = RetryPolicy(max_attempts=2, backoff=Delays([timedelta(minutes=10)]), max_reclaims=1)


class Worker:
    """The verbs of one worker, each in a transaction of its own."""

    def __init__(self, backend: Backend, clock: Clock) -> None:
        rows = SqliteRows if backend.name == "sqlite" else PostgresRows
        self._rows: Any = rows(NAMESPACE, policy=TWICE, clock=clock)
        self._backend = backend

    async def does(self, verb: str, *values: Any) -> Any:
        async with self._backend.transaction() as transaction:
            answer = getattr(self._rows, verb)(transaction, *values)
            return await answer if isawaitable(answer) else answer

    async def named(self, key: str, topic: str = "t") -> Claimed | None:
        claimed: Claimed | None = await self.does("claim_named", topic, key, LEASE)
        return claimed

    async def due(self) -> list[str | None]:
        return [claimed.dedupe_key for claimed in await self.does("claim_batch", 10, LEASE)]


NewWorker = Callable[[], Worker]


@pytest.fixture
def new_worker(backend: Backend, clock: Clock) -> NewWorker:
    return lambda: Worker(backend, clock)


@pytest.fixture
def worker(new_worker: NewWorker) -> Worker:
    return new_worker()


def a_message(key: str, **fields: Any) -> Message:
    return message(7, dedupe_key=key, **fields)


async def test_the_row_of_the_key_is_leased(backend: Backend, worker: Worker, clock: Clock) -> None:
    await commit(backend, a_message("a"), a_message("b"))
    claimed = await worker.named("b")
    assert claimed is not None
    assert (claimed.dedupe_key, claimed.payload, claimed.topic) == ("b", {"n": 7}, "t")
    assert (claimed.attempts, claimed.reclaims, claimed.reclaimed) == (1, 0, False)
    row = next(row for row in await backend.rows() if row["dedupe_key"] == "b")
    assert row["status"] == "processing"
    assert row["locked_until"] == claimed.locked_until == clock.now + LEASE
    assert row["created_at"] == claimed.created_at
    assert await worker.due() == ["a"]


async def test_a_key_belongs_to_its_topic_and_namespace(backend: Backend, worker: Worker) -> None:
    await commit(backend, a_message("a"), a_message("b", namespace="other"))
    assert await worker.named("a", "elsewhere") is None
    assert await worker.named("b") is None
    assert await worker.named("c") is None
    assert await worker.named("a") is not None


async def test_a_row_is_held_by_one_until_its_lease_is_over(
    backend: Backend, new_worker: NewWorker, clock: Clock
) -> None:
    await commit(backend, a_message("a"))
    one, other = new_worker(), new_worker()
    first = await one.named("a")
    assert await one.named("a") is await other.named("a") is None
    clock.advance(seconds=30)
    assert await other.named("a") is None
    clock.advance(seconds=1)
    again = await other.named("a")
    assert first is not None
    assert again is not None
    assert (again.id, again.attempts, again.reclaims) == (first.id, 1, 1)
    assert again.reclaimed


async def test_of_many_at_once_one_gets_the_row(backend: Backend, new_worker: NewWorker) -> None:
    await commit(backend, a_message("a"))
    claims = await asyncio.gather(*(new_worker().named("a") for _ in range(8)))
    assert sum(claimed is not None for claimed in claims) == 1


async def test_the_holder_settles_it(backend: Backend, worker: Worker, clock: Clock) -> None:
    await commit(backend, a_message("a"))
    await worker.does("ack", [await worker.named("a")])
    clock.advance(hours=1)
    assert await worker.named("a") is None
    assert await worker.due() == []


async def test_a_row_need_not_be_due(backend: Backend, worker: Worker, clock: Clock) -> None:
    await commit(backend, a_message("a", not_before=clock.now + timedelta(hours=1)))
    assert await worker.due() == []
    assert await worker.named("a") is not None


async def test_a_row_that_is_given_back_before_its_time_is_due_at_once(
    backend: Backend, worker: Worker, clock: Clock
) -> None:
    await commit(backend, a_message("a", not_before=clock.now + timedelta(hours=1)))
    claimed = await worker.named("a")
    await worker.does("release", [claimed])
    assert await worker.due() == ["a"]


async def test_a_row_that_is_given_back_keeps_its_turn(
    backend: Backend, worker: Worker, clock: Clock
) -> None:
    await commit(backend, *(a_message(key) for key in "ab"))
    clock.advance(seconds=5)
    claimed = await worker.named("a")
    await worker.does("release", [claimed])
    assert await worker.due() == ["a", "b"]


async def test_a_row_that_failed_is_taken_before_its_pause_is_over_but_not_too_often(
    backend: Backend, worker: Worker, clock: Clock
) -> None:
    await commit(backend, a_message("a"))
    claimed = await worker.named("a")
    assert claimed is not None
    await worker.does("nack", [Failure(claimed, "away")])
    again = await worker.named("a")
    assert again is not None
    assert again.attempts == TWICE.max_attempts
    clock.advance(seconds=31)
    assert await worker.named("a") is not None
    clock.advance(seconds=31)
    assert await worker.named("a") is None, "it was reclaimed as often as it may be"
    buried = await worker.does("sweep_dead", 10)
    assert [dead.dedupe_key for dead in buried.dead] == ["a"]
    assert await worker.named("a") is None


async def test_a_row_without_attempts_left_is_not_taken(backend: Backend, worker: Worker) -> None:
    await commit(backend, a_message("a"))
    async with backend.transaction() as transaction:
        await backend.execute(transaction, "UPDATE lucius_outbox_messages SET attempts = 2")
    assert await worker.named("a") is None


@pytest.mark.parametrize("is_set_aside", [True, False])
async def test_a_row_waits_for_the_earlier_ones_of_its_ordering_key(
    backend: Backend, worker: Worker, is_set_aside: bool
) -> None:
    rows = [a_message(key, ordering_key="k") for key in "ab"]
    await commit(backend, *rows, a_message("c", ordering_key="l"))
    first = await worker.named("a")
    if is_set_aside:  # a claim met it, and passes it over from now on
        assert await worker.due() == ["c"]
    assert await worker.named("b") is None
    await worker.does("ack", [first])
    second = await worker.named("b")
    assert second is not None
    assert second.ordering_key == "k"
    await worker.does("release", [second])
    assert "b" in await worker.due()
