"""A storage account: busy, away, deaf, or closed to us. For tables and blobs alike."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from typing import NoReturn

import pytest
from azure.core.exceptions import ClientAuthenticationError

from lucius_azure.storage import StorageAccount
from lucius_sdk.idempotency_store import (
    RETENTION,
    ClaimState,
    Conflict,
    DedupStore,
    StepKey,
    StoreUnavailable,
    StoreUnusable,
    open_store,
)
from lucius_sdk.idempotency_store.azure_calls import PURGE_AFTER
from lucius_sdk.idempotency_store.azure_layout import place_of
from lucius_sdk.idempotency_store.port import Stored, system_now
from lucius_sdk.testing.clock import FakeClock
from tests.azure.signatures import READING, signed_connection
from tests.azure_proxy import (
    Asked,
    Fault,
    Refusal,
    StorageProxy,
    proxy_to,
)
from tests.azurite import Azurite
from tests.runner.deadlines import DEADLINE
from tests.sdk.idempotency_store.backends import LONG, AzureBlobBackend, AzureTableBackend
from tests.sdk.idempotency_store.steps import KEY, LOCK, START, key, record
from tests.sdk.idempotency_store.test_conformance import VERBS

CLAIMED, ACKED, COMPLETED, REPORTED = ClaimState
SOON = timedelta(milliseconds=150)
BUSY = Refusal(503, "ServerBusy", {"x-ms-retry-after-ms": "60"})
AzureBackend = AzureTableBackend | AzureBlobBackend


@pytest.fixture(params=["azure_table", "azure_blob"])
def backend(request: pytest.FixtureRequest) -> AzureBackend:
    found: AzureBackend = request.getfixturevalue(f"{request.param}_backend")
    return found


@pytest.fixture
async def proxy(backend: AzureBackend, azure_storage: Azurite) -> AsyncIterator[StorageProxy]:
    is_table = isinstance(backend, AzureTableBackend)
    async with proxy_to(azure_storage.table if is_table else azure_storage.blob) as server:
        yield server


@pytest.fixture
async def stack(proxy: StorageProxy) -> AsyncIterator[AsyncExitStack]:
    """What is in it ends before the proxy does."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def near(backend: AzureBackend, stack: AsyncExitStack) -> DedupStore:
    """A store that nothing befalls."""
    return opened(stack, backend)


@pytest.fixture
def far(
    backend: AzureBackend, proxy: StorageProxy, azure_storage: Azurite, stack: AsyncExitStack
) -> DedupStore:
    """A store behind the proxy."""
    return opened(stack, backend, proxy.connection(azure_storage))


def opened(
    stack: AsyncExitStack,
    backend: AzureBackend,
    connection: str | None = None,
    patience: timedelta = LONG,
) -> DedupStore:
    store = backend.open(connection, patience)
    stack.push_async_callback(store.close)
    return store


LOST = (Fault.LOST, Fault.DROPPED, Fault.CUT, BUSY)


MOVES = [(CLAIMED, ACKED), (ACKED, COMPLETED), (COMPLETED, COMPLETED), (COMPLETED, REPORTED)]


@pytest.mark.parametrize(("old", "new"), MOVES)
@pytest.mark.parametrize("fault", LOST)
async def test_a_write_whose_answer_was_lost_is_no_conflict_with_itself(
    near: DedupStore,
    far: DedupStore,
    proxy: StorageProxy,
    fault: Fault,
    old: ClaimState,
    new: ClaimState,
) -> None:
    """Whichever of its calls it was, and whether it was done or not."""
    for number in itertools.count():
        step = key(number)
        before = await near.write(step, record(old), None)
        proxy.asked.clear()
        proxy.writes_meet(*[None] * number, fault)
        later = record(new, owner="far", until=START + 2 * LOCK)
        version = await far.write(step, later, before)
        assert await near.read(step) == Stored(later, version)
        is_waiting = await near.lapsed_results(START + 3 * LOCK, 1) == [step]
        assert is_waiting == (new is COMPLETED)
        await near.write(step, record(REPORTED), version)
        if len(proxy.writes) <= number:
            break
    assert number in (1, 2, 3)


