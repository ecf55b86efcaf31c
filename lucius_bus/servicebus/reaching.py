"""Whether there is anything to talk to."""

import asyncio
import ssl
from datetime import timedelta
from typing import NamedTuple

from lucius_bus.port import BusUnavailable

_TLS_PORT = 5671
_PLAIN_PORT = 5672
_HEADER = b"AMQP\x03\x01\x00\x00"  # with which a connection begins, from both sides


class Endpoint(NamedTuple):
    """`host` may name a port. `is_plain`: without TLS, as emulators are."""

    host: str
    is_plain: bool = False

    @property
    def address(self) -> tuple[str, int]:
        default = _PLAIN_PORT if self.is_plain else _TLS_PORT
        host, colon, port = self.host.rpartition(":")
        return (host.strip("[]"), int(port)) if colon and port.isdigit() else (self.host, default)


async def reach(endpoint: Endpoint, at_most: timedelta) -> None:
    """Begin a connection and end it. `BusUnavailable` if nobody answers as Service Bus would."""
    try:
        async with asyncio.timeout(at_most.total_seconds()):
            answer = await _greet(endpoint)
    except (OSError, EOFError, TimeoutError) as error:
        raise BusUnavailable(f"{endpoint.host} cannot be reached: {error!r}") from error
    if answer != _HEADER:
        raise BusUnavailable(f"{endpoint.host} does not speak AMQP")


async def _greet(endpoint: Endpoint) -> bytes:
    host, port = endpoint.address
    context = None if endpoint.is_plain else ssl.create_default_context()
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        writer.write(_HEADER)
        return await reader.readexactly(len(_HEADER))
    finally:
        writer.transport.abort()
