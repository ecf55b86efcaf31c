"""The suite runs over both engines, on every ledger that keeps what it is told. What is said before
a job is looked at, in the modules named below, needs but one ledger of each."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from lucius_bus.memory import MemoryBus
from lucius_orchestrator.domain.aggregate import Engine
from tests.api.artifact_stage import ArtifactStage, artifact_stage
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
from tests.names import unique


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
SLOW = Kind(Engine.TEMPORAL, "azure_tables")
"""What it could show, the others show: the engine on SQL, the tables with the other engine."""
FEW = [Kind(Engine.LEDGER, "memory"), Kind(Engine.TEMPORAL, "sqlite")]
AT_THE_EDGE = {
    "test_artifacts_isolation",
    "test_artifacts_submission",
    "test_fuzzing",
    "test_isolation",
    "test_limits",
    "test_loopback",
    "test_openapi",
    "test_problems",
    "test_submission",
}
"""Their facts are about HTTP, callers and requests."""
OF_REPLIES = {"test_callbacks", "test_stream"}
"""Their facts are about the way to a commit and from it, which is the engine's."""
OF_DIRECTIVES = {"test_services", "test_pending_limit"}
"""Their facts are about directives that wait in the ledger, which those of Temporal do not."""
OF_THE_LEDGER = {"test_crowds"}
"""Their facts are about one commit; which engine goes on from there does not matter to Azure."""


def _backend(request: pytest.FixtureRequest, name: str, folder: Path) -> Backend:
    clock = Clock()
    if name == "memory":
        return MemoryBackend(clock)
    if name == "sqlite":
        return SqliteBackend(clock, folder)
    if name == "azure_tables":
        connection = request.getfixturevalue("azure_storage").connection
        return AzureTablesBackend(clock, connection, unique("api"))
    return PostgresBackend(clock, request.getfixturevalue("postgres_uri"), unique("api"))


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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "plane" in metafunc.fixturenames:
        module = metafunc.module.__name__.rpartition(".")[2]
        in_check = _kinds(module)
        params = [
            pytest.param(kind, id=str(kind), marks=() if kind in in_check else pytest.mark.full)
            for kind in KINDS
            if kind.engine is Engine.LEDGER or module not in OF_DIRECTIVES
        ]
        metafunc.parametrize("plane", params, indirect=True)


def _kinds(module: str) -> list[Kind]:
    if module in AT_THE_EDGE:
        return FEW
    if module in OF_DIRECTIVES:
        return [Kind(Engine.LEDGER, "memory"), Kind(Engine.LEDGER, "sqlite")]
    if module in OF_REPLIES:
        return [*FEW, Kind(Engine.TEMPORAL, "postgres")]
    if module in OF_THE_LEDGER:
        return [kind for kind in KINDS if kind.engine is Engine.LEDGER or kind in FEW]
    return [kind for kind in KINDS if kind != SLOW]


@pytest.fixture
async def plane(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Plane]:
    async with _plane(request, request.param, tmp_path) as plane:
        yield plane


@pytest.fixture
def stage(plane: Plane) -> Stage:
    return Stage(plane)


@pytest.fixture(params=["memory", "sqlite"])
async def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ArtifactStage]:
    async with artifact_stage(request.param, tmp_path) as made:
        yield made
