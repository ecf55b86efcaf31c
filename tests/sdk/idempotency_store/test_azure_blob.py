"""What is the blob store's own: its names, and its index, which never names too little."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta

import pytest

from lucius_sdk.idempotency_store import (
    RETENTION,
    ClaimState,
    Conflict,
    Record,
    StepKey,
    StoreUnavailable,
)
from lucius_sdk.idempotency_store.azure_blob import AzureBlobStore
from lucius_sdk.idempotency_store.azure_blob_names import Entry, record_blob
from lucius_sdk.idempotency_store.azure_layout import place_of
from lucius_sdk.testing.clock import FakeClock
from tests.azure_proxy import Asked, StorageProxy, proxy_to
from tests.azurite import Azurite
from tests.sdk.idempotency_store.backends import GARBAGE, AzureBlobBackend
from tests.sdk.idempotency_store.steps import KEY, LOCK, START, key, record

CLAIMED, ACKED, COMPLETED, REPORTED = ClaimState
SOON = timedelta(milliseconds=100)
LATE = START + 99 * LOCK


@pytest.fixture
async def proxy(azure_storage: Azurite) -> AsyncIterator[StorageProxy]:
    async with proxy_to(azure_storage.blob) as server:
        yield server


@pytest.fixture
async def store(azure_blob_backend: AzureBlobBackend) -> AsyncIterator[AzureBlobStore]:
    found = azure_blob_backend.open()
    await found.check()
    yield found
    await found.close()


def entries(backend: AzureBlobBackend) -> list[str]:
    return [name for name in backend.everything() if name.startswith("lapsed/")]


@pytest.mark.parametrize(
    ("old", "new", "calls"),
    [
        (None, CLAIMED, ["PUT"]),
        (CLAIMED, ACKED, ["PUT"]),
        (ACKED, COMPLETED, ["PUT", "PUT"]),
        (COMPLETED, COMPLETED, ["PUT", "PUT", "DELETE"]),
        (COMPLETED, REPORTED, ["PUT", "DELETE"]),
    ],
)
async def test_a_write_is_as_many_calls_as_this(
    store: AzureBlobStore,
    azure_blob_backend: AzureBlobBackend,
    proxy: StorageProxy,
    azure_storage: Azurite,
    old: ClaimState | None,
    new: ClaimState,
    calls: list[str],
) -> None:
    version = None if old is None else await store.write(KEY, record(old), None)
    far = azure_blob_backend.open(proxy.connection(azure_storage))
    await far.write(KEY, record(new), version)
    assert [asked.method for asked in proxy.writes] == calls
    await far.close()


VECTORS = [
    (KEY, "record/ae/job_1!step_01.jsonl"),
    (StepKey("job/1", "a b"), "record/e0/job~2F1!a~20b.jsonl"),
    (StepKey("..", "."), "record/ac/..!..jsonl"),
]


@pytest.mark.parametrize(("step", "name"), VECTORS)
async def test_records_have_these_names(
    store: AzureBlobStore, azure_blob_backend: AzureBlobBackend, step: StepKey, name: str
) -> None:
    """In all releases: another name would be another record."""
    assert record_blob(place_of(step)) == name
    await store.write(step, record(), None)
    assert name in azure_blob_backend.everything()


async def test_a_result_that_waits_has_an_entry_by_its_moment(
    store: AzureBlobStore, azure_blob_backend: AzureBlobBackend
) -> None:
    version = await store.write(KEY, record(COMPLETED), None)
    (name,) = entries(azure_blob_backend)
    assert name.startswith("lapsed/001767225660000000!job_1!step_01!")
    await store.write(KEY, record(REPORTED), version)
    assert entries(azure_blob_backend) == []


HISTORY = [
    record(CLAIMED),
    record(ACKED),
    record(COMPLETED),
    record(COMPLETED, until=START + 2 * LOCK),
    record(COMPLETED, owner=None, until=START),
    record(REPORTED),
]


@pytest.mark.parametrize("place", range(len(HISTORY)))
async def test_whoever_dies_between_two_calls_leaves_no_result_that_is_not_found(
    azure_blob_backend: AzureBlobBackend,
    store: AzureBlobStore,
    proxy: StorageProxy,
    azure_storage: Azurite,
    place: int,
) -> None:
    """And what is found too much goes away as soon as the record moves on."""
    for calls in range(4):
        step, version = key(calls), None
        for earlier in HISTORY[:place]:
            version = await store.write(step, earlier, version)
        dying = azure_blob_backend.open(proxy.connection(azure_storage), SOON)
        proxy.let_pass(calls)
        with suppress(StoreUnavailable):
            await dying.write(step, HISTORY[place], version)
        await dying.close()
        await proxy.is_through()
        found = await store.read(step)
        await _is_found_if_it_waits(store, step, found and found.record)
        version = await store.write(step, record(REPORTED), found and found.version)
        assert await store.lapsed_results(LATE, 9) == []
        assert entries(azure_blob_backend) == []


async def _is_found_if_it_waits(
    store: AzureBlobStore, step: StepKey, stored: Record | None
) -> None:
    if stored is None or stored.state is not COMPLETED:
        assert await store.lapsed_results(LATE, 9) == []
    else:
        assert await store.lapsed_results(stored.until, 9) == []
        assert await store.lapsed_results(stored.until + SOON, 9) == [step]


@pytest.mark.parametrize("before", [None, ACKED])
async def test_who_looks_between_the_two_calls_of_a_write_removes_nothing(
    azure_blob_backend: AzureBlobBackend,
    store: AzureBlobStore,
    proxy: StorageProxy,
    azure_storage: Azurite,
    before: ClaimState | None,
) -> None:
    """The entry stands there alone, but its record can still come."""
    version = None if before is None else await store.write(KEY, record(before), None)
    far = azure_blob_backend.open(proxy.connection(azure_storage))
    waits, go_on = asyncio.Event(), asyncio.Event()

    async def rule(asked: Asked) -> None:
        if asked.method == "PUT" and "/record/" in asked.path:
            waits.set()
            await go_on.wait()

    proxy.rule = rule
    writing = asyncio.create_task(far.write(KEY, record(COMPLETED), version))
    await waits.wait()
    assert await store.lapsed_results(LATE, 9) == []
    go_on.set()
    await writing
    assert await store.lapsed_results(LATE, 9) == [KEY]
    await far.close()


async def test_the_entry_of_who_conflicts_goes_when_somebody_looks(
    store: AzureBlobStore, azure_blob_backend: AzureBlobBackend
) -> None:
    stale = await store.write(KEY, record(), None)
    version = await store.write(KEY, record(ACKED), stale)
    for expected in (stale, None):
        with pytest.raises(Conflict):
            await store.write(KEY, record(COMPLETED), expected)
    assert len(entries(azure_blob_backend)) == 2
    assert await store.lapsed_results(LATE, 9) == []
    assert entries(azure_blob_backend) == []
    await store.write(KEY, record(COMPLETED), version)
    assert await store.lapsed_results(LATE, 9) == [KEY]


async def test_an_entry_whose_write_never_came_goes_when_it_is_old(
    store: AzureBlobStore, azure_blob_backend: AzureBlobBackend, clock: FakeClock
) -> None:
    with azure_blob_backend.client() as client:
        left = Entry("001767225660000000", "job_1!step_01", "token.")
        client.upload_blob(f"of/ocr/{left.blob}", b"")
    assert await store.lapsed_results(LATE, 9) == []
    assert entries(azure_blob_backend) == [left.blob]
    clock.advance((LOCK + RETENTION).total_seconds() + 1)
    assert await store.lapsed_results(LATE, 9) == []
    assert entries(azure_blob_backend) == []


async def test_neither_foreign_names_nor_what_cannot_be_read_hold_up_the_others(
    store: AzureBlobStore, azure_blob_backend: AzureBlobBackend
) -> None:
    await store.write(key(1), record(COMPLETED, until=START), None)
    spoiled = f"of/ocr/{record_blob(place_of(key(1)))}"
    with azure_blob_backend.client() as client:
        client.upload_blob(spoiled, GARBAGE.encode(), overwrite=True)
        client.upload_blob("of/ocr/lapsed/0000-notes.txt", b"")
    await store.write(key(2), record(COMPLETED), None)
    assert await store.lapsed_results(LATE, 1) == [key(2)]


async def test_void_entries_do_not_hide_results_behind_them(store: AzureBlobStore) -> None:
    for n in range(7):
        version = await store.write(key(n), record(), None)
        await store.write(key(n), record(ACKED), version)
        with pytest.raises(Conflict):
            await store.write(key(n), record(COMPLETED, until=START), version)
    await store.write(KEY._replace(step_id="late"), record(COMPLETED), None)
    assert await store.lapsed_results(LATE, 2) == [KEY._replace(step_id="late")]


async def test_folders_of_one_container_are_apart(
    store: AzureBlobStore, azure_blob_backend: AzureBlobBackend
) -> None:
    account = azure_blob_backend.account
    others = [
        AzureBlobStore(account, azure_blob_backend.container, folder)
        for folder in ("of/other", "of", "")
    ]
    await store.write(KEY, record(COMPLETED), None)
    for other in others:
        assert await other.read(KEY) is None
        assert await other.lapsed_results(LATE, 9) == []
        await other.write(KEY, record(), None)
        await other.close()
    assert await store.lapsed_results(LATE, 9) == [KEY]