@pytest.mark.parametrize("fault", LOST)
async def test_a_first_write_whose_answer_was_lost_is_no_conflict_with_itself(
    near: DedupStore, far: DedupStore, proxy: StorageProxy, fault: Fault
) -> None:
    await near.check()
    proxy.writes_meet(fault, fault)
    version = await far.write(KEY, record(), None)
    assert await near.read(KEY) == Stored(record(), version)


@pytest.mark.parametrize("expects", ["nothing", "something"])
async def test_what_another_wrote_between_two_tries_is_a_conflict(
    near: DedupStore, far: DedupStore, proxy: StorageProxy, expects: str
) -> None:
    await near.check()
    before = await near.write(KEY, record(), None) if expects == "something" else None
    proxy.writes_meet(BUSY)
    writing = asyncio.create_task(far.write(KEY, record(owner="far"), before))
    await eventually(lambda: bool(proxy.writes))
    await near.write(KEY, record(owner="near"), before)
    with pytest.raises(Conflict):
        await writing
    found = await near.read(KEY)
    assert found is not None
    assert found.record.owner == "near"


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_who_is_asked_to_wait_waits_and_tries_again(
    near: DedupStore, far: DedupStore, proxy: StorageProxy, status: int
) -> None:
    await near.check()
    proxy.writes_meet(Refusal(status, "Later", {"x-ms-retry-after-ms": "80"}))
    await far.write(KEY, record(), None)
    first, second = proxy.writes
    assert second.at - first.at >= 0.08


async def test_patience_has_an_end_and_says_why(
    backend: AzureBackend, proxy: StorageProxy, azure_storage: Azurite, stack: AsyncExitStack
) -> None:
    """Which is far sooner than the service asks it to come again."""
    connection = proxy.connection(azure_storage)
    proxy.all_meet(Refusal(503, "ServerBusy", {"Retry-After": str(int(10 * DEADLINE))}))
    for verb in VERBS.values():
        async with asyncio.timeout(DEADLINE):
            await is_told(stack, backend, connection, verb, "503 ServerBusy")
    far = opened(stack, backend, connection, timedelta(seconds=1))
    with pytest.raises(StoreUnavailable):
        await far.check()
    proxy.all_meet(None)
    await eventually_passes(far.check)


async def is_told(
    stack: AsyncExitStack,
    backend: AzureBackend,
    connection: str,
    verb: Callable[[DedupStore], Awaitable[object]],
    why: str,
) -> None:
    """The verb is unavailable when its patience ends, and says why: on a busy machine it must have
    more patience to hear of that."""
    patience = SOON
    while True:
        with pytest.raises(StoreUnavailable) as caught:
            await verb(opened(stack, backend, connection, patience))
        if why in str(caught.value):
            return
        patience *= 2


async def test_a_service_that_hangs_is_unavailable_in_time(
    backend: AzureBackend, proxy: StorageProxy, azure_storage: Azurite, stack: AsyncExitStack
) -> None:
    far = opened(stack, backend, proxy.connection(azure_storage), SOON)
    proxy.all_meet(Fault.HANGING)
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(StoreUnavailable, match=r"no answer within 0\.15 s"):
            await far.write(KEY, record(), None)


async def test_a_service_that_is_away_is_unavailable(
    backend: AzureBackend, azure_storage: Azurite, stack: AsyncExitStack
) -> None:
    nowhere = "http://127.0.0.1:1/devstoreaccount1"
    connection = azure_storage._replace(table=nowhere, blob=nowhere).connection
    for verb in VERBS.values():
        async with asyncio.timeout(DEADLINE):
            await is_told(stack, backend, connection, verb, "ServiceRequestError")


async def test_a_write_that_was_cancelled_may_have_happened_and_disturbs_nothing(
    near: DedupStore, far: DedupStore, proxy: StorageProxy
) -> None:
    await near.check()
    proxy.all_meet(Fault.HANGING, lambda asked: asked.is_write)
    writing = asyncio.create_task(far.write(KEY, record(), None))
    await eventually(lambda: bool(proxy.writes))
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    proxy.all_meet(None)
    await far.write(key(2), record(), None)
    async with asyncio.timeout(DEADLINE):
        await far.close()


