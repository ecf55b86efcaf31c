"""The administration on a free loopback port, and the real clients, which say https, on http."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from azure.core.pipeline.transport import AioHttpTransport, RequestsTransport
from azure.servicebus.aio.management import ServiceBusAdministrationClient
from azure.servicebus.management import ServiceBusAdministrationClient as SyncClient

from servicebus_emulator.administration import (
    Administration,
    AdministrationProtocol,
    Request,
    Response,
)
from servicebus_emulator.broker import Broker
from servicebus_emulator.connection_limits import ConnectionLimits
from servicebus_emulator.faults import Faults
from servicebus_emulator.sas import Keys
from tests.runner.deadlines import DEADLINE

START = 1_741_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


class Served:
    """What is behind the port. `before` may answer a request in place of the administration."""

    def __init__(self, keys: Keys | None = None, clock: Callable[[], int] | None = None) -> None:
        self.clock = Clock()
        tokens = itertools.count(1)
        self.broker = Broker(
            clock or self.clock, lambda: next(tokens).to_bytes(16, "big"), self._record
        )
        self.faults = Faults()
        self.limits = ConnectionLimits()
        self.changes = 0
        self.kept = 0
        self.requests: list[Request] = []
        self.before: Callable[[Request], Response | None] = lambda _: None
        self.app = Administration(
            self.broker, keys or Keys(), clock or self.clock, self.faults, self._keep
        )
        self.port = 0

    def handle(self, request: Request) -> Response:
        self.requests.append(request)
        return self.before(request) or self.app.handle(request)

    def connection_string(self, key: str = "secret") -> str:
        return (
            f"Endpoint=sb://127.0.0.1:{self.port};SharedAccessKeyName=Root;"
            f"SharedAccessKey={key};UseDevelopmentEmulator=true;"
        )

    def _record(self, _record: object) -> None:
        self.changes += 1

    def _keep(self) -> None:
        self.kept = self.changes


@asynccontextmanager
async def serve(served: Served) -> AsyncIterator[Served]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: AdministrationProtocol(served, served.limits), "127.0.0.1", 0
    )
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        await server.wait_closed()


class _PlainAioTransport(AioHttpTransport):  # type: ignore[misc]  # azure-core loads it lazily
    async def send(self, request: Any, **options: Any) -> Any:
        request.url = request.url.replace("https://", "http://", 1)
        options.pop("use_tls", None)
        return await super().send(request, **options)


class _PlainTransport(RequestsTransport):  # type: ignore[misc]  # azure-core loads it lazily
    def send(self, request: Any, **options: Any) -> Any:
        request.url = request.url.replace("https://", "http://", 1)
        options.pop("use_tls", None)
        return super().send(request, **options)


def aio_client(text: str) -> ServiceBusAdministrationClient:
    transport = _PlainAioTransport(use_env_settings=False)
    return ServiceBusAdministrationClient.from_connection_string(text, transport=transport)


def sync_client(text: str) -> SyncClient:
    transport = _PlainTransport(use_env_settings=False)
    return SyncClient.from_connection_string(text, transport=transport)


async def speak(port: int, sent: bytes) -> bytes:
    """All that the peer answers until it closes."""
    async with asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer


def get(path: str, *, method: str = "GET", body: bytes = b"", headers: str = "") -> bytes:
    """A request after which the connection ends."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
