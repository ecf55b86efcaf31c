"""The application behind a real server on a socket."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

from tests.runner.deadlines import DEADLINE


class _Server(uvicorn.Server):
    """Says when it serves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serving = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serving.set()


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[int]:
    """The port at which the application is served on this machine."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))  # its protocol is named: asyncio sets TCP_NODELAY only then
    config = uvicorn.Config(
        app, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1
    )
    server = _Server(config)
    with listener:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve([listener]))
            async with asyncio.timeout(DEADLINE):
                await server.serving.wait()
            yield listener.getsockname()[1]
            server.should_exit = True


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}"


class Wire:
    """A client that says byte by byte what it wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, raw: bytes) -> None:
        self._writer.write(raw)

    async def until(self, mark: bytes) -> bytes:
        async with asyncio.timeout(DEADLINE):
            return await self._reader.readuntil(mark)

    async def rest(self) -> bytes:
        """All that comes until the server closes the connection."""
        async with asyncio.timeout(DEADLINE):
            return await self._reader.read()


@asynccontextmanager
async def wire(port: int) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


def head(method: str, path: str, caller: str = "ada", **headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: api", f"Authorization: Bearer {caller}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()
