"""The contract of the outbox's port `Store`, for the webhooks of a table ledger.

The tests are the outbox's own, as far as webhooks have what they speak of: they have no ordering
keys, are enqueued by a ledger in a namespace of its own, and are not replayed. What was delivered
is deleted, and so found missing.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest

from lucius_orchestrator.adapters.ledger.tables import indexes, keys
from lucius_orchestrator.adapters.ledger.tables.ledger import TableLedger
from lucius_orchestrator.adapters.ledger.tables.partition import JOBS, Place
from lucius_orchestrator.adapters.ledger.tables.store import (
    Call,
    Hook,
    Insert,
    MemoryTables,
)
from lucius_orchestrator.adapters.ledger.tables.store import StoreUnavailable as TablesUnavailable
from lucius_orchestrator.ports.ledger import DeadLetterQuery
from lucius_orchestrator.ports.webhooks import NAMESPACE, RETRIES
from lucius_outbox import (
    Claimed,
    Failure,
    Message,
    Receipt,
    ReplayForbidden,
    RetryPolicy,
    Store,
    StoreUnavailable,
)
from lucius_outbox.message import Outcome
from tests.azurite import Azurite
from tests.ledger.azure_stage import Account
from tests.ledger.tables_stage import SharedTables
from tests.outbox import test_store as outbox
from tests.outbox.backends import Clock, commit, message, numbers
from tests.outbox.test_store import LEASE, ONCE, claim_one
from tests.runner.deadlines import DEADLINE

test_worker_ids_are_new = outbox.test_worker_ids_are_new_at_every_start
test_rows_come_in_order = outbox.test_rows_come_in_the_order_in_which_they_became_due
test_expired_leases = outbox.test_expired_leases_are_reclaimed_with_what_is_due_in_one_claim
test_a_reclaim_is_no_attempt = outbox.test_a_reclaim_is_not_an_attempt_and_has_a_limit_of_its_own
test_the_last_attempt_is_reclaimed_too = outbox.test_the_last_attempt_is_reclaimed_too
test_only_the_holder_settles = outbox.test_only_the_holder_settles
test_what_is_held = outbox.test_what_is_held_is_settled_though_something_else_was_lost
test_settling_nothing = outbox.test_settling_nothing_changes_nothing
test_extend = outbox.test_extend_moves_the_end_of_the_lease
test_release = outbox.test_a_released_row_is_due_at_once_and_has_its_attempt_back
test_dead = outbox.test_dead_at_max_attempts_and_at_a_permanent_failure
test_a_lowered_limit = outbox.test_a_lowered_limit_is_swept
test_the_error_is_kept = outbox.test_the_error_is_kept_short_and_without_secrets

STATUSES = {"DUE": "pending", "HELD": "processing", "SPENT": "processing", "DEAD": "dead"}


class TableOutbox:
    """A backend of the outbox's tests: rows as commits announce them, of jobs long gone."""

    name = "tables"

    def __init__(self, tables: SharedTables, clock: Clock) -> None:
        self.clock = clock
        self.tables = tables
        self._events: list[str] = []
        self._numbers = itertools.count(1)

    def store(
        self,
        clock: Callable[[], datetime] | None = None,
        *,
        namespace: str = NAMESPACE,
        policy: RetryPolicy | None = None,
        on_dead_insert: str | None = None,
    ) -> Store:
        assert (namespace, on_dead_insert) == (NAMESPACE, None)
        return self.ledger(clock).webhooks(policy or RETRIES)

    def ledger(
        self, clock: Callable[[], datetime] | None = None, before: Hook | None = None
    ) -> TableLedger:
        return TableLedger(self.tables.shared(before), clock=clock or self.clock)

    @asynccontextmanager
    async def transaction(self, *, commit: bool = True) -> AsyncIterator[None]:
        assert commit, "a table has no transactions of others"
        yield

    async def enqueue(self, transaction: Any, *messages: Message) -> list[Receipt]:  # noqa: ARG002
        return [await self._enqueue(one) for one in messages]

    async def execute(self, transaction: Any, statement: str) -> list[Any]:
        raise NotImplementedError("tables know no SQL")

    async def rows(self) -> list[dict[str, Any]]:
        found = {}
        for row in await self.tables.scan(indexes.WEBHOOKS, ("", ""), keys.END, 1000):
            status = STATUSES[row.key.partition("!")[0]]
            values = row.values
            found[values["event_id"]] = {"status": status, "last_error": values["error"]}
        return [found.get(event_id, {"status": "delivered"}) for event_id in self._events]

    async def close(self) -> None: ...

    async def _enqueue(self, message: Message) -> Receipt:
        assert isinstance(message.payload, dict)
        number, due_at = next(self._numbers), message.not_before or self.clock.now
        event_id = f"job_1.{number}.0"
        body = {"tenant_id": "acme", "jobId": "job_1", "type": "job.succeeded"}
        ended = Place(indexes.ENDED, "ENDED", f"{keys.moment(due_at)}!job_1!{number:06d}")
        values = {
            "job_id": "job_1",
            "base": None,
            "written_at": self.clock.now,
            "ended": ended,
            "event_id": event_id,
            "topic": message.topic,
            "payload": {**message.payload, "url": "https://a.example", "body": json.dumps(body)},
            "due_at": due_at,
            "until": None,
            "attempts": 0,
            "reclaims": 0,
            "error": None,
            "moved_by": None,
        }
        row = Insert(f"DUE!{ended.row}!00", values)
        await self.tables.batch(indexes.WEBHOOKS, indexes.WEBHOOK, [row])
        self._events.append(event_id)
        return Receipt(Outcome.ENQUEUED, event_id)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory() -> MemoryTables:
    return MemoryTables()


