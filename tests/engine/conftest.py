import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lucius_bus.memory import MemoryBus
from tests.engine.plane import Plane
from tests.ledger.backends import AzureTablesBackend, Backend, Clock, MemoryBackend, SqliteBackend

_numbers = itertools.count(1)


def _backend(request: pytest.FixtureRequest, clock: Clock, folder: Path) -> Backend:
    if request.param == "azure_tables":
        connection = request.getfixturevalue("azure_storage").connection
        return AzureTablesBackend(clock, connection, f"engine{next(_numbers)}")
    return MemoryBackend(clock) if request.param == "memory" else SqliteBackend(clock, folder)


@pytest.fixture(params=["memory", "sqlite", "azure_tables"])
async def plane(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Plane]:
    """PostgreSQL passes the ledger's own suite; here it would test nothing else."""
    clock = Clock()
    backend, bus = _backend(request, clock, tmp_path), MemoryBus(clock)
    await backend.start()
    yield Plane.new(backend, bus)
    await bus.close()
    await backend.stop()
