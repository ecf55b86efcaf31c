"""The mock, and a service that tests play before it: over HTTP with a plain client, over the bus
with that of Azure."""

import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Self, TypeVar

import aiohttp
from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender

from lucius_contract.messages import Directive, parse_directive
from lucius_contract.routing import directive_topic, lane_of, reply_topic
from orchestrator_mock import Entry, Issued, Mock, Order, What
from orchestrator_mock.orders import encoded
from tests.mock.links import opened
from tests.mock.parity.service import reply, url_of
from tests.runner.deadlines import DEADLINE

SERVICE, STEP_TYPE, TENANT = "ocr", "OCR", "acme"
LANE = lane_of(TENANT)
T = TypeVar("T")


def order(**changes: Any) -> Order:
    return Order(**{"service": SERVICE, "step_type": STEP_TYPE, "tenant_id": TENANT, **changes})


def directive_of(issued: Issued) -> Directive:
    return parse_directive(encoded(issued.kind, issued.body))


async def until(mock: Mock, found: Callable[[], T | None]) -> T:
    """What must come to be seen in the recording."""
    value = await mock.recording.wait(found, DEADLINE)
    assert value is not None, [entry.shown() for entry in mock.recording]
    return value


async def recorded(mock: Mock, job_id: str, what: What, times: int = 1) -> list[Entry]:
    """The entries of that kind, once there are so many."""

    def found() -> list[Entry] | None:
        entries = mock.recording.of(job_id, what)
        return entries if len(entries) >= times else None

    return await until(mock, found)


async def struck(mock: Mock, job_id: str, name: str) -> None:
    """Wait until the fault has struck a reply of the job."""
    entries = mock.recording.of
    await until(mock, lambda: [e for e in entries(job_id) if e.answer == name] or None)


def whats(mock: Mock, job_id: str) -> list[What]:
    return [entry.what for entry in mock.recording.of(job_id)]


class HttpService:
    """Answers at the address in a directive. Use it in `async with`. Each request has a connection
    of its own, unless they are `kept`."""

    def __init__(self, *, kept: bool = False) -> None:
        connector = aiohttp.TCPConnector(force_close=not kept)
        timeout = aiohttp.ClientTimeout(total=DEADLINE)
        self.http = aiohttp.ClientSession(connector=connector, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.close()

    async def __call__(
        self, issued: Issued, type: str, headers: dict[str, str] | None = None, **members: Any
    ) -> tuple[int, str]:
        """Status, and verdict or code."""
        given = directive_of(issued)
        raw = json.dumps(reply(given, type, **members)).encode()
        sent = {"Authorization": f"Bearer {given.callback_token}", **(headers or {})}
        async with self.http.post(url_of(given, type), data=raw, headers=sent) as answer:
            body = await answer.json(content_type=None)
            return answer.status, body.get("verdict") or body["code"]


class BusService:
    """Receives and answers on the lane of the tenant. Use it in `async with`."""

    def __init__(self, mock: Mock) -> None:
        self._client = ServiceBusClient.from_connection_string(
            mock.connection_string, retry_total=0
        )
        self._links = AsyncExitStack()
        self._receivers: dict[int, ServiceBusReceiver] = {}
        self._sender: ServiceBusSender | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._links.aclose()
        await self._client.close()

    async def hang_up(self) -> None:
        """What comes next goes over new connections."""
        self._receivers, self._sender = {}, None
        await self._links.aclose()

    async def receiver(self, lane: int = LANE) -> ServiceBusReceiver:
        if lane not in self._receivers:
            link = self._client.get_subscription_receiver(directive_topic(lane), SERVICE)
            self._receivers[lane] = await self._links.enter_async_context(opened(link))
        return self._receivers[lane]

    async def take(self, lane: int = LANE) -> ServiceBusReceivedMessage:
        """The next directive; it is held until it is settled."""
        receiver = await self.receiver(lane)
        (message,) = await receiver.receive_messages(1, max_wait_time=DEADLINE)
        return message

    async def complete(self, message: ServiceBusReceivedMessage, lane: int = LANE) -> None:
        await (await self.receiver(lane)).complete_message(message)

    async def taken(self) -> ServiceBusReceivedMessage:
        """The next directive, completed."""
        message = await self.take()
        await self.complete(message)
        return message

    async def sender(self) -> ServiceBusSender:
        if self._sender is None:
            link = self._client.get_topic_sender(reply_topic(LANE))
            self._sender = await self._links.enter_async_context(opened(link))
        return self._sender

    async def answer(self, raw: bytes, message_id: str = "m-1", traceparent: str = "") -> None:
        sender = await self.sender()
        message = ServiceBusMessage(
            raw, message_id=message_id, application_properties={"traceparent": traceparent}
        )
        await sender.send_messages(message, timeout=DEADLINE)


def raw_of(message: ServiceBusReceivedMessage) -> bytes:
    return b"".join(message.body)


def properties_of(message: ServiceBusReceivedMessage) -> dict[str, str | int]:
    found: dict[str, str | int] = {}
    for name, value in (message.application_properties or {}).items():
        found[_text(name)] = value if isinstance(value, int) else _text(value)
    return found


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
