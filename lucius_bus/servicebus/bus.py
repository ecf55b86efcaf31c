"""The bus of the port: a sender for each topic and a receiver for each subscription, made when
they are first used."""

import asyncio
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Self

from azure.core.credentials_async import AsyncTokenCredential
from azure.servicebus import ServiceBusReceivedMessage, parse_connection_string
from azure.servicebus.aio import ServiceBusClient

from lucius_bus.port import (
    BusMessage,
    BusUnavailable,
    Delivery,
    LockLost,
    Unpublished,
)
from lucius_bus.servicebus.client import (
    Client,
    Receiver,
    client_options,
    make_receiver,
    make_sender,
)
from lucius_bus.servicebus.link import Link
from lucius_bus.servicebus.pacing import Quiet
from lucius_bus.servicebus.reaching import Endpoint, reach
from lucius_bus.servicebus.receiving import SubscriptionReceiver, Verb
from lucius_bus.servicebus.sending import TopicSender
from lucius_bus.servicebus.settings import ServiceBusSettings

_EMULATOR = "usedevelopmentemulator=true"


def utc_now() -> datetime:
    return datetime.now(UTC)


class ServiceBusBus:
    """All verbs run in one event loop.

    `namespace` is a host name, as `example.servicebus.windows.net`. Who made the credential closes
    it after the bus. `clock` is what a message's time to live is counted by, and `chance` spreads
    reconnects.
    """

    def __init__(
        self,
        namespace: str,
        credential: AsyncTokenCredential,
        *,
        settings: ServiceBusSettings | None = None,
        clock: Callable[[], datetime] = utc_now,
        chance: Callable[[], float] = random.random,
    ) -> None:
        settings = settings or ServiceBusSettings()
        client = ServiceBusClient(namespace, credential, **client_options(settings))
        self._begin(client, Endpoint(namespace), settings, clock, chance)

    @classmethod
    def from_connection_string(
        cls,
        text: str,
        *,
        settings: ServiceBusSettings | None = None,
        clock: Callable[[], datetime] = utc_now,
        chance: Callable[[], float] = random.random,
    ) -> Self:
        """`ValueError`, which does not repeat the text, if it cannot be read."""
        settings = settings or ServiceBusSettings()
        endpoint = _endpoint_of(text)
        client = ServiceBusClient.from_connection_string(text, **client_options(settings))
        return cls.of_client(client, endpoint, settings, clock, chance)

    @classmethod
    def of_client(
        cls,
        client: Client,
        endpoint: Endpoint,
        settings: ServiceBusSettings,
        clock: Callable[[], datetime] = utc_now,
        chance: Callable[[], float] = random.random,
    ) -> Self:
        """Over a client that does not try again by itself. The bus closes it."""
        bus = cls.__new__(cls)
        bus._begin(client, endpoint, settings, clock, chance)
        return bus

    def _begin(
        self,
        client: Client,
        endpoint: Endpoint,
        settings: ServiceBusSettings,
        clock: Callable[[], datetime],
        chance: Callable[[], float],
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._settings = settings
        self._clock = clock
        self._chance = chance
        self._quiet: dict[str, Quiet] = {}
        self._senders: dict[str, TopicSender] = {}
        self._receivers: dict[tuple[str, str], SubscriptionReceiver] = {}
        self._is_closed = False
        self._closing = asyncio.Lock()

    async def publish(self, topic: str, messages: Sequence[BusMessage]) -> list[Unpublished]:
        if not messages:
            return []
        try:
            self._check_open()
            self._quiet_of(topic).check()
        except BusUnavailable as error:
            return [Unpublished(message, error) for message in messages]
        return await self._sender(topic).publish(messages)

    async def receive(
        self, topic: str, subscription: str, limit: int, wait: timedelta
    ) -> list[Delivery]:
        """Also of the dead letters, under the name that `dead_letters_of` gives."""
        if limit < 1:
            raise ValueError(f"limit must be at least 1: {limit}")
        self._check_open()
        self._quiet_of(topic).check()
        return await self._receiver(topic, subscription).receive(limit, wait)

    async def complete(self, delivery: Delivery) -> None:
        await self._settle(delivery, _complete)

    async def abandon(self, delivery: Delivery) -> None:
        await self._settle(delivery, _abandon)

    async def dead_letter(self, delivery: Delivery, reason: str, description: str) -> None:
        """`Misused` for what is a dead letter already."""
        await self._settle(delivery, partial(_dead_letter, reason=reason, description=description))

    async def renew(self, delivery: Delivery) -> Delivery:
        until = await self._settle(delivery, _renew)
        return delivery if until is None else delivery._replace(locked_until=until)

    async def check(self) -> None:
        self._check_open()
        await reach(self._endpoint, self._settings.attempt_timeout)

    async def close(self) -> None:
        """What is held is abandoned: it can be received again at once."""
        self._is_closed = True
        async with self._closing:
            closing = [sender.close() for sender in self._senders.values()]
            closing += [receiver.close() for receiver in self._receivers.values()]
            await asyncio.gather(*closing)
            self._senders.clear()
            self._receivers.clear()
            await self._client.close()

    async def _settle(self, delivery: Delivery, verb: Verb) -> datetime | None:
        """Settlements go out even to a topic that wants to be left alone: what is not settled
        would come again, and be more work for everybody."""
        self._check_open()
        if not isinstance(delivery.token, ServiceBusReceivedMessage):
            raise LockLost(f"message {delivery.message.message_id} was not delivered by this bus")
        receiver = self._receiver(delivery.topic, delivery.subscription)
        return await receiver.settle(delivery.token, verb)

    def _check_open(self) -> None:
        if self._is_closed:
            raise BusUnavailable("the bus is closed")

    def _quiet_of(self, topic: str) -> Quiet:
        if topic not in self._quiet:
            self._quiet[topic] = Quiet(topic, self._settings.quiet, self._clock)
        return self._quiet[topic]

    def _sender(self, topic: str) -> TopicSender:
        if topic not in self._senders:
            make = partial(make_sender, self._client, topic, self._settings)
            self._senders[topic] = TopicSender(
                topic,
                Link(make, self._settings, self._chance),
                self._quiet_of(topic),
                self._clock,
                is_partitioned=self._settings.is_partitioned,
            )
        return self._senders[topic]

    def _receiver(self, topic: str, subscription: str) -> SubscriptionReceiver:
        address = topic, subscription
        if address not in self._receivers:
            make = partial(make_receiver, self._client, topic, subscription, self._settings)
            self._receivers[address] = SubscriptionReceiver(
                topic,
                subscription,
                Link(make, self._settings, self._chance),
                self._quiet_of(topic),
                self._clock,
                self._settings,
            )
        return self._receivers[address]


def _endpoint_of(text: str) -> Endpoint:
    try:
        host = parse_connection_string(text).fully_qualified_namespace
    except ValueError as error:
        raise ValueError(f"the connection string of the bus cannot be read: {error}") from None
    return Endpoint(host, is_plain=_EMULATOR in text.lower().replace(" ", ""))


async def _complete(receiver: Receiver, message: ServiceBusReceivedMessage) -> None:
    await receiver.complete_message(message)


async def _abandon(receiver: Receiver, message: ServiceBusReceivedMessage) -> None:
    await receiver.abandon_message(message)


async def _dead_letter(
    receiver: Receiver, message: ServiceBusReceivedMessage, *, reason: str, description: str
) -> None:
    await receiver.dead_letter_message(message, reason=reason, error_description=description)


async def _renew(receiver: Receiver, message: ServiceBusReceivedMessage) -> datetime:
    return await receiver.renew_message_lock(message)
