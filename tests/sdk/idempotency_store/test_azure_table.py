"""What is the table store's own: its rows, its one call for a write, its index."""

import hashlib
from collections.abc import AsyncIterator

import pytest
from azure.data.tables import TableEntity

from lucius_sdk.idempotency_store import ClaimState, Conflict, StepKey, StoredResult
from lucius_sdk.idempotency_store.azure_layout import place_of
from lucius_sdk.idempotency_store.azure_rows import record_row
from lucius_sdk.idempotency_store.azure_table import AzureTableStore
from tests.azure_proxy import StorageProxy, proxy_to
from tests.azurite import Azurite
from tests.sdk.idempotency_store.backends import AzureTableBackend
from tests.sdk.idempotency_store.steps import ADDRESS, KEY, LOCK, START, key, record

CLAIMED, ACKED, COMPLETED, REPORTED = ClaimState
MEBIBYTE = 1024 * 1024


@pytest.fixture
async def proxy(azure_storage: Azurite) -> AsyncIterator[StorageProxy]:
    async with proxy_to(azure_storage.table) as server:
        yield server


@pytest.fixture
async def store(
    azure_table_backend: AzureTableBackend, proxy: StorageProxy, azure_storage: Azurite
) -> AsyncIterator[AzureTableStore]:
    found = azure_table_backend.open(proxy.connection(azure_storage))
    await found.check()
    yield found
    await found.close()


def rows(backend: AzureTableBackend) -> list[TableEntity]:
    with backend.client() as client:
        return list(client.query_entities("PartitionKey ne 'check'"))


async def test_every_write_is_one_call(store: AzureTableStore, proxy: StorageProxy) -> None:
    """Also the one that stores a result, and the one that is told of it."""
    version = None
    for state in (CLAIMED, CLAIMED, ACKED, COMPLETED, COMPLETED, REPORTED):
        proxy.asked.clear()
        version = await store.write(KEY, record(state), version)
        assert len(proxy.writes) == 1
    proxy.asked.clear()
    await store.read(KEY)
    await store.check()
    assert [asked.method for asked in proxy.asked] == ["GET", "GET"]


VECTORS = [
    (KEY, "a", "record!ae!job_1!step_01"),
    (StepKey("job/1", "a b"), "e", "record!e0!job~2F1!a~20b"),
    (StepKey("", "..."), "0", "record!07!!..."),
]


@pytest.mark.parametrize(("step", "partition", "row"), VECTORS)
def test_records_lie_there(step: StepKey, partition: str, row: str) -> None:
    """In all releases: another place would be another record."""
    assert record_row(place_of(step)) == {"PartitionKey": partition, "RowKey": row}


async def test_a_result_that_waits_has_a_row_beside_its_record(
    store: AzureTableStore, azure_table_backend: AzureTableBackend
) -> None:
    version = await store.write(KEY, record(COMPLETED), None)
    index, stored = rows(azure_table_backend)
    assert (index["PartitionKey"], index["RowKey"]) == (
        stored["PartitionKey"],
        "lapsed!001767225660000000!job_1!step_01",
    )
    assert stored["lapse"] == "001767225660000000"
    await store.write(KEY, record(REPORTED), version)
    (stored,) = rows(azure_table_backend)
    assert stored["RowKey"].startswith("record!")
    assert stored["lapse"] == ""


async def test_who_conflicts_leaves_the_index_as_it_is(
    store: AzureTableStore, azure_table_backend: AzureTableBackend
) -> None:
    stale = await store.write(KEY, record(), None)
    version = await store.write(KEY, record(COMPLETED), stale)
    for later in (record(COMPLETED, until=START + 9 * LOCK), record(REPORTED)):
        with pytest.raises(Conflict):
            await store.write(KEY, later, stale)
    with pytest.raises(Conflict):
        await store.write(KEY, record(COMPLETED, until=START), None)
    assert await store.lapsed_results(START + 10 * LOCK, 9) == [KEY]
    assert len(rows(azure_table_backend)) == 2
    await store.write(KEY, record(REPORTED), version)


async def test_an_index_that_somebody_has_emptied_holds_nothing_up(
    store: AzureTableStore, azure_table_backend: AzureTableBackend
) -> None:
    version = await store.write(KEY, record(COMPLETED), None)
    with azure_table_backend.client() as client:
        (index,) = client.query_entities("RowKey lt 'record'and RowKey ge 'lapsed'")
        client.delete_entity(index)
    version = await store.write(KEY, record(COMPLETED, until=START), version)
    assert await store.lapsed_results(START + LOCK, 9) == [KEY]
    await store.write(KEY, record(REPORTED), version)


async def test_results_of_all_partitions_are_found_by_their_age(store: AzureTableStore) -> None:
    steps = [key(n) for n in range(40)]
    assert len({place_of(step).bucket[0] for step in steps}) > 10
    for n, step in enumerate(steps):
        until = START + (n * 7 % 40) * LOCK
        await store.write(step, record(COMPLETED, until=until), None)
    expected = [step for _, step in sorted((n * 7 % 40, step) for n, step in enumerate(steps))]
    assert await store.lapsed_results(START + 99 * LOCK, 30) == expected[:30]
    assert await store.lapsed_results(START + 5 * LOCK, 99) == expected[:5]


@pytest.mark.parametrize("body", [b"\xff" * 65_536, b'"' * 65_536, "€".encode() * 21_845])
async def test_the_largest_result_is_within_the_limits_of_a_row(
    store: AzureTableStore, azure_table_backend: AzureTableBackend, body: bytes
) -> None:
    """Which the emulator does not check."""
    large = record(COMPLETED)._replace(result=StoredResult(body, ADDRESS))
    version = await store.write(KEY, large, None)
    found = await store.read(KEY)
    assert found is not None
    assert found.record == large
    _, stored = rows(azure_table_backend)
    pieces = [value for value in stored.values() if isinstance(value, bytes)]
    assert all(len(piece) <= 65_536 for piece in pieces)
    assert sum(map(len, pieces)) < MEBIBYTE / 2
    await store.write(KEY, record(), version)
    assert len(rows(azure_table_backend)[0]) < len(stored)


def test_buckets_are_even() -> None:
    digits = [place_of(key(n)).bucket for n in range(2560)]
    assert len(set(digits)) > 240
    assert hashlib.sha256(b"job_1!step_01").hexdigest()[:2] == place_of(KEY).bucket
