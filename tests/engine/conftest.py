from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lucius_bus.memory import MemoryBus
from tests.engine.plane import Plane
from tests.ledger.backends import Backend, Clock, MemoryBackend, SqliteBackend


def _backend(name: str, clock: Clock, folder: Path) -> Backend:
    return MemoryBackend(clock) if name == "memory" else SqliteBackend(clock, folder)


@pytest.fixture(params=["memory", "sqlite"])
async def plane(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Plane]:
    """PostgreSQL passes the ledger's own suite; here it would test nothing else."""
    clock = Clock()
    backend, bus = _backend(request.param, clock, tmp_path), MemoryBus(clock)
    await backend.start()
    yield Plane.new(backend, bus)
    await bus.close()
    await backend.stop()
