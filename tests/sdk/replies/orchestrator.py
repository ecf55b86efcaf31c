"""An orchestrator on loopback that answers callbacks as a test says, and can go away."""

import asyncio
import json
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

import h11

from tests.runner.deadlines import DEADLINE

CHUNK = 64 * 1024

Act = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Request(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


def says(status: int, value: object = None, **headers: str) -> Act:
    """`value` is sent as JSON; bytes are sent as they are."""
    body = value if isinstance(value, bytes) else json.dumps(value or {}).encode()

    async def act(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Said", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()

    return act


async def announces(writer: asyncio.StreamWriter) -> None:
    """That an answer will come, and then the answer."""
    writer.write(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
    await says(200, {"verdict": "DUPLICATE"})(writer)


async def ends_with_the_connection(writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\n\r\n{"verdict": "DUPLICATE"}')
    await writer.drain()
    writer.close()


async def says_more_than_it_was_asked(writer: asyncio.StreamWriter) -> None:
    await says(200, {"verdict": "APPLIED"})(writer)
    await says(200, {"verdict": "DUPLICATE"})(writer)


async def cuts(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def cuts_the_body(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
    await writer.drain()
    writer.close()


async def speaks_no_http(writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example ready\r\n\r\n")
    await writer.drain()
    writer.close()


async def hangs(writer: asyncio.StreamWriter) -> None:
    await writer.wait_closed()


async def stops_in_the_body(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
    await hangs(writer)


async def floods(writer: asyncio.StreamWriter) -> None:
    """An answer without end."""
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"%x\r\n" % CHUNK + bytes(CHUNK) + b"\r\n")
        await writer.drain()


APPLIED = {
    "verdict": "APPLIED",
    "lease_expires_at": "2026-01-01T00:15:00Z",
    "cancel_requested": False,
}


class Orchestrator:
    """Requests take the acts that wait in turn, then `otherwise`."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.requests: list[Request] = []
        self.connections = 0
        self.otherwise: Act = says(200, APPLIED)
        self._acts: deque[Act] = deque()
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def will(self, *acts: Act) -> None:
        self._acts.extend(acts)

    async def come_back(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self._tls
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def go_away(self) -> None:
        """Those who are connected are cut off, and nobody else gets through."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            await self._server.wait_closed()
            self._server = None

    async def received(self, count: int) -> None:
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        with suppress(ConnectionError, asyncio.CancelledError):
            while (request := await _read(reader)) is not None:
                async with self._changed:
                    self.requests.append(request)
                    self._changed.notify_all()
                act = self._acts.popleft() if self._acts else self.otherwise
                await act(writer)
                if writer.is_closing():
                    break
        self._writers.discard(writer)
        writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    parser = h11.Connection(h11.SERVER)
    head, body = None, b""
    while True:
        event = parser.next_event()
        if event is h11.NEED_DATA:
            parser.receive_data(await reader.read(CHUNK))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            headers = {name.decode(): value.decode() for name, value in head.headers}
            return Request(head.target.decode(), headers, body)
        else:
            return None
