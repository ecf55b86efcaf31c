from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lucius_bus.memory import MemoryBus
from tests.engine.plane import Plane
from tests.ledger.backends import AzureTablesBackend, Backend, Clock, MemoryBackend, SqliteBackend
from tests.names import unique


def _backend(request: pytest.FixtureRequest, clock: Clock, folder: Path) -> Backend:
    if request.param == "azure_tables":
        connection = request.getfixturevalue("azure_storage").connection
        return AzureTablesBackend(clock, connection, unique("engine"))
    return MemoryBackend(clock) if request.param == "memory" else SqliteBackend(clock, folder)


LEDGERS = ("memory", "sqlite", pytest.param("azure_tables", marks=pytest.mark.full))
"""The others pass the ledger's own suite; here they would test little else."""

NOT_OF_LEDGERS = (
    "test_backlogs",
    "test_consumer",
    "test_holding",
    "test_recent_and_mailboxes",
    "test_telemetry",
)
"""Modules about the bus and about what is told: they ask little of a ledger, Azurite much."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "plane" in metafunc.fixturenames:
        module = metafunc.module.__name__.rpartition(".")[2]
        kinds = LEDGERS[:2] if module in NOT_OF_LEDGERS else LEDGERS
        metafunc.parametrize("plane", kinds, indirect=True)


@pytest.fixture
async def plane(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Plane]:
    clock = Clock()
    backend, bus = _backend(request, clock, tmp_path), MemoryBus(clock)
    await backend.start()
    yield Plane.new(backend, bus)
    await bus.close()
    await backend.stop()
