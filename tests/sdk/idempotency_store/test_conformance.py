"""What every store must do."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from lucius_sdk.idempotency_store import (
    ClaimState,
    Conflict,
    DedupStore,
    RecordUnreadable,
    StepKey,
    StoredResult,
    StoreUnavailable,
)
from lucius_sdk.idempotency_store.port import Stored
from tests.runner.deadlines import DEADLINE
from tests.sdk.idempotency_store.backends import (
    BACKENDS,
    SpoilableBackend,
    stores_in_the_suite,
    stores_in_the_tree,
)
from tests.sdk.idempotency_store.steps import ADDRESS, KEY, LOCK, START, key, record

CLAIMED, ACKED, COMPLETED, REPORTED = ClaimState
TICK = timedelta(microseconds=1)
Pair = tuple[DedupStore, DedupStore]


def test_every_store_is_in_this_suite() -> None:
    assert stores_in_the_tree() == stores_in_the_suite()


async def test_what_was_never_written_is_not_there(store: DedupStore) -> None:
    assert await store.read(KEY) is None


@pytest.mark.parametrize("state", ClaimState)
async def test_what_was_written_is_read_by_all(stores: Pair, state: ClaimState) -> None:
    first, second = stores
    version = await first.write(KEY, record(state), None)
    assert await first.read(KEY) == Stored(record(state), version)
    assert await second.read(KEY) == Stored(record(state), version)


@pytest.mark.parametrize("body", [b"", b"\x00\xff\xfe", b"x" * 64 * 1024, "ä€😀".encode()])
async def test_a_result_comes_back_with_the_very_bytes(store: DedupStore, body: bytes) -> None:
    stored = record(COMPLETED)._replace(result=StoredResult(body, ADDRESS))
    await store.write(KEY, stored, None)
    found = await store.read(KEY)
    assert found is not None
    assert found.record == stored


async def test_a_record_that_exists_is_not_created(stores: Pair) -> None:
    first, second = stores
    await first.write(KEY, record(), None)
    with pytest.raises(Conflict):
        await second.write(KEY, record(owner="b"), None)
    found = await second.read(KEY)
    assert found is not None
    assert found.record == record()


async def test_only_the_version_that_was_read_can_be_replaced(stores: Pair) -> None:
    first, second = stores
    old = await first.write(KEY, record(), None)
    new = await second.write(KEY, record(ACKED), old)
    assert new != old
    with pytest.raises(Conflict):
        await first.write(KEY, record(epoch=2), old)
    assert await first.read(KEY) == Stored(record(ACKED), new)


async def test_a_record_that_does_not_exist_is_not_replaced(store: DedupStore) -> None:
    version = await store.write(KEY, record(), None)
    with pytest.raises(Conflict):
        await store.write(key(2), record(), version)
    assert await store.read(key(2)) is None


async def test_no_version_comes_twice(store: DedupStore) -> None:
    """Not even for a record that does not change, at a time that stands still."""
    versions = [await store.write(KEY, record(), None)]
    for _ in range(12):
        versions.append(await store.write(KEY, record(), versions[-1]))
    assert len(set(versions)) == 13


async def test_steps_are_apart(store: DedupStore) -> None:
    keys = [
        StepKey("a", "b:c"),
        StepKey("a:b", "c"),
        StepKey("A", "b:c"),
        StepKey('a","b', "c"),
        StepKey("", "a"),
        StepKey("ä", "%"),
    ]
    for number, one in enumerate(keys, 1):
        await store.write(one, record(attempt_no=number), None)
    found = [await store.read(one) for one in keys]
    assert [one and one.record.attempt_no for one in found] == [1, 2, 3, 4, 5, 6]


async def test_of_many_who_write_at_once_one_wins(stores: Pair) -> None:
    version: str | None = None
    for _ in range(5):
        writes = [
            store.write(KEY, record(owner=str(n)), version) for n in range(10) for store in stores
        ]
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        (version,) = [outcome for outcome in outcomes if isinstance(outcome, str)]
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 19
    found = await stores[0].read(KEY)
    assert found is not None
    assert found.version == version


async def test_the_conflict_of_one_is_nothing_to_the_others(stores: Pair) -> None:
    """More at once than any store writes together."""
    first, second = stores
    await second.write(key(7), record(owner="b"), None)
    writes = [first.write(key(n), record(), None) for n in range(300)]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [n for n, outcome in enumerate(outcomes) if not isinstance(outcome, str)] == [7]
    found = await asyncio.gather(*(second.read(key(n)) for n in range(300)))
    assert [one and one.record.owner for one in found] == ["a"] * 7 + ["b"] + ["a"] * 292


async def test_a_write_that_was_cancelled_disturbs_no_other(store: DedupStore) -> None:
    writes = [asyncio.create_task(store.write(key(n), record(), None)) for n in range(10)]
    await asyncio.sleep(0)
    writes[3].cancel()
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [isinstance(outcome, str) for outcome in outcomes].count(True) >= 9
    await store.check()


async def test_results_that_nobody_reported_are_found_when_their_claims_lapse(
    stores: Pair,
) -> None:
    first, second = stores
    for number, state in enumerate(ClaimState):
        await first.write(key(number), record(state), None)
    assert await second.lapsed_results(START + LOCK, 10) == []
    assert await second.lapsed_results(START + LOCK + TICK, 10) == [key(2)]


async def test_results_are_found_by_their_age_and_as_many_as_wanted(store: DedupStore) -> None:
    for number in (3, 1, 4, 2, 5):
        until = START + number * TICK
        await store.write(key(number), record(COMPLETED, until=until), None)
    assert await store.lapsed_results(START + LOCK, 3) == [key(1), key(2), key(3)]
    assert await store.lapsed_results(START + 3 * TICK, 3) == [key(1), key(2)]


async def test_a_result_is_found_where_its_claim_now_ends(store: DedupStore) -> None:
    version = await store.write(KEY, record(COMPLETED), None)
    version = await store.write(KEY, record(COMPLETED, until=START + 2 * LOCK), version)
    assert await store.lapsed_results(START + LOCK + TICK, 10) == []
    version = await store.write(KEY, record(COMPLETED, owner=None, until=START), version)
    assert await store.lapsed_results(START + TICK, 10) == [KEY]
    await store.write(KEY, record(REPORTED), version)
    assert await store.lapsed_results(START + 9 * LOCK, 10) == []


@pytest.mark.parametrize("name", [name for name in BACKENDS if name != "memory"])
async def test_what_is_no_record_is_neither_read_nor_overwritten(
    request: pytest.FixtureRequest, name: str
) -> None:
    """Memory keeps records, and no documents that could be spoiled."""
    backend: SpoilableBackend = request.getfixturevalue(f"{name}_backend")
    store = backend.open()
    await store.write(KEY, record(), None)
    backend.spoil()
    with pytest.raises(RecordUnreadable):
        await store.read(KEY)
    with pytest.raises(Conflict):
        await store.write(KEY, record(), None)
    with pytest.raises(RecordUnreadable):
        await store.read(KEY)
    await store.close()


async def test_a_store_that_can_be_used_passes_its_check(store: DedupStore) -> None:
    await store.check()
    await store.write(KEY, record(), None)
    await store.check()


VERBS: dict[str, Callable[[DedupStore], Awaitable[object]]] = {
    "read": lambda store: store.read(KEY),
    "write": lambda store: store.write(KEY, record(), None),
    "lapsed_results": lambda store: store.lapsed_results(START, 1),
    "check": lambda store: store.check(),
}


@pytest.mark.parametrize("is_used", [True, False])
@pytest.mark.parametrize("verb", VERBS)
async def test_a_closed_store_is_unavailable(store: DedupStore, verb: str, is_used: bool) -> None:
    if is_used:
        await store.check()
    await store.close()
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(StoreUnavailable):
            await VERBS[verb](store)


async def test_closing_finishes_what_was_asked_for(stores: Pair) -> None:
    first, second = stores
    writes = [asyncio.create_task(first.write(key(n), record(), None)) for n in range(20)]
    await asyncio.wait(writes, timeout=0)
    await asyncio.gather(*writes[:1])
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(first.close(), first.close())
        await first.close()
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, str):
            assert await second.read(key(number)) is not None
        else:
            assert isinstance(outcome, StoreUnavailable)


async def test_closing_one_store_leaves_the_others_open(stores: Pair) -> None:
    first, second = stores
    await first.write(KEY, record(), None)
    await first.close()
    assert await second.read(KEY) is not None