async def test_closing_waits_for_a_write_between_two_of_its_calls(
    near: DedupStore, far: DedupStore, proxy: StorageProxy
) -> None:
    await near.check()
    proxy.writes_meet(BUSY)
    writing = asyncio.create_task(far.write(KEY, record(COMPLETED), None))
    await eventually(lambda: bool(proxy.writes))
    await asyncio.gather(far.close(), writing)
    assert await near.read(KEY) is not None
    assert await near.lapsed_results(START + 2 * LOCK, 1) == [KEY]


WORD = "aHVudGVyMmh1bnRlcjI="


async def test_a_wrong_key_is_told_without_it(
    backend: AzureBackend, azure_storage: Azurite, stack: AsyncExitStack
) -> None:
    parts = [p for p in azure_storage.connection.split(";") if not p.startswith("AccountKey")]
    store = opened(stack, backend, ";".join([f"AccountKey={WORD}", *parts]))
    for verb in VERBS.values():
        with pytest.raises(StoreUnusable, match=r"403.*Data Contributor") as caught:
            await verb(store)
        assert WORD not in f"{caught.value!r} {caught.value.__cause__!r}"
        assert "Signature" not in str(caught.value)


class Nobody:
    """A machine without an identity."""

    async def get_token(self, *_: str, **__: object) -> NoReturn:
        raise ClientAuthenticationError("there is none")

    async def close(self) -> None: ...


async def test_an_identity_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lucius_azure.storage.default_credential", Nobody)
    account = StorageAccount(endpoint="https://127.0.0.1:1")
    for url in ("aztable:dedup", "azblob:dedup"):
        store = open_store(url, tables=account, blobs=account)
        with pytest.raises(StoreUnusable, match=r"ClientAuthenticationError.*the identity"):
            await store.check()
        await store.close()


async def test_who_may_only_read_is_told_at_the_first_check(
    backend: AzureBackend, near: DedupStore, azure_storage: Azurite, stack: AsyncExitStack
) -> None:
    await near.check()
    await near.write(KEY, record(), None)
    store = opened(stack, backend, signed_connection(azure_storage, READING))
    assert await store.read(KEY) is not None
    with pytest.raises(StoreUnusable, match="403"):
        await store.check()
    with pytest.raises(StoreUnusable, match="403"):
        await store.write(key(2), record(), None)


async def test_who_may_not_make_what_is_missing_is_told_its_name(
    far: DedupStore, backend: AzureBackend, proxy: StorageProxy
) -> None:
    is_table = isinstance(backend, AzureTableBackend)
    making = "/Tables" if is_table else "restype=container"
    proxy.all_meet(Refusal(403, "NotYou"), lambda asked: making in asked.path and asked.is_write)
    name = backend.table if isinstance(backend, AzureTableBackend) else backend.container
    for verb in (VERBS["check"], VERBS["write"]):
        with pytest.raises(StoreUnusable, match=f"{name} is missing and cannot be made.*NotYou"):
            await verb(far)


async def test_what_is_missing_is_made_once_by_whoever_comes(
    backend: AzureBackend, stack: AsyncExitStack
) -> None:
    stores = [opened(stack, backend) for _ in range(5)]
    assert await stores[0].read(KEY) is None
    assert await stores[0].lapsed_results(START + LOCK, 5) == []
    versions = await asyncio.gather(
        *(store.write(key(n), record(), None) for n, store in enumerate(stores))
    )
    assert len(set(versions)) == 5


async def test_an_account_with_a_signature_is_enough(
    backend: AzureBackend, azure_storage: Azurite, stack: AsyncExitStack
) -> None:
    store = opened(stack, backend, signed_connection(azure_storage))
    await store.check()
    version = await store.write(KEY, record(COMPLETED), None)
    assert await store.lapsed_results(START + 2 * LOCK, 5) == [KEY]
    await store.write(KEY, record(REPORTED), version)
    assert await store.lapsed_results(START + 2 * LOCK, 5) == []


async def test_a_check_notices_that_everything_is_gone_and_makes_it_anew(
    backend: AzureBackend, near: DedupStore
) -> None:
    await near.check()
    await near.check()
    backend.remove()
    await near.check()
    assert backend.everything() == ["check"]