@pytest.fixture
async def azure(azure_storage: Azurite) -> AsyncIterator[SharedTables]:
    account = Account(azure_storage)
    yield await account.new_tables()
    await account.close()


@pytest.fixture(params=["memory", "azure"])
def backend(request: pytest.FixtureRequest, clock: Clock) -> TableOutbox:
    return TableOutbox(request.getfixturevalue(request.param), clock)


async def test_a_claim_says_what_it_holds(backend: TableOutbox, clock: Clock) -> None:
    await commit(backend, message(1))
    claimed = await claim_one(backend.store())
    assert (claimed.namespace, claimed.topic, claimed.payload["n"]) == (NAMESPACE, "t", 1)
    assert (claimed.attempts, claimed.reclaims, claimed.reclaimed) == (1, 0, False)
    assert (claimed.locked_until, claimed.created_at) == (clock.now + LEASE, clock.now)
    assert claimed.id == claimed.dedupe_key


async def test_what_is_not_due_yet_or_under_a_lease_costs_a_claim_nothing(
    backend: TableOutbox, clock: Clock
) -> None:
    """It reads what is due, in one page, however much waits behind."""
    store = backend.store()
    later = clock.now.replace(year=2100)
    await commit(backend, *(message(n, not_before=later) for n in range(50)))
    await commit(backend, *map(message, range(30)))
    await store.claim_batch(30, LEASE)
    calls: list[Call] = []

    async def count(call: Call) -> None:
        calls.append(call)

    watched = backend.ledger(before=count).webhooks()
    assert await watched.claim_batch(8, LEASE) == []
    assert [call.verb for call in calls] == ["query", "query"]
    await commit(backend, *map(message, range(8)))
    calls.clear()
    assert len(await watched.claim_batch(8, LEASE)) == 8
    assert [call.verb for call in calls] == ["query", "query", "batch"]


async def test_more_than_fit_into_one_batch_are_claimed_and_settled(
    memory: MemoryTables, clock: Clock
) -> None:
    backend = TableOutbox(memory, clock)
    store = backend.store()
    await commit(backend, *map(message, range(205)))
    claims = await store.claim_batch(1000, LEASE)
    assert numbers(claims) == list(range(205))
    await store.extend(claims, 2 * LEASE)
    await store.nack([Failure(claimed, "no") for claimed in claims[:50]])
    await store.ack(claims[50:])
    statuses = [row["status"] for row in await backend.rows()]
    assert statuses == ["pending"] * 50 + ["delivered"] * 155


