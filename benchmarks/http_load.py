"""Load for an HTTP server: as many requests as it takes, over connections that stay open.

The client is bytes in, bytes out: what it costs would otherwise be what is measured.
"""

import asyncio
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

CONNECTIONS = 128
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_OK = 200


class Refused(Exception):
    """The server answered with something else than what the benchmark asks for."""


def post(path: str, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


async def answers_per_second(url: str, requests: Sequence[bytes], status: int = _OK) -> float:
    """Every request once, `CONNECTIONS` at a time."""
    left = iter(requests)
    start = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CONNECTIONS):
            tasks.create_task(_drive(url, left, status))
    return len(requests) / (time.perf_counter() - start)


async def _drive(url: str, left: Iterator[bytes], status: int) -> None:
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        for request in left:
            writer.write(request)
            await _answered(reader, status)
    finally:
        writer.close()


async def _answered(reader: asyncio.StreamReader, status: int) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    body = await reader.readexactly(int(length[1])) if length else b""
    if int(head[9:12]) != status:
        raise Refused(f"{head[:64]!r} {body[:500]!r}")
