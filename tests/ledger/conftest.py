from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lucius_orchestrator.ports.ledger import Ledger
from tests.azurite import Azurite
from tests.ledger.backends import (
    BACKENDS,
    AzureTablesBackend,
    Backend,
    Clock,
    MemoryBackend,
    PostgresBackend,
    SqliteBackend,
)
from tests.ledger.jobs import Pair, World
from tests.names import unique


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def memory_backend(clock: Clock) -> AsyncIterator[Backend]:
    backend = MemoryBackend(clock)
    await backend.start()
    yield backend
    await backend.stop()


@pytest.fixture
async def sqlite_backend(clock: Clock, tmp_path: Path) -> AsyncIterator[Backend]:
    backend = SqliteBackend(clock, tmp_path)
    await backend.start()
    yield backend
    await backend.stop()


@pytest.fixture
async def postgres_backend(clock: Clock, postgres_uri: str) -> AsyncIterator[Backend]:
    backend = PostgresBackend(clock, postgres_uri, unique("ledger"))
    await backend.start()
    yield backend
    await backend.stop()


@pytest.fixture
async def azure_tables_backend(clock: Clock, azure_storage: Azurite) -> AsyncIterator[Backend]:
    backend = AzureTablesBackend(clock, azure_storage.connection, unique("ledger"))
    await backend.start()
    yield backend
    await backend.stop()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    backend: Backend = request.getfixturevalue(f"{request.param}_backend")
    return backend


@pytest.fixture
def ledger(backend: Backend) -> Ledger:
    return backend.ledger


@pytest.fixture
async def ledgers(backend: Backend) -> Pair:
    """On one store, as in two processes."""
    return backend.ledger, await backend.reopen()


@pytest.fixture
def world(backend: Backend) -> World:
    return World(backend.ledger, backend.clock)
