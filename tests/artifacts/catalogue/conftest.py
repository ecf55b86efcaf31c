from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lucius_artifacts.ports.catalogue import Catalogue
from tests.artifacts.catalogue.backends import (
    BACKENDS,
    Backend,
    MemoryBackend,
    PostgresBackend,
    SqliteBackend,
)
from tests.names import unique


@pytest.fixture
async def memory_backend() -> AsyncIterator[MemoryBackend]:
    backend = MemoryBackend()
    await backend.start()
    yield backend
    await backend.stop()


@pytest.fixture
async def sqlite_backend(tmp_path: Path) -> AsyncIterator[SqliteBackend]:
    backend = SqliteBackend(tmp_path)
    await backend.start()
    yield backend
    await backend.stop()


@pytest.fixture
async def postgres_backend(postgres_uri: str) -> AsyncIterator[PostgresBackend]:
    backend = PostgresBackend(postgres_uri, unique("catalogue"))
    await backend.start()
    yield backend
    await backend.stop()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    backend: Backend = request.getfixturevalue(f"{request.param}_backend")
    return backend


@pytest.fixture(params=[name for name in BACKENDS if name != "memory"])
def database(request: pytest.FixtureRequest) -> Backend:
    """One that outlives the process."""
    backend: Backend = request.getfixturevalue(f"{request.param}_backend")
    return backend


@pytest.fixture
def catalogue(backend: Backend) -> Catalogue:
    return backend.catalogue


@pytest.fixture
async def impatient(backend: Backend) -> AsyncIterator[Catalogue]:
    """Tries once, and waits for nobody."""
    catalogue = await backend.impatient()
    yield catalogue
    await catalogue.close()
