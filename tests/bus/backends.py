"""A bus and what its tests must be able to do with it, behind one face for every adapter."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from lucius_bus.filters import PropertyFilter
from lucius_bus.memory import MemoryBus
from lucius_bus.port import Bus, BusMessage, Delivery
from lucius_bus.servicebus import ServiceBusBus, ServiceBusSettings
from lucius_bus.topology import (
    SubscriptionSettings,
    Topology,
    dead_letters_of,
)
from lucius_orchestrator.adapters.bus.embedded import EmbeddedBus
from servicebus_emulator.server import Emulator
from tests.bus.sync_bus import sync_bus
from tests.runner.deadlines import DEADLINE

TOPIC = "lane"
OCR = "ocr"
LOCK = timedelta(seconds=60)
AT_ONCE = timedelta(0)
LONG = timedelta(hours=2)
KEY = "c2VjcmV0LW9mLXRoZS10ZXN0cw=="  # that nobody may see


Verb = Callable[[Bus, Delivery], Awaitable[object]]
SETTLEMENTS: dict[str, Verb] = {
    "complete": lambda bus, delivery: bus.complete(delivery),
    "abandon": lambda bus, delivery: bus.abandon(delivery),
    "dead_letter": lambda bus, delivery: bus.dead_letter(delivery, "Unreadable", "no JSON"),
}
VERBS: dict[str, Verb] = {**SETTLEMENTS, "renew": lambda bus, delivery: bus.renew(delivery)}


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now: datetime = datetime(2025, 3, 1, 12, tzinfo=UTC)) -> None:
        self.now = now

    @classmethod
    def of_today(cls) -> "Clock":
        """For clients that compare what a server says with their own time."""
        return cls(datetime.now(UTC).replace(microsecond=0))

    def __call__(self) -> datetime:
        return self.now

    def milliseconds(self) -> int:
        return round(self.now.timestamp() * 1000)

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


class EmbeddedBackend:
    name = "embedded"

    def __init__(self) -> None:
        self.clock = Clock()
        self.emulator = Emulator(clock=self.clock.milliseconds)
        self.bus = EmbeddedBus(self.emulator)
        self.bus.apply(Topology({TOPIC: ()}))

    @property
    def now(self) -> datetime:
        return self.clock.now

    async def subscribe(self, *subscriptions: SubscriptionSettings) -> None:
        self.bus.apply(Topology({TOPIC: subscriptions}))

    async def pass_time(self, **duration: float) -> None:
        self.clock.advance(**duration)
        self.bus.tick()

    async def go_away(self) -> None:
        self.bus.go_away()

    async def come_back(self) -> None:
        self.bus.come_back()

    async def close(self) -> None:
        await self.bus.close()


SETTINGS = ServiceBusSettings(
    shortest_wait=timedelta(milliseconds=80),
    longest_look=timedelta(milliseconds=80),
    attempt_timeout=timedelta(seconds=DEADLINE),
    withdraw=LONG,
    linger=LONG,
    first_pause=timedelta(milliseconds=10),
    longest_pause=timedelta(milliseconds=20),
    keep_alive=None,
)


class ServiceBusBackend:
    """A client of Azure against the emulator, in one event loop.

    The emulator's clock begins at the present and then stands still: the client gives a message up
    by its own clock, and must not do so before the emulator.
    """

    def __init__(self, name: str, emulator: Emulator, bus: Bus, clock: Clock) -> None:
        self.name = name
        self.bus = bus
        self.clock = clock
        self.emulator = emulator
        self._port = emulator.port
        self._administration = EmbeddedBus(emulator)
        self._administration.apply(Topology({TOPIC: ()}))

    @property
    def now(self) -> datetime:
        return self.clock.now

    async def connect(self) -> None:
        """Open the connections that most tests use, side by side, for opening one takes the client
        half a second; and leave nothing behind."""
        waiting = receive(self.bus, limit=1, wait=LONG)
        (delivery,), _ = await asyncio.gather(waiting, publish(self.bus, message()))
        await self.bus.complete(delivery)

    async def subscribe(self, *subscriptions: SubscriptionSettings) -> None:
        self._administration.apply(Topology({TOPIC: subscriptions}))

    async def pass_time(self, **duration: float) -> None:
        self.clock.advance(**duration)
        self.emulator.tick()

    async def go_away(self) -> None:
        await self.emulator.stop()

    async def come_back(self) -> None:
        await self.emulator.start(port=self._port)

    async def close(self) -> None:
        await self.bus.close()
        await self.emulator.stop()


async def served_backend(name: str) -> ServiceBusBackend:
    clock = Clock.of_today()
    emulator = Emulator(clock=clock.milliseconds)
    await emulator.start()
    text = connection_string(emulator.port)
    if name == "sync":
        bus = sync_bus(text, emulator.port, SETTINGS, clock)
    else:
        bus = ServiceBusBus.from_connection_string(text, settings=SETTINGS, clock=clock)
    return ServiceBusBackend(name, emulator, bus, clock)


def connection_string(port: int) -> str:
    return (
        f"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=tests;SharedAccessKey={KEY};"
        "UseDevelopmentEmulator=true;"
    )


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
    """One that is there, or on its way: on a busy machine a look that does not wait may be over
    before the server has come to it."""
    (delivery,) = await receive(bus, subscription, limit=1, wait=LONG)
    return delivery


async def all_that_come(bus: Bus, count: int = 1, subscription: str = OCR) -> list[Delivery]:
    """`count` that are there or on their way, and what a look finds beside them."""
    found: list[Delivery] = []
    while len(found) < count:
        found += await receive(bus, subscription, wait=LONG)
    return found + await receive(bus, subscription)


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


async def dead_letters(bus: Bus, subscription: str = OCR, count: int = 1) -> list[Delivery]:
    """`count` that are there or on their way, and what a look finds beside them."""
    return await all_that_come(bus, count, dead_letters_of(subscription))


def ids(deliveries: Iterable[Delivery]) -> list[str]:
    return [delivery.message.message_id for delivery in deliveries]


def reasons(deliveries: Iterable[Delivery]) -> list[str | int]:
    return [delivery.message.properties["DeadLetterReason"] for delivery in deliveries]


async def turns(count: int = 10) -> None:
    """Let every task run until it waits for something."""
    for _ in range(count):
        await asyncio.sleep(0)
