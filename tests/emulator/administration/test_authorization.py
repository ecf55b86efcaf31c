"""Signatures in the Authorization header."""

import logging
import time
from collections.abc import AsyncIterator

import pytest
from azure.core.exceptions import ClientAuthenticationError

from servicebus_emulator.administration import Request
from servicebus_emulator.sas import Keys
from tests.emulator.administration.serving import Served, aio_client, get, serve, speak


@pytest.fixture
async def guarded() -> AsyncIterator[Served]:
    keys = Keys({"Root": "secret"})
    async with serve(Served(keys, lambda: time.time_ns() // 1_000_000)) as served:
        yield served


async def test_the_right_key_opens(guarded: Served) -> None:
    async with aio_client(guarded.connection_string("secret")) as client:
        await client.create_queue("orders")
        assert [one.name async for one in client.list_queues()] == ["orders"]


async def test_a_wrong_key_does_not(guarded: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "servicebus_emulator")
    async with aio_client(guarded.connection_string("wr0ng")) as client:
        with pytest.raises(ClientAuthenticationError, match="not signed"):
            await client.create_queue("orders")
    assert guarded.broker.queues() == []
    ours = [one.getMessage() for one in caplog.records if one.name.startswith("servicebus_emul")]
    assert not any("SharedAccessSignature" in text for text in ours)


@pytest.mark.parametrize("path", ["/orders", "/$Resources/queues", "/$emulator/faults"])
async def test_nothing_is_open_without_a_key(guarded: Served, path: str) -> None:
    answer = await speak(guarded.port, get(path))
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"<Code>401</Code>" in answer


async def test_health_is_open_to_everybody(guarded: Served) -> None:
    assert (await speak(guarded.port, get("/$emulator/health"))).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "127.0.0.1:5672", "origin": "https://page.example"},
        {"host": "127.0.0.1:5672", "origin": "null"},
        {"host": "rebound.example:5672"},
        {"host": "192.0.2.7"},
        {"host": "[::"},
        {"host": ""},
    ],
)
def test_without_keys_web_pages_are_refused(headers: dict[str, str]) -> None:
    served = Served()
    fault = b'{"kind": "drop"}'
    answer = served.handle(Request("POST", "/$emulator/faults", headers=headers, body=fault))
    assert answer.status == 403
    assert served.faults.active() == []


@pytest.mark.parametrize("host", ["localhost:5672", "127.0.0.1", "127.1.2.3:80", "[::1]:5672"])
def test_without_keys_programs_of_this_machine_are_answered(host: str) -> None:
    answer = Served().handle(Request("GET", "/$emulator/faults", headers={"host": host}))
    assert answer.status == 200