@pytest.fixture
def lasting(backend: AzureBackend) -> tuple[AzureBackend, FakeClock]:
    """The service has a clock of its own, by which it says how old something is."""
    clock = FakeClock(system_now())
    return type(backend)(clock, backend.connection), clock


def neighbours(count: int) -> list[StepKey]:
    """Steps of one bucket."""
    bucket = place_of(KEY).bucket
    steps = (StepKey(f"job_{n}", "step_01") for n in itertools.count())
    return list(itertools.islice((s for s in steps if place_of(s).bucket == bucket), count))


async def test_old_records_are_purged_as_new_ones_come(
    lasting: tuple[AzureBackend, FakeClock],
) -> None:
    """With what is beside them: those of the bucket that the first write is in, and later of the
    one that every so manieth write is in. Here the new ones are old as well."""
    backend, clock = lasting
    old, elsewhere = neighbours(12), StepKey("job", "elsewhere")
    first = backend.open()
    for n, step in enumerate(old[:10]):
        await first.write(step, record(COMPLETED if n % 2 else REPORTED), None)
    await first.close()
    clock.advance(RETENTION.total_seconds() + 60)
    second = backend.open()
    version = await second.write(elsewhere, record(), None)
    await eventually(lambda: elsewhere not in backend.stored_steps())
    version = await second.write(elsewhere, record(), None)
    for _ in range(PURGE_AFTER - 2):
        version = await second.write(elsewhere, record(), version)
    assert backend.stored_steps() == {elsewhere, *old[:10]}
    await second.write(old[10], record(), None)
    await eventually(lambda: backend.stored_steps() == {elsewhere})
    assert await second.lapsed_results(START + 2 * LOCK, 99) == []
    assert len(backend.everything()) == 1
    await second.close()


async def test_nothing_is_purged_before_its_time(
    lasting: tuple[AzureBackend, FakeClock],
) -> None:
    backend, clock = lasting
    one, other = neighbours(2)
    first = backend.open()
    await first.write(one, record(REPORTED), None)
    await first.close()
    clock.advance(RETENTION.total_seconds() - 600)
    second = backend.open()
    await second.write(other, record(), None)
    await eventually(lambda: not second._calls.is_purging)
    await second.close()
    assert backend.stored_steps() == {one, other}


async def test_a_record_that_is_written_while_it_is_purged_stays(
    lasting: tuple[AzureBackend, FakeClock], proxy: StorageProxy, azure_storage: Azurite
) -> None:
    """The purge is held up between looking and deleting."""
    backend, clock = lasting
    first, steps = backend.open(), neighbours(4)
    versions = [await first.write(step, record(COMPLETED), None) for step in steps[:3]]
    clock.advance(RETENTION.total_seconds() + 60)
    purging = backend.open(proxy.connection(azure_storage))
    looked, go_on = asyncio.Event(), asyncio.Event()

    async def rule(asked: Asked) -> None:
        if asked.method == "DELETE" or asked.path.endswith("$batch"):
            looked.set()
            await go_on.wait()

    proxy.rule = rule
    await purging.write(steps[3], record(), None)
    await looked.wait()
    version = await first.write(steps[1], record(COMPLETED, owner="b"), versions[1])
    go_on.set()
    await eventually(lambda: backend.stored_steps().isdisjoint({steps[0], steps[2]}))
    await eventually(lambda: not purging._calls.is_purging)
    await purging.close()
    assert await first.read(steps[1]) == Stored(record(COMPLETED, owner="b"), version)
    assert await first.lapsed_results(START + 2 * LOCK, 9) == [steps[1]]
    await first.close()


async def test_a_record_that_was_purged_and_came_again_has_another_version(
    backend: AzureBackend, near: DedupStore
) -> None:
    """So whoever held the old one writes nothing."""
    old = await near.write(KEY, record(), None)
    backend.empty()
    assert await near.read(KEY) is None
    new = await near.write(KEY, record(), None)
    assert new != old
    with pytest.raises(Conflict):
        await near.write(KEY, record(epoch=2), old)


async def eventually_passes(verb: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            with suppress(StoreUnavailable):
                await verb()
                return


async def eventually(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not is_so():
            await asyncio.sleep(0.01)
