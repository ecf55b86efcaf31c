import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from lucius_orchestrator.adapters.bus.memory import MemoryBus
from lucius_orchestrator.observability.logs import LogHandler
from tests.engine.plane import Plane
from tests.ledger.backends import Clock, MemoryBackend

NAMES = ("", "lucius_orchestrator", "lucius_outbox", "uvicorn", "uvicorn.error", "uvicorn.access")


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """Whatever the test configures holds for the test only."""
    loggers = [logging.getLogger(name) for name in NAMES]
    before = [(each, each.level, each.propagate) for each in loggers]
    yield
    logging.captureWarnings(False)
    for logger, level, propagate in before:
        logger.setLevel(level)
        logger.propagate = propagate
    root = logging.getLogger()
    root.handlers[:] = [each for each in root.handlers if not isinstance(each, LogHandler)]


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    clock = Clock()
    backend, bus = MemoryBackend(clock), MemoryBus(clock)
    await backend.start()
    yield Plane.new(backend, bus)
    await bus.close()
    await backend.stop()
