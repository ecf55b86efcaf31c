"""The synchronous client of Azure behind the port, in threads: it shows that the emulator serves
both clients."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any, cast

from azure.servicebus import ServiceBusClient

from lucius_bus.servicebus import ServiceBusBus, ServiceBusSettings
from lucius_bus.servicebus.client import (
    Client,
    Receiver,
    Sender,
    client_options,
)
from lucius_bus.servicebus.reaching import Endpoint


class InThreads:
    """A handler whose methods are awaited."""

    def __init__(self, handler: Any) -> None:
        self._inner = handler

    @property
    def _handler(self) -> object:
        return self._inner._handler

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._inner, name)

        async def call(*args: object, **options: object) -> object:
            return await asyncio.to_thread(method, *args, **options)

        return call

    async def __aenter__(self) -> object:
        return await asyncio.to_thread(self._inner.__enter__)


class SyncClient:
    def __init__(self, text: str, settings: ServiceBusSettings) -> None:
        self._client = ServiceBusClient.from_connection_string(text, **client_options(settings))

    def get_topic_sender(self, *args: Any, **options: Any) -> Sender:
        return cast(Sender, InThreads(self._client.get_topic_sender(*args, **options)))

    def get_subscription_receiver(self, *args: Any, **options: Any) -> Receiver:
        receiver = self._client.get_subscription_receiver(*args, **options)
        return cast(Receiver, InThreads(receiver))

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close)


def sync_bus(
    text: str, port: int, settings: ServiceBusSettings, clock: Callable[[], datetime]
) -> ServiceBusBus:
    client: Client = SyncClient(text, settings)
    endpoint = Endpoint(f"127.0.0.1:{port}", is_plain=True)
    return ServiceBusBus.of_client(client, endpoint, settings, clock)
