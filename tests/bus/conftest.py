from collections.abc import AsyncIterator

import pytest

from lucius_bus.port import Bus
from tests.bus.backends import (
    Backend,
    EmbeddedBackend,
    MemoryBackend,
    ServiceBusBackend,
    of_service,
    served_backend,
)

TOPOLOGY = (of_service("ocr"), of_service("sis"))


@pytest.fixture
async def memory_backend() -> AsyncIterator[MemoryBackend]:
    backend = MemoryBackend()
    await backend.subscribe(*TOPOLOGY)
    yield backend
    await backend.close()


@pytest.fixture
async def embedded_backend() -> AsyncIterator[EmbeddedBackend]:
    backend = EmbeddedBackend()
    await backend.subscribe(*TOPOLOGY)
    yield backend
    await backend.close()


@pytest.fixture
async def servicebus_backend() -> AsyncIterator[ServiceBusBackend]:
    backend = await served_backend("servicebus")
    await backend.subscribe(*TOPOLOGY)
    await backend.connect()
    yield backend
    await backend.close()


@pytest.fixture
async def sync_backend() -> AsyncIterator[ServiceBusBackend]:
    backend = await served_backend("sync")
    await backend.subscribe(*TOPOLOGY)
    await backend.connect()
    yield backend
    await backend.close()


@pytest.fixture(
    params=["memory", "embedded", "servicebus", pytest.param("sync", marks=pytest.mark.check)]
)
def backend(request: pytest.FixtureRequest) -> Backend:
    backend: Backend = request.getfixturevalue(f"{request.param}_backend")
    return backend


@pytest.fixture
def bus(backend: Backend) -> Bus:
    return backend.bus
