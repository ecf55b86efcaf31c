"""The contract of the port `Store`, on every adapter."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

import lucius_outbox
from lucius_outbox import (
    Claimed,
    Delays,
    Failure,
    LeaseLost,
    ReplayForbidden,
    RetryPolicy,
    Status,
    Store,
)
from lucius_outbox.redaction import MAX_ERROR
from lucius_outbox.states import TRANSITIONS, Trigger
from tests.outbox.backends import TABLE, Backend, Clock, commit, message, numbers
from tests.runner.deadlines import seconds

LEASE = timedelta(seconds=30)
ONCE = RetryPolicy(max_attempts=1)
TWICE = RetryPolicy(max_attempts=2, backoff=Delays([timedelta(seconds=10)]), max_reclaims=2)


async def claim_one(store: Store) -> Claimed:
    (claimed,) = await store.claim_batch(1, LEASE)
    return claimed


async def statuses(backend: Backend) -> list[str]:
    return [row["status"] for row in await backend.rows()]


def test_every_adapter_is_in_this_suite() -> None:
    package = Path(lucius_outbox.__file__).parent
    adapters = {path.parent.name for path in package.glob("*/store.py")}
    assert adapters == {"sqlite", "postgres"}  # the parameters of the fixture `backend`


async def test_a_claim_leases_the_row(backend: Backend, clock: Clock) -> None:
    store = backend.store(clock)
    await commit(backend, message(1, tenant_id="acme", dedupe_key="acme/1"))
    claimed = await claim_one(store)
    (row,) = await backend.rows()
    assert row["status"] == "processing"
    assert row["locked_by"] == store.worker_id
    assert row["locked_until"] == claimed.locked_until == clock.now + LEASE
    assert row["updated_at"] == clock.now
    assert (row["attempts"], claimed.attempts, claimed.reclaimed) == (1, 1, False)
    assert (claimed.namespace, claimed.topic, claimed.tenant_id) == ("tests", "t", "acme")
    assert (claimed.dedupe_key, claimed.payload) == ("acme/1", {"n": 1})
    assert claimed.created_at == row["created_at"]


async def test_a_store_sees_its_own_namespace_only(backend: Backend) -> None:
    await commit(backend, message(1), message(2, namespace="other"))
    assert numbers(await backend.store().claim_batch(10, LEASE)) == [1]
    assert numbers(await backend.store(namespace="other").claim_batch(10, LEASE)) == [2]
    assert await backend.store(namespace="none").claim_batch(10, LEASE) == []


async def test_worker_ids_are_new_at_every_start(backend: Backend, clock: Clock) -> None:
    before = backend.store(clock)
    await commit(backend, message(1))
    claimed = await claim_one(before)
    after = backend.store(clock)
    assert after.worker_id != before.worker_id
    with pytest.raises(LeaseLost):
        await after.ack([claimed])
    assert await statuses(backend) == ["processing"]


async def test_rows_come_in_the_order_in_which_they_became_due(
    backend: Backend, clock: Clock
) -> None:
    store = backend.store(clock)
    first = clock.now
    times = [first + timedelta(seconds=second) for second in (5, 1, 3, 1)]
    await commit(backend, *(message(n, not_before=at) for n, at in enumerate(times)))
    clock.advance(minutes=1)
    assert numbers(await store.claim_batch(10, LEASE)) == [1, 3, 2, 0]


async def test_expired_leases_are_reclaimed_with_what_is_due_in_one_claim(
    backend: Backend, clock: Clock
) -> None:
    crashed, store = backend.store(clock), backend.store(clock)
    await commit(backend, message(1), message(2))
    assert numbers(await crashed.claim_batch(1, LEASE)) == [1]
    clock.advance(seconds=31)
    assert numbers(await store.claim_batch(1, LEASE)) == [1]
    assert numbers(await store.claim_batch(1, LEASE)) == [2]
    clock.advance(seconds=31)
    await commit(backend, message(3, not_before=clock.now))
    assert numbers(await store.claim_batch(10, LEASE)) == [1, 2, 3]


async def test_a_reclaim_is_not_an_attempt_and_has_a_limit_of_its_own(
    backend: Backend, clock: Clock
) -> None:
    """Else rows whose holders died would end dead without ever having been published."""
    store = backend.store(clock, policy=TWICE)
    await commit(backend, message(1))
    counted = []
    while claims := await store.claim_batch(1, LEASE):
        counted.append((claims[0].attempts, claims[0].reclaims))
        clock.advance(seconds=31)
    assert counted == [(1, 0), (1, 1), (1, 2)]
    buried = await store.sweep_dead()
    assert numbers(buried.dead) == [1]
    assert "lease expired" in (buried.dead[0].last_error or "")
    assert await statuses(backend) == ["dead"]


async def test_the_last_attempt_is_reclaimed_too(backend: Backend, clock: Clock) -> None:
    store = backend.store(clock, policy=ONCE)
    await commit(backend, message(1))
    await claim_one(store)
    clock.advance(seconds=31)
    assert (await store.sweep_dead()).dead == []
    await store.ack([await claim_one(store)])
    assert await statuses(backend) == ["delivered"]


async def test_an_ack_after_the_lease_counts_while_nobody_else_has_the_row(
    backend: Backend, clock: Clock
) -> None:
    store = backend.store(clock)
    await commit(backend, message(1))
    claimed = await claim_one(store)
    clock.advance(hours=1)
    await store.ack([claimed])
    (row,) = await backend.rows()
    assert (row["status"], row["locked_by"], row["locked_until"]) == ("delivered", None, None)
    assert row["updated_at"] == clock.now


@pytest.mark.parametrize("verb", ["ack", "nack", "release", "extend"])
async def test_only_the_holder_settles(backend: Backend, clock: Clock, verb: str) -> None:
    """Not another worker, and not an earlier claim of the same worker."""

    async def settle(store: Store, *claims: Claimed) -> None:
        match verb:
            case "nack":
                await store.nack([Failure(claimed, "no") for claimed in claims])
            case "extend":
                await store.extend(claims, LEASE)
            case _:
                await getattr(store, verb)(claims)

    store, thief = backend.store(clock), backend.store(clock)
    await commit(backend, message(1), message(2))
    (first, other) = await store.claim_batch(2, LEASE)
    with pytest.raises(LeaseLost):
        await settle(thief, first)
    clock.advance(seconds=31)
    await store.ack([other])
    mine = await claim_one(store)
    assert mine.id == first.id
    with pytest.raises(LeaseLost) as lost:
        await settle(store, first)
    assert (lost.value.verb, lost.value.ids) == (verb, (first.id,))
    assert await statuses(backend) == ["processing", "delivered"]
    await settle(store, mine)


async def test_what_is_held_is_settled_though_something_else_was_lost(
    backend: Backend, clock: Clock
) -> None:
    store, other = backend.store(clock, policy=ONCE), backend.store(clock)
    await commit(backend, *map(message, range(4)))
    claims = await store.claim_batch(4, LEASE)
    clock.advance(seconds=31)
    (taken,) = await other.claim_batch(1, LEASE)
    assert taken.id == claims[0].id

    with pytest.raises(LeaseLost) as lost:
        await store.ack(claims[:2])
    assert lost.value.ids == (claims[0].id,)
    with pytest.raises(LeaseLost) as lost:
        await store.nack([Failure(claims[0], "no"), Failure(claims[2], "no")])
    assert lost.value.ids == (claims[0].id,)
    assert lost.value.buried is not None
    assert numbers(lost.value.buried.dead) == [2]
    with pytest.raises(LeaseLost):
        await store.release([claims[0], claims[3]])
    assert await statuses(backend) == ["processing", "delivered", "dead", "pending"]
    await other.ack([taken])


async def test_settling_nothing_changes_nothing(backend: Backend) -> None:
    store = backend.store()
    await commit(backend, message(1))
    await store.ack([])
    await store.release([])
    await store.extend([], LEASE)
    assert await store.nack([]) == ([], [])
    assert await statuses(backend) == ["pending"]


async def test_extend_moves_the_end_of_the_lease(backend: Backend, clock: Clock) -> None:
    store, other = backend.store(clock), backend.store(clock)
    await commit(backend, message(1), message(2))
    first, second = await claim_one(store), await claim_one(store)
    clock.advance(seconds=29)
    await store.extend([first, second], LEASE)
    clock.advance(seconds=29)
    assert await other.claim_batch(10, LEASE) == []
    await store.ack([first, second])


async def test_a_released_row_is_due_at_once_and_has_its_attempt_back(
    backend: Backend, clock: Clock
) -> None:
    store, other = backend.store(clock, policy=ONCE), backend.store(clock, policy=ONCE)
    await commit(backend, message(1))
    await store.release([await claim_one(store)])
    assert (await claim_one(other)).attempts == 1


async def test_dead_at_max_attempts_and_at_a_permanent_failure(
    backend: Backend, clock: Clock
) -> None:
    store = backend.store(clock, policy=TWICE)
    await commit(backend, message(1), message(2))
    claims = await store.claim_batch(2, LEASE)
    failures = [Failure(claims[0], "no"), Failure(claims[1], "never", permanent=True)]
    assert numbers((await store.nack(failures)).dead) == [2]
    clock.advance(seconds=10)
    again = await claim_one(store)
    (dead,) = (await store.nack([Failure(again, "no again")])).dead
    assert (dead.id, dead.attempts, dead.last_error) == (again.id, 2, "no again")
    clock.advance(days=1)
    assert await store.claim_batch(10, LEASE) == []
    assert numbers(await store.dead()) == [1, 2]


async def test_a_lowered_limit_is_swept(backend: Backend, clock: Clock) -> None:
    generous = backend.store(clock, policy=RetryPolicy(max_attempts=5, backoff=TWICE.backoff))
    strict = backend.store(clock, policy=TWICE)
    await commit(backend, message(1))
    for _ in range(3):
        await generous.nack([Failure(await claim_one(generous), "no")])
        clock.advance(seconds=10)
    assert await strict.claim_batch(10, LEASE) == []
    (dead,) = (await strict.sweep_dead()).dead
    assert (dead.attempts, dead.last_error) == (3, "no")


async def test_on_dead_runs_in_the_transaction_that_marks_the_row(
    backend: Backend, clock: Clock
) -> None:
    async with backend.transaction() as transaction:
        await backend.execute(transaction, "CREATE TABLE graves (id text PRIMARY KEY)")
    store = backend.store(clock, policy=ONCE, on_dead_insert="graves")
    await commit(backend, message(1), message(2), message(3))
    claims = await store.claim_batch(3, LEASE)
    async with backend.transaction() as transaction:  # so that its on_dead fails
        await backend.execute(transaction, f"INSERT INTO graves VALUES ('{claims[1].id}')")

    buried = await store.nack([Failure(claimed, "no") for claimed in claims])

    assert numbers(buried.dead) == [1, 3]
    assert [failed.message_id for failed in buried.failed] == [claims[1].id]
    assert await statuses(backend) == ["dead", "processing", "dead"]
    async with backend.transaction() as transaction:
        graves = await backend.execute(transaction, "SELECT count(*) FROM graves")
        assert graves == [(3,)]
        await backend.execute(transaction, f"DELETE FROM graves WHERE id = '{claims[1].id}'")
    clock.advance(seconds=31)
    buried = await store.nack([Failure(await claim_one(store), "no")])
    assert numbers(buried.dead) == [2]


async def test_a_sweep_tells_on_dead_too(backend: Backend, clock: Clock) -> None:
    async with backend.transaction() as transaction:
        await backend.execute(transaction, "CREATE TABLE graves (id text PRIMARY KEY)")
    policy = RetryPolicy(max_reclaims=0)
    store = backend.store(clock, policy=policy, on_dead_insert="graves")
    await commit(backend, message(1), message(2))
    (first, _) = await store.claim_batch(2, LEASE)
    async with backend.transaction() as transaction:
        await backend.execute(transaction, f"INSERT INTO graves VALUES ('{first.id}')")
    clock.advance(seconds=31)
    buried = await store.sweep_dead()
    assert (numbers(buried.dead), len(buried.failed)) == ([2], 1)
    assert await statuses(backend) == ["processing", "dead"]


async def test_the_error_is_kept_short_and_without_secrets(backend: Backend, clock: Clock) -> None:
    store = backend.store(clock)
    await commit(backend, message(1))
    error = "Endpoint=sb://x;SharedAccessKey=c2VjcmV0; " + "long " * 1000 + "\0 \ud800"
    await store.nack([Failure(await claim_one(store), error)])
    (row,) = await backend.rows()
    assert len(row["last_error"]) <= MAX_ERROR
    assert "c2VjcmV0" not in row["last_error"]


async def test_replay_brings_dead_rows_back_and_says_who_and_why(
    backend: Backend, clock: Clock
) -> None:
    store = backend.store(clock, policy=ONCE)
    await commit(backend, message(1), message(2), message(3))
    claims = await store.claim_batch(2, LEASE)
    await store.nack([Failure(claimed, "bus gone") for claimed in claims])
    third = await claim_one(store)
    every = [claimed.id for claimed in (*claims, third)]
    clock.advance(seconds=1)

    assert await store.replay(every, by="ada", reason="the bus is back") == 2
    assert await store.replay(every, by="ada", reason="again") == 0

    audit = await store.replays()
    assert [line.message_id for line in audit] == [claims[1].id, claims[0].id]
    assert {(line.by, line.reason, line.attempts, line.last_error) for line in audit} == {
        ("ada", "the bus is back", 1, "bus gone")
    }
    assert audit[0].at == clock.now
    again = await store.claim_batch(10, LEASE)
    assert (numbers(again), [claimed.attempts for claimed in again]) == ([1, 2], [1, 1])


async def test_a_namespace_may_forbid_replay_for_every_process(
    backend: Backend, clock: Clock
) -> None:
    store = backend.store(clock, policy=ONCE)
    await store.forbid_replay()
    await store.forbid_replay()
    await commit(backend, message(1))
    claimed = await claim_one(store)
    await store.nack([Failure(claimed, "no")])
    elsewhere = backend.store(clock)
    with pytest.raises(ReplayForbidden):
        await elsewhere.replay([claimed.id], by="ada", reason="please")
    assert (await statuses(backend), await store.replays()) == (["dead"], [])
    await store.forbid_replay(False)
    assert await elsewhere.replay([claimed.id], by="ada", reason="allowed again") == 1


async def test_a_replay_needs_a_name_a_reason_and_real_ids(backend: Backend) -> None:
    store = backend.store()
    with pytest.raises(ValueError, match="say who"):
        await store.replay([], by=" ", reason="x")
    with pytest.raises(ValueError, match="why"):
        await store.replay([], by="ada", reason="")
    with pytest.raises(ValueError, match="badly formed"):
        await store.replay(["1 OR 1=1"], by="ada", reason="x")


async def test_stats_count_by_topic(backend: Backend, clock: Clock) -> None:
    store = backend.store(clock, policy=ONCE)
    await commit(backend, *(message(n, topic="a", ordering_key="k") for n in range(3)))
    await commit(backend, *(message(n, topic="b") for n in range(4)), message(9, namespace="x"))
    claims = await store.claim_batch(10, LEASE)
    assert sorted(claimed.topic for claimed in claims) == ["a", "b", "b", "b", "b"]
    b = [claimed for claimed in claims if claimed.topic == "b"]
    await store.ack(b[:2])
    await store.nack([Failure(b[2], "no")])
    clock.advance(minutes=1)

    on_a, on_b = await store.stats()
    assert (on_a.pending, on_a.processing, on_a.dead, on_a.delivered) == (2, 1, 0, None)
    assert (on_b.pending, on_b.processing, on_b.dead, on_b.delivered) == (0, 1, 1, None)
    rows = await backend.rows()
    assert on_a.oldest == rows[0]["created_at"]
    assert on_a.age == clock.now - rows[0]["created_at"]
    assert [row.delivered for row in await store.stats(delivered=True)] == [0, 2]


async def test_prune_deletes_what_was_delivered_long_ago_in_small_batches(
    backend: Backend, clock: Clock
) -> None:
    store = backend.store(clock, policy=ONCE)
    await commit(backend, *(message(n, dedupe_key=f"k{n}") for n in range(5)))
    claims = await store.claim_batch(5, LEASE)
    await store.ack(claims[:3])
    await store.nack([Failure(claims[3], "no")])
    clock.advance(days=1)
    await store.ack(claims[4:])

    day = timedelta(days=1)
    assert await store.prune(day) == 0
    clock.advance(microseconds=1)
    assert await store.prune(day, limit=2) == 2
    assert await store.prune(day, limit=2) == 1
    assert await store.prune(day, limit=2) == 0
    assert await statuses(backend) == ["dead", "delivered"]
    (receipt, kept) = await commit(
        backend, message(0, dedupe_key="k0"), message(4, dedupe_key="k4")
    )
    assert (receipt.id is not None, kept.id) == (True, None)


async def test_a_key_is_published_one_message_after_the_other(
    backend: Backend, clock: Clock
) -> None:
    store, other = backend.store(clock), backend.store(clock)
    for number in range(4):
        await commit(backend, message(number, ordering_key="doc"))
    await commit(backend, message(9, ordering_key="other doc"))
    for number in range(4):
        claims = await store.claim_batch(10, LEASE)
        assert numbers(claims) == ([0, 9] if number == 0 else [number])
        assert await other.claim_batch(10, LEASE) == []
        await store.ack(claims)
    assert await store.claim_batch(10, LEASE) == []


async def test_a_failing_message_holds_back_its_key_until_it_is_dead(
    backend: Backend, clock: Clock
) -> None:
    store = backend.store(clock, policy=TWICE)
    await commit(backend, *(message(n, ordering_key="doc") for n in range(3)), message(7))
    claims = await store.claim_batch(10, LEASE)
    assert numbers(claims) == [0, 7]
    await store.nack([Failure(claims[0], "no")])
    assert await store.claim_batch(10, LEASE) == []
    clock.advance(seconds=10)
    again = await claim_one(store)
    assert numbers([again]) == [0]
    await store.nack([Failure(again, "no")])
    assert await statuses(backend) == ["dead", "pending", "pending", "processing"]
    assert numbers([await claim_one(store)]) == [1]


@pytest.mark.parametrize("ending", ["ack", "nack", "sweep"])
async def test_however_a_message_ends_the_next_of_its_key_comes(
    backend: Backend, clock: Clock, ending: str
) -> None:
    store = backend.store(clock, policy=RetryPolicy(max_attempts=1, max_reclaims=0))
    await commit(backend, *(message(n, ordering_key="doc") for n in range(2)))
    first = await claim_one(store)
    assert await store.claim_batch(10, LEASE) == []
    match ending:
        case "ack":
            await store.ack([first])
        case "nack":
            await store.nack([Failure(first, "no")])
        case "sweep":
            clock.advance(seconds=31)
            assert len((await store.sweep_dead()).dead) == 1
    assert numbers(await store.claim_batch(10, LEASE)) == [1]


async def test_keys_are_apart_by_topic_and_namespace(backend: Backend) -> None:
    await commit(
        backend,
        message(1, ordering_key="k"),
        message(2, ordering_key="k", topic="other"),
        message(3, ordering_key="k", namespace="other"),
    )
    assert numbers(await backend.store().claim_batch(10, LEASE)) == [1, 2]
    assert numbers(await backend.store(namespace="other").claim_batch(10, LEASE)) == [3]


async def test_a_long_queue_behind_one_message_costs_later_claims_nothing(
    backend: Backend, clock: Clock
) -> None:
    """Each row that must wait is met once, then set aside until its turn."""
    store = backend.store(clock)
    await commit(backend, *(message(n, ordering_key="doc") for n in range(250)))
    assert numbers(await store.claim_batch(10, LEASE)) == [0]
    assert await store.claim_batch(10, LEASE) == []
    waiting = [bool(row["waiting"]) for row in await backend.rows()]
    assert waiting == [False] + [True] * 249


async def test_a_replayed_message_comes_before_what_waits_behind_it(
    backend: Backend, clock: Clock
) -> None:
    store = backend.store(clock, policy=ONCE)
    await commit(backend, *(message(n, ordering_key="doc") for n in range(3)))
    first = await claim_one(store)
    await store.nack([Failure(first, "no")])
    await store.replay([first.id], by="ada", reason="mended")
    for number in range(3):
        claims = await store.claim_batch(10, LEASE)
        assert numbers(claims) == [number]
        await store.ack(claims)


async def test_many_workers_keep_the_order_of_each_key(backend: Backend) -> None:
    keys, each = 5, 12
    for number in range(each):
        await commit(backend, *(message(number, ordering_key=f"k{key}") for key in range(keys)))
    delivered: dict[str, list[int]] = {f"k{key}": [] for key in range(keys)}

    async def work() -> None:
        store = backend.store()
        while sum(map(len, delivered.values())) < keys * each:
            claims = await store.claim_batch(3, LEASE)
            for claimed in claims:
                delivered[claimed.ordering_key or ""] += numbers([claimed])
            if claims:
                await store.ack(claims)
            else:
                await asyncio.sleep(0)

    async with asyncio.timeout(seconds(60)):
        await asyncio.gather(*(work() for _ in range(4)))
    assert set(map(tuple, delivered.values())) == {tuple(range(each))}


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("trigger", list(Trigger))
async def test_no_verb_makes_a_transition_that_the_table_does_not_have(
    backend: Backend, clock: Clock, status: Status, trigger: Trigger
) -> None:
    """Every verb on a row of every status, with the claim that a holder would have."""
    store = backend.store(clock, policy=ONCE)
    await commit(backend, message(1))
    claimed = await claim_one(store)
    lock = "NULL" if status is not Status.PROCESSING else "locked_by"
    until = "NULL" if status is not Status.PROCESSING else "locked_until"
    async with backend.transaction() as transaction:
        await backend.execute(
            transaction,
            f"UPDATE {TABLE} SET status = '{status}', locked_by = {lock}, locked_until = {until}",
        )
    clock.advance(days=1)

    try:
        match trigger:
            case Trigger.CLAIM:
                await store.claim_batch(1, LEASE)
            case Trigger.NACK:
                await store.nack([Failure(claimed, "no")])
            case Trigger.EXTEND:
                await store.extend([claimed], LEASE)
            case Trigger.SWEEP:
                await store.sweep_dead()
            case Trigger.REPLAY:
                await store.replay([claimed.id], by="ada", reason="test")
            case Trigger.ACK | Trigger.RELEASE:
                await getattr(store, trigger)([claimed])
    except LeaseLost:
        assert status is not Status.PROCESSING

    (after,) = await statuses(backend)
    allowed = {row.target for row in TRANSITIONS if (row.source, row.trigger) == (status, trigger)}
    assert after in allowed | {status}
