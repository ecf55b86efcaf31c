from collections.abc import AsyncIterator

import pytest

from lucius_bus.memory import MemoryBus
from tests.engine.plane import Plane
from tests.invoker.stage import InvokerStage
from tests.ledger.backends import Clock, MemoryBackend


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    backend = MemoryBackend(Clock())
    bus = MemoryBus(backend.clock)
    await backend.start()
    yield Plane.new(backend, bus)
    await bus.close()
    await backend.stop()


@pytest.fixture
def stage(plane: Plane) -> InvokerStage:
    return InvokerStage(plane)
