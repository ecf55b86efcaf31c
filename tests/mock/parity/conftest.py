"""Targets and the service are shared by the tests of a module, each of which has its own jobs."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.mock.parity.mock_target import mock_target
from tests.mock.parity.orchestrator_target import invoker_target, orchestrator_target
from tests.mock.parity.service import BusService, Service
from tests.mock.parity.target import Target
from tests.runner.deadlines import DEADLINE

TARGETS: dict[str, Callable[[Path], AbstractAsyncContextManager[Target]]] = {
    "mock": mock_target,
    "orchestrator": orchestrator_target,
    "invoker": invoker_target,
}


@pytest_asyncio.fixture(params=TARGETS, scope="module", loop_scope="module")
async def target(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Target]:
    async with TARGETS[request.param](tmp_path_factory.mktemp(request.param)) as target:
        yield target


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(target: Target) -> AsyncIterator[Service]:
    timeout = aiohttp.ClientTimeout(total=DEADLINE)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        yield Service(target, http)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bus_service(target: Target) -> AsyncIterator[BusService]:
    async with BusService(target) as service:
        yield service
