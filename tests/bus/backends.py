"""A bus and what its tests must be able to do with it, behind one face for every adapter."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from lucius_orchestrator.adapters.bus.filters import PropertyFilter
from lucius_orchestrator.adapters.bus.memory import MemoryBus
from lucius_orchestrator.adapters.bus.topology import SubscriptionSettings, dead_letters_of
from lucius_orchestrator.ports.bus import Bus, BusMessage, Delivery

TOPIC = "lane"
OCR = "ocr"
LOCK = timedelta(seconds=60)
AT_ONCE = timedelta(0)
LONG = timedelta(hours=2)
DEADLINE = 20  # seconds in which what must happen happens


Verb = Callable[[Bus, Delivery], Awaitable[object]]
SETTLEMENTS: dict[str, Verb] = {
    "complete": lambda bus, delivery: bus.complete(delivery),
    "abandon": lambda bus, delivery: bus.abandon(delivery),
    "dead_letter": lambda bus, delivery: bus.dead_letter(delivery, "Unreadable", "no JSON"),
}
VERBS: dict[str, Verb] = {**SETTLEMENTS, "renew": lambda bus, delivery: bus.renew(delivery)}


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2025, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **duration: float) -> None:
        self.now += timedelta(**duration)


class Backend(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def bus(self) -> Bus: ...

    @property
    def now(self) -> datetime:
        """What the bus takes for the time."""

    async def subscribe(self, *subscriptions: SubscriptionSettings) -> None:
        """Give the topic these subscriptions."""

    async def pass_time(self, **duration: float) -> None:
        """The bus finds that it is later, and so do those who wait."""

    async def go_away(self) -> None: ...

    async def come_back(self) -> None: ...

    async def close(self) -> None: ...


class MemoryBackend:
    name = "memory"

    def __init__(self) -> None:
        self.clock = Clock()
        self.bus = MemoryBus(self.clock)
        self.bus.create_topic(TOPIC)

    @property
    def now(self) -> datetime:
        return self.clock.now

    async def subscribe(self, *subscriptions: SubscriptionSettings) -> None:
        for settings in subscriptions:
            self.bus.create_subscription(TOPIC, settings)

    async def pass_time(self, **duration: float) -> None:
        self.clock.advance(**duration)
        self.bus.tick()

    async def go_away(self) -> None:
        self.bus.go_away()

    async def come_back(self) -> None:
        self.bus.come_back()

    async def close(self) -> None:
        await self.bus.close()


def of_service(service: str, **settings: Any) -> SubscriptionSettings:
    return SubscriptionSettings(service, PropertyFilter({"service": service}), **settings)


def message(number: int = 0, service: str = OCR, **fields: Any) -> BusMessage:
    properties = {"service": service, "lane": 3}
    given = {"message_id": f"m{number}", "body": b"%d" % number, "properties": properties}
    return BusMessage(**{**given, **fields})


async def publish(bus: Bus, *messages: BusMessage) -> None:
    assert await bus.publish(TOPIC, messages) == []


async def receive(
    bus: Bus, subscription: str = OCR, limit: int = 10, wait: timedelta = AT_ONCE
) -> list[Delivery]:
    async with asyncio.timeout(DEADLINE):
        return await bus.receive(TOPIC, subscription, limit, wait)


async def receive_one(bus: Bus, subscription: str = OCR) -> Delivery:
    (delivery,) = await receive(bus, subscription, limit=1)
    return delivery


@asynccontextmanager
async def waiting(
    bus: Bus, subscription: str = OCR, limit: int = 10
) -> AsyncIterator[asyncio.Task[list[Delivery]]]:
    """A receiver that waits while the body runs, and must find something after it, or the end of
    its wait."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(receive(bus, subscription, limit, LONG))
        await turns()
        assert not task.done()
        yield task


async def dead_letters(bus: Bus, subscription: str = OCR) -> list[Delivery]:
    return await receive(bus, dead_letters_of(subscription))


def ids(deliveries: Iterable[Delivery]) -> list[str]:
    return [delivery.message.message_id for delivery in deliveries]


def reasons(deliveries: Iterable[Delivery]) -> list[str | int]:
    return [delivery.message.properties["DeadLetterReason"] for delivery in deliveries]


async def turns(count: int = 10) -> None:
    """Let every task run until it waits for something."""
    for _ in range(count):
        await asyncio.sleep(0)
