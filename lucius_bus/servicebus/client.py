"""What the adapter uses of the Azure client."""

import ssl
from collections.abc import Awaitable
from datetime import datetime
from functools import cache
from typing import Any, Protocol, cast

import certifi
from azure.servicebus import (
    ServiceBusMessage,
    ServiceBusMessageBatch,
    ServiceBusReceivedMessage,
    ServiceBusSubQueue,
)

from lucius_bus.servicebus.settings import ServiceBusSettings
from lucius_bus.topology import dead_letters_of

_DEAD_LETTERS = dead_letters_of("")


class Handler(Protocol):
    """A sender or a receiver: one connection. `__aenter__` opens it."""

    async def __aenter__(self) -> object: ...

    async def close(self) -> None: ...


class Sender(Handler, Protocol):
    async def create_message_batch(self) -> ServiceBusMessageBatch: ...

    async def send_messages(
        self, message: ServiceBusMessage | ServiceBusMessageBatch, /
    ) -> None: ...


class Receiver(Handler, Protocol):
    async def receive_messages(
        self, max_message_count: int, max_wait_time: float
    ) -> list[ServiceBusReceivedMessage]: ...

    async def complete_message(self, message: ServiceBusReceivedMessage, /) -> None: ...

    async def abandon_message(self, message: ServiceBusReceivedMessage, /) -> None: ...

    async def dead_letter_message(
        self, message: ServiceBusReceivedMessage, /, reason: str, error_description: str
    ) -> None: ...

    async def renew_message_lock(self, message: ServiceBusReceivedMessage, /) -> datetime: ...


class Client(Protocol):
    """Makes handlers, which connect when they are opened."""

    def get_topic_sender(self, topic_name: str, /, *, keep_alive: float | None) -> Sender: ...

    def get_subscription_receiver(
        self,
        topic_name: str,
        subscription_name: str,
        /,
        *,
        sub_queue: ServiceBusSubQueue | None,
        prefetch_count: int,
        socket_timeout: float,
    ) -> Receiver: ...

    async def close(self) -> None: ...


class Wire(Protocol):
    """The socket of an open handler."""

    def close(self) -> Awaitable[None] | None: ...


def wire_of(handler: Handler) -> Wire | None:
    """To be closed after the handler: the client (7.15) forgets the socket of a connection that
    broke, and has no public name for it."""
    found: object = handler
    for name in ("_handler", "_connection", "_transport"):
        found = getattr(found, name, None)
    return cast("Wire | None", found)


def client_options(settings: ServiceBusSettings) -> dict[str, Any]:
    """The client does not try again by itself: who waits for it is told soon."""
    return {
        "retry_total": 0,
        "try_timeout": settings.attempt_timeout.total_seconds(),
        "ssl_context": _authorities(),
    }


@cache
def _authorities() -> ssl.SSLContext:
    """Those whom the client trusts, for all connections. Left to itself it reads the list for each
    of them, even without TLS, which takes longer than all the rest of connecting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certifi.where())
    return context


def make_sender(client: Client, topic: str, settings: ServiceBusSettings) -> Sender:
    pause = settings.keep_alive
    return client.get_topic_sender(topic, keep_alive=pause.total_seconds() if pause else None)


def make_receiver(
    client: Client, topic: str, subscription: str, settings: ServiceBusSettings
) -> Receiver:
    """Nothing is fetched ahead: what nobody asked for stays free for other receivers, and a
    connection that breaks leaves no message locked that nobody has."""
    dead = subscription.lower().endswith(_DEAD_LETTERS)
    name = subscription[: -len(_DEAD_LETTERS)] if dead else subscription
    receiver = client.get_subscription_receiver(
        topic,
        name,
        sub_queue=ServiceBusSubQueue.DEAD_LETTER if dead else None,
        prefetch_count=0,
        socket_timeout=settings.shortest_wait.total_seconds(),
    )
    _tune(receiver, settings)
    return receiver


_ON_ITS_WAY = 0.1
"""Seconds from an answer of the bus to the next frame."""
_LISTENS = 2


class _Always:
    """In the place of the event that says that a receive is under way."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool:
        return True


def _tune(receiver: Receiver, settings: ServiceBusSettings) -> None:
    """The client (7.15) has no public names for these. After the first message of a receive it
    waits 0.2 s for more. It hands back what arrives between two receives, though it was asked for,
    and comes again at once. And it always waits for a settlement to be confirmed."""
    if hasattr(receiver, "_further_pull_receive_timeout"):
        receiver._further_pull_receive_timeout = settings.shortest_wait.total_seconds()
    if hasattr(receiver, "_receive_context"):
        receiver._receive_context = _Always()
    if hasattr(receiver, "_await_settlement_outcome") and not settings.confirms_settlements:
        receiver._await_settlement_outcome = False


def arrived(receiver: Receiver) -> int:
    """How many messages the client has that no receive has asked it for yet."""
    handler = getattr(receiver, "_handler", None)
    messages = getattr(handler, "_received_messages", None)
    return 0 if messages is None else int(messages.qsize())


def read_patiently(receiver: Receiver, seconds: float) -> None:
    """Until something comes, rather than look every few milliseconds whether it did."""
    handler: Any = getattr(receiver, "_handler", None)
    if hasattr(handler, "_socket_timeout"):
        handler._socket_timeout = seconds


async def withdraw(receiver: Receiver) -> None:
    """Take back what was asked of the bus and has not come. What is on its way arrives. The client
    (7.15) leaves its credit with the bus when a receive ends. To drain would let the bus count
    messages that the client does not: it would get none from then on."""
    handler: Any = getattr(receiver, "_handler", None)
    link: Any = getattr(handler, "_link", None)
    asked: int = getattr(link, "current_link_credit", 0) or 0
    if asked <= 0:
        return
    await link.flow(link_credit=0, echo=True)
    for _ in range(_LISTENS):
        await handler._connection.listen(wait=_ON_ITS_WAY, batch=asked + 1)
