import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lucius_bus.memory import MemoryBus
from tests.api.stage import Stage
from tests.engine.plane import Plane
from tests.ledger.backends import (
    BACKENDS,
    AzureTablesBackend,
    Backend,
    Clock,
    MemoryBackend,
    PostgresBackend,
    SqliteBackend,
)

_schemas = itertools.count(1)


def _backend(request: pytest.FixtureRequest, name: str, folder: Path) -> Backend:
    clock = Clock()
    if name == "memory":
        return MemoryBackend(clock)
    if name == "sqlite":
        return SqliteBackend(clock, folder)
    if name == "azure_tables":
        connection = request.getfixturevalue("azure_storage").connection
        return AzureTablesBackend(clock, connection, f"api{next(_schemas)}")
    return PostgresBackend(clock, request.getfixturevalue("postgres_uri"), f"api{next(_schemas)}")


async def _plane(backend: Backend) -> AsyncIterator[Plane]:
    bus = MemoryBus(backend.clock)
    await backend.start()
    yield Plane.new(backend, bus)
    await bus.close()
    await backend.stop()


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    """Ledgers pass a suite of their own; most tests of the API need but one."""
    async for plane in _plane(MemoryBackend(Clock())):
        yield plane


@pytest.fixture
def stage(plane: Plane) -> Stage:
    return Stage(plane)


@pytest.fixture(params=BACKENDS)
async def every_plane(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Plane]:
    async for plane in _plane(_backend(request, request.param, tmp_path)):
        yield plane
