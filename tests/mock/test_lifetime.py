"""Everything that the mock starts is stopped when it is left."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from orchestrator_mock import Fault, Mock, MockSettings, What
from tests.mock.scene import SERVICE, BusService, HttpService, order, recorded
from tests.runner.deadlines import DEADLINE


def ports(mock: Mock) -> dict[str, int]:
    issued = mock.send(order(), publish=False)
    urls = {
        "bus": mock.bus_address,
        "callbacks": issued.body["callback_urls"]["ack"],
        "refs": mock.serve("a", b"", job_id="j", media_type="text/plain").uri,
    }
    return {name: int(url.split(":")[2].split("/")[0]) for name, url in urls.items()}


async def listening(found: dict[str, int]) -> set[str]:
    """Those who can be connected to."""
    names = set()
    for name, port in found.items():
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            continue
        names.add(name)
        writer.close()
        await writer.wait_closed()
    return names


async def running_on(before: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Tasks that were not there before, and do not end by themselves."""
    more = asyncio.all_tasks() - before
    if not more:
        return set()
    _, pending = await asyncio.wait(more, timeout=DEADLINE)
    return pending


@asynccontextmanager
async def left(folder: Path) -> AsyncIterator[Mock]:
    """A mock that has been left when this ends: no port of it listens, no task of it runs."""
    before = asyncio.all_tasks()
    async with asyncio.timeout(DEADLINE), Mock(MockSettings(SERVICE, folder)) as mock:
        found = ports(mock)
        assert await listening(found) == {"bus", "callbacks", "refs"}
        yield mock
    assert await listening(found) == set()
    assert await running_on(before) == set()


async def test_a_mock_that_was_only_opened_leaves_nothing(tmp_path: Path) -> None:
    async with left(tmp_path):
        pass


async def test_a_mock_that_was_used_leaves_nothing(tmp_path: Path) -> None:
    async with left(tmp_path) as mock:
        async with HttpService() as service, BusService(mock) as bus_service:
            issued = mock.send(order())
            await bus_service.taken()
            assert await service(issued, "RESULT") == (200, "APPLIED")
        mock.send(order())


@pytest.mark.parametrize("name", ["callback-down", "bus-away", "reply-dropped", "callback-cut"])
async def test_a_mock_can_be_left_while_a_fault_is_on(tmp_path: Path, name: str) -> None:
    async with left(tmp_path) as mock:
        await mock.add_fault(Fault(name, count=None))


@pytest.mark.parametrize("name", ["callback-hold", "callback-slow"])
async def test_a_reply_that_waits_does_not_keep_it(tmp_path: Path, name: str) -> None:
    async with HttpService() as service:
        async with left(tmp_path) as mock:
            issued = mock.send(order(), publish=False)
            await mock.add_fault(Fault(name, count=None, seconds=600))
            asking = asyncio.ensure_future(service(issued, "ACK"))
            await recorded(mock, issued.job_id, What.ACK)
        with pytest.raises(aiohttp.ClientError):
            await asking


@pytest.mark.parametrize("how", ["held", "slow"])
async def test_a_read_that_waits_does_not_keep_it(tmp_path: Path, how: str) -> None:
    async with HttpService() as service:
        async with left(tmp_path) as mock:
            ref = mock.serve("a", b"a", job_id="j", media_type="text/plain", held=how == "held")
            await mock.add_fault(Fault("storage-slow", count=None, seconds=600))
            reading = asyncio.ensure_future(service.http.get(ref.uri))
            await recorded(mock, "j", What.READ)
        with pytest.raises(aiohttp.ClientError):
            await reading


async def test_a_service_that_stays_connected_does_not_keep_it(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(DEADLINE),
        AsyncExitStack() as clients,
        Mock(MockSettings(SERVICE, tmp_path)) as mock,
    ):
        bus_service = await clients.enter_async_context(BusService(mock))
        service = await clients.enter_async_context(HttpService(kept=True))
        await bus_service.receiver()
        await service(mock.send(order(), publish=False), "ACK")
        found = ports(mock)
    assert await listening(found) == set()


async def test_a_mock_whose_port_is_taken_leaves_nothing(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        mock = Mock(MockSettings(SERVICE, tmp_path, bus_port=port))
        with pytest.raises(OSError, match="address already in use"):
            await mock.__aenter__()
    assert await running_on(before) == set()


async def test_the_port_of_the_bus_can_be_chosen(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    async with Mock(MockSettings(SERVICE, tmp_path, bus_port=port)) as mock:
        assert mock.bus_address == f"sb://127.0.0.1:{port}"
        assert f"sb://127.0.0.1:{port};" in mock.connection_string


async def test_two_mocks_know_nothing_of_each_other(
    tmp_path: Path, http_service: HttpService
) -> None:
    async with (
        Mock(MockSettings(SERVICE, tmp_path)) as one,
        Mock(MockSettings(SERVICE, tmp_path)) as other,
    ):
        issued = one.send(order())
        assert (one.waiting(), other.waiting()) == (1, 0)
        await one.add_fault(Fault("callback-500", count=None))
        assert await http_service(other.send(order()), "ACK") == (200, "APPLIED")
        assert await http_service(issued, "ACK") == (500, "INTERNAL")
        assert other.recording.of(issued.job_id) == []
