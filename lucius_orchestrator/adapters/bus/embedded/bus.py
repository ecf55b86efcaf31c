"""The bus of the port, on a broker in this process."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from lucius_bus.port import (
    BusMessage,
    BusUnavailable,
    Delivery,
    LockLost,
    PublishRefused,
    Unpublished,
)
from lucius_bus.topology import SubscriptionSettings, Topology
from lucius_orchestrator.adapters.bus.embedded.errors import (
    OF_ONE_MESSAGE,
    unpublished,
    unreceived,
)
from lucius_orchestrator.adapters.bus.embedded.messages import (
    Lock,
    Place,
    delivery_of,
    moment,
    outgoing,
)
from lucius_orchestrator.adapters.bus.embedded.topology import apply, create_subscription
from lucius_orchestrator.adapters.bus.embedded.waiting import Waiter
from servicebus_emulator.amqp import AmqpError
from servicebus_emulator.broker import (
    Abandon,
    BrokerError,
    Complete,
    DeadLetter,
    EntityNotFound,
    Outcome,
)
from servicebus_emulator.broker import Delivery as Handed
from servicebus_emulator.journal import JournalError
from servicebus_emulator.messages import Message
from servicebus_emulator.server import Emulator

_AT_ONCE = timedelta(0)
_COMPLETE = Complete()
_ABANDON = Abandon()
_FEW = 1024


class EmbeddedBus:
    """All verbs run in the event loop of the emulator. What a verb has changed is kept before it
    answers. Whoever moves a fake clock calls `tick` afterwards."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._broker = emulator.broker
        self._places: dict[tuple[str, str], Place] = {}
        self._held: dict[Lock, datetime] = {}
        self._prune_at = _FEW
        self._waiters: set[Waiter] = set()
        self._is_away = False
        self._is_closed = False

    def apply(self, topology: Topology) -> None:
        """Create what is missing; what the topology does not name stays."""
        try:
            apply(topology, self._broker)
        finally:
            self._keep()

    def create_subscription(self, topic: str, settings: SubscriptionSettings) -> None:
        """It gets what is published from now on. One that exists with other settings is
        `Misused`."""
        create_subscription(topic, settings, self._broker)
        self._keep()

    async def publish(self, topic: str, messages: Sequence[BusMessage]) -> list[Unpublished]:
        try:
            self._check()
        except BusUnavailable as error:
            return [Unpublished(message, error) for message in messages]
        built, refused = self._built(messages)
        try:
            self._broker.send(topic, [message for _, message in built])
        except OF_ONE_MESSAGE:
            refused += self._sent_alone(topic, built)
        except BrokerError as error:
            refused += [Unpublished(message, unpublished(error)) for message, _ in built]
        try:
            self._keep()
        except BusUnavailable as error:
            return [Unpublished(message, error) for message in messages]
        return refused

    async def receive(
        self, topic: str, subscription: str, limit: int, wait: timedelta
    ) -> list[Delivery]:
        """Also of the dead letters, under the name that `dead_letters_of` gives."""
        if limit < 1:
            raise ValueError(f"limit must be at least 1: {limit}")
        await asyncio.sleep(0)  # a loop that receives and never waits must not starve the others
        self._check()
        try:
            place = self._place(topic, subscription)
            found = place.source.take(limit)
        except BrokerError as error:
            raise unreceived(error) from error
        if not found and wait > _AT_ONCE:
            found = await self._found(place, limit, wait)
        if found:
            self._emulator.settle_soon()  # it has locks to look after
        deliveries = [self._hold(handed, place) for handed in found]
        if self._is_closed:
            await self.close()
        self._check()
        return deliveries

    async def complete(self, delivery: Delivery) -> None:
        self._settle(delivery, _COMPLETE)

    async def abandon(self, delivery: Delivery) -> None:
        self._settle(delivery, _ABANDON)

    async def dead_letter(self, delivery: Delivery, reason: str, description: str) -> None:
        """`Misused` for what is a dead letter already."""
        self._settle(delivery, DeadLetter(reason, description))

    async def renew(self, delivery: Delivery) -> Delivery:
        lock = self._lock_of(delivery)
        try:
            until = moment(lock.source.renew(lock.token))
        except BrokerError as error:
            raise unreceived(error) from error
        self._held[lock] = until
        self._emulator.settle_soon()
        return delivery._replace(locked_until=until)

    async def check(self) -> None:
        self._check()

    async def close(self) -> None:
        """What is held can be received again, as if it had not been delivered. The emulator goes
        on: others may use it."""
        self._is_closed = True
        for source, token in self._held:
            source.release(token)
        self._held.clear()
        self._fail_waiters()
        with suppress(BusUnavailable):  # the emulator tries again
            self._keep()

    def tick(self) -> None:
        """The clock was moved: do what time has brought, and end the waits that are over."""
        self._emulator.tick()
        now = self._emulator.clock()
        for waiter in self._waiters:
            if waiter.ends <= now:
                waiter.end()

    def go_away(self) -> None:
        """Nobody reaches it through this port, those who wait included."""
        self._is_away = True
        self._fail_waiters()

    def come_back(self) -> None:
        self._is_away = False

    def _check(self) -> None:
        if self._is_away or self._is_closed:
            raise BusUnavailable("the bus is closed" if self._is_closed else "the bus is away")

    def _built(
        self, messages: Sequence[BusMessage]
    ) -> tuple[list[tuple[BusMessage, Message]], list[Unpublished]]:
        now = self._emulator.clock()
        built, refused = [], []
        for message in messages:
            try:
                built.append((message, outgoing(message, now)))
            except (ValueError, TypeError, AmqpError) as error:
                text = f"it cannot be encoded: {error}"
                refused.append(Unpublished(message, PublishRefused(text)))
        return built, refused

    def _sent_alone(
        self, topic: str, built: Sequence[tuple[BusMessage, Message]]
    ) -> list[Unpublished]:
        """One of them is refused, and with it the whole batch: each by itself tells which."""
        refused = []
        for message, encoded in built:
            try:
                self._broker.send(topic, [encoded])
            except BrokerError as error:
                refused.append(Unpublished(message, unpublished(error)))
        return refused

    def _place(self, topic: str, subscription: str) -> Place:
        place = self._places.get((topic, subscription))
        if place is None or place.source.is_deleted:
            source = self._broker.source(f"{topic}/Subscriptions/{subscription}")
            place = self._places[topic, subscription] = Place(topic, subscription, source)
        return place

    async def _found(self, place: Place, limit: int, wait: timedelta) -> list[Handed]:
        seconds = wait.total_seconds()
        waiter = Waiter(place.source, limit, self._emulator.clock() + round(seconds * 1000))
        self._waiters.add(waiter)
        try:
            return await waiter.found(seconds)
        finally:
            self._waiters.discard(waiter)

    def _hold(self, handed: Handed, place: Place) -> Delivery:
        delivery = delivery_of(handed, place)
        assert isinstance(delivery.token, Lock)
        self._held[delivery.token] = delivery.locked_until
        if len(self._held) > self._prune_at:
            self._prune()
        return delivery

    def _prune(self) -> None:
        """Those whose lock ran out are nobody's."""
        now = moment(self._emulator.clock())
        self._held = {lock: until for lock, until in self._held.items() if until > now}
        self._prune_at = 2 * len(self._held) + _FEW

    def _settle(self, delivery: Delivery, outcome: Outcome) -> None:
        lock = self._lock_of(delivery)
        try:
            lock.source.settle(lock.token, outcome)
        except EntityNotFound as error:
            raise LockLost(str(error)) from error
        except BrokerError as error:
            raise unreceived(error) from error
        self._held.pop(lock, None)
        self._keep()

    def _keep(self) -> None:
        try:
            self._emulator.keep()
        except JournalError as error:
            raise BusUnavailable(f"what changed cannot be kept yet: {error}") from error

    def _lock_of(self, delivery: Delivery) -> Lock:
        self._check()
        if not isinstance(delivery.token, Lock):
            raise LockLost(f"message {delivery.message.message_id} was not delivered by this bus")
        return delivery.token

    def _fail_waiters(self) -> None:
        for waiter in self._waiters:
            waiter.fail(BusUnavailable("the bus is closed" if self._is_closed else "it is away"))
