"""Senders and receivers of the Azure client, closed to the last socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from azure.servicebus.aio import ServiceBusReceiver, ServiceBusSender

from lucius_bus.servicebus.client import wire_of

Link = TypeVar("Link", ServiceBusReceiver, ServiceBusSender)


@asynccontextmanager
async def opened(link: Link) -> AsyncIterator[Link]:
    """The client forgets the socket of a connection that broke."""
    async with link:
        wire = wire_of(link)
        try:
            yield link
        finally:
            await link.close()
            closing = None if wire is None else wire.close()
            if closing is not None:
                await closing
