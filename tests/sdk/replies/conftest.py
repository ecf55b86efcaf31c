from collections.abc import AsyncIterator

import pytest

from lucius_bus.memory import MemoryBus
from lucius_bus.topology import lane_topology
from lucius_sdk.replies.bus import BusReplies
from lucius_sdk.replies.http import HttpReplies
from lucius_sdk.replies.routing import Replies
from lucius_sdk.testing.clock import FakeClock
from tests.sdk.replies.orchestrator import Orchestrator


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def orchestrator() -> AsyncIterator[Orchestrator]:
    orchestrator = Orchestrator()
    await orchestrator.come_back()
    yield orchestrator
    await orchestrator.go_away()


@pytest.fixture
async def http(clock: FakeClock) -> AsyncIterator[HttpReplies]:
    http = HttpReplies(clock.now)
    yield http
    await http.close()


@pytest.fixture
async def bus(clock: FakeClock) -> AsyncIterator[MemoryBus]:
    bus = MemoryBus(clock.now)
    bus.apply(lane_topology(["ocr"]))
    yield bus
    await bus.close()


@pytest.fixture
async def replies(http: HttpReplies, bus: MemoryBus) -> AsyncIterator[Replies]:
    replies = Replies(http, BusReplies(bus))
    yield replies
    await replies.close()
