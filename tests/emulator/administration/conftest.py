from collections.abc import AsyncIterator

import pytest
from azure.servicebus.aio.management import ServiceBusAdministrationClient

from tests.emulator.administration.serving import Served, aio_client, serve


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serve(Served()) as served:
        yield served


@pytest.fixture
async def client(served: Served) -> AsyncIterator[ServiceBusAdministrationClient]:
    async with aio_client(served.connection_string()) as client:
        yield client
