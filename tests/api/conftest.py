"""The suite runs over both engines, on every ledger that keeps what it is told."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from lucius_bus.memory import MemoryBus
from lucius_orchestrator.domain.aggregate import Engine
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


class Kind(NamedTuple):
    engine: Engine
    backend: str

    def __str__(self) -> str:
        return f"{self.engine}-{self.backend}"


KINDS = [
    Kind(engine, backend)
    for engine in Engine
    for backend in BACKENDS
    if engine is Engine.LEDGER or backend != "memory"
]


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


@asynccontextmanager
async def _plane(request: pytest.FixtureRequest, kind: Kind, folder: Path) -> AsyncIterator[Plane]:
    backend = _backend(request, kind.backend, folder)
    bus = MemoryBus(backend.clock)
    if kind.engine is Engine.TEMPORAL:
        server = request.getfixturevalue("temporal")
        from tests.engine.temporal_plane import set_to_now, temporal_plane

        await set_to_now(backend).start()
        async with temporal_plane(backend, bus, server) as plane:
            yield plane
    else:
        await backend.start()
        yield Plane.new(backend, bus)
    await bus.close()
    await backend.stop()


@pytest.fixture(params=KINDS, ids=str)
async def plane(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Plane]:
    async with _plane(request, request.param, tmp_path) as plane:
        yield plane


@pytest.fixture
def stage(plane: Plane) -> Stage:
    return Stage(plane)