async def test_an_ack_after_the_lease_counts_while_nobody_else_has_the_row(
    backend: TableOutbox, clock: Clock
) -> None:
    store = backend.store()
    await commit(backend, message(1))
    claimed = await claim_one(store)
    clock.advance(hours=1)
    await backend.store().claim_batch(0, LEASE)
    await store.ack([claimed])
    assert await backend.rows() == [{"status": "delivered"}]


async def test_an_extension_under_way_does_not_keep_a_row_that_is_acknowledged(
    backend: TableOutbox, clock: Clock
) -> None:
    """Else it would stay behind under its new lease, and be told again."""
    extending, go = asyncio.Event(), asyncio.Event()

    async def before(call: Call) -> None:
        if len(call.operations) == 2 and claims and not go.is_set():
            extending.set()
            await go.wait()

    claims: list[Claimed] = []
    store = backend.ledger(before=before).webhooks()
    await commit(backend, message(1))
    claims += await store.claim_batch(1, LEASE)
    clock.advance(seconds=10)
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(store.extend(claims, LEASE))
        await extending.wait()
        acknowledging = tasks.create_task(store.ack(claims))
        await asyncio.sleep(0)
        assert not acknowledging.done()
        go.set()
    assert await backend.rows() == [{"status": "delivered"}]


async def test_stats_count_by_topic(backend: TableOutbox, clock: Clock) -> None:
    store = backend.store(policy=ONCE)
    await commit(backend, *(message(n, topic="a") for n in range(3)))
    await commit(backend, *(message(n, topic="b") for n in range(4)))
    started = clock.now
    claims = await store.claim_batch(6, LEASE)
    b = [claimed for claimed in claims if claimed.topic == "b"]
    await store.ack(b[:2])
    await store.nack([Failure(b[2], "no")])
    clock.advance(minutes=1)
    on_a, on_b = await store.stats()
    assert (on_a.pending, on_a.processing, on_a.dead, on_a.delivered) == (0, 3, 0, None)
    assert (on_b.pending, on_b.processing, on_b.dead, on_b.delivered) == (1, 0, 1, None)
    assert (on_a.oldest, on_a.age) == (started, clock.now - started)
    assert [topic.delivered for topic in await store.stats(delivered=True)] == [0, 0]


async def test_a_letter_that_cannot_be_buried_now_is_buried_by_the_next_sweep(
    backend: TableOutbox,
) -> None:
    async def away(call: Call) -> None:
        if call.table == JOBS:
            raise TablesUnavailable("away")

    broken = backend.ledger(before=away).webhooks(ONCE)
    await commit(backend, message(1))
    claimed = await claim_one(broken)
    buried = await broken.nack([Failure(claimed, "no")])
    assert buried.dead == []
    assert [failed.message_id for failed in buried.failed] == [claimed.id]
    ledger = backend.ledger()
    assert [dead.id for dead in (await ledger.webhooks(ONCE).sweep_dead()).dead] == [claimed.id]
    (letter,) = (await ledger.dead_letters(DeadLetterQuery())).items
    assert letter.id == f"webhook.{claimed.id}"


async def test_a_store_that_is_away_is_unavailable_in_the_words_of_the_outbox(
    memory: MemoryTables, clock: Clock
) -> None:
    backend = TableOutbox(memory, clock)
    ledger = backend.ledger()
    store = ledger.webhooks()
    await commit(backend, message(1))
    claims = await store.claim_batch(1, LEASE)
    await ledger.close()
    for verb in (
        store.claim_batch(1, LEASE),
        store.ack(claims),
        store.nack([Failure(claimed, "no") for claimed in claims]),
        store.release(claims),
        store.extend(claims, LEASE),
        store.sweep_dead(),
        store.dead(),
        store.stats(),
    ):
        with pytest.raises(StoreUnavailable, match="closed"):
            await verb


async def test_webhooks_are_never_replayed(backend: TableOutbox) -> None:
    store = backend.store(policy=ONCE)
    await commit(backend, message(1))
    claimed = await claim_one(store)
    await store.nack([Failure(claimed, "no")])
    with pytest.raises(ReplayForbidden):
        await store.replay([claimed.id], by="ada", reason="please")
    with pytest.raises(ReplayForbidden):
        await store.forbid_replay(False)
    await store.forbid_replay()
    assert await store.replays() == []
    assert await store.prune(LEASE) == 0
    assert numbers(await store.dead()) == [1]
