from collections.abc import AsyncIterator

import pytest

from lucius_orchestrator.ports.bus import Bus
from tests.bus.backends import Backend, MemoryBackend, of_service

TOPOLOGY = (of_service("ocr"), of_service("sis"))


@pytest.fixture
async def memory_backend() -> AsyncIterator[MemoryBackend]:
    backend = MemoryBackend()
    await backend.subscribe(*TOPOLOGY)
    yield backend
    await backend.close()


@pytest.fixture(params=["memory"])
def backend(request: pytest.FixtureRequest) -> Backend:
    backend: Backend = request.getfixturevalue(f"{request.param}_backend")
    return backend


@pytest.fixture
def bus(backend: Backend) -> Bus:
    return backend.bus
