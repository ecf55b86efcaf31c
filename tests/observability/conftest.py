from collections.abc import AsyncIterator, Iterator

import pytest

from lucius_bus.memory import MemoryBus
from tests.engine.plane import Plane
from tests.ledger.backends import Clock, MemoryBackend
from tests.logs.capture import logging_kept

NAMES = ("lucius_orchestrator", "lucius_outbox", "uvicorn", "uvicorn.error", "uvicorn.access")


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    with logging_kept(NAMES):
        yield


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    clock = Clock()
    backend, bus = MemoryBackend(clock), MemoryBus(clock)
    await backend.start()
    yield Plane.new(backend, bus)
    await bus.close()
    await backend.stop()
