"""Receiving from one subscription, and settling what came from it: one receiver, one owner.

The client does one thing at a time well: settlements side by side, or beside a receive that waits,
hold each other up for as long as a read lasts. So settlements and renewals wait in a line here and
run one after the other between looks for messages; a look that waits gives way to them.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from operator import methodcaller
from typing import NamedTuple

from azure.servicebus import ServiceBusReceivedMessage

from lucius_bus.port import BusError, BusUnavailable, Delivery, Misused
from lucius_bus.servicebus.client import Receiver, arrived, read_patiently, withdraw
from lucius_bus.servicebus.errors import Failure, Meaning
from lucius_bus.servicebus.link import Link
from lucius_bus.servicebus.messages import delivery_of
from lucius_bus.servicebus.pacing import Quiet
from lucius_bus.servicebus.requests import Requests
from lucius_bus.servicebus.settings import ServiceBusSettings
from lucius_bus.waiting import until_set

Verb = Callable[[Receiver, ServiceBusReceivedMessage], Awaitable[datetime | None]]
_FOREVER = timedelta(days=1)
_FEW = 256


class _Settlement(NamedTuple):
    message: ServiceBusReceivedMessage
    verb: Verb
    future: asyncio.Future[datetime | None]


class SubscriptionReceiver:
    """A settlement that is given up goes on; only one that has not begun is left out."""

    def __init__(
        self,
        topic: str,
        subscription: str,
        link: Link[Receiver],
        quiet: Quiet,
        clock: Callable[[], datetime],
        settings: ServiceBusSettings,
    ) -> None:
        self._topic = topic
        self._subscription = subscription
        self._link = link
        self._quiet = quiet
        self._clock = clock
        self._settings = settings
        self._requests = Requests(clock)
        self._settlements: deque[_Settlement] = deque()
        self._held: dict[ServiceBusReceivedMessage, datetime] = {}
        self._prune_at = _FEW
        self._has_work = asyncio.Event()
        self._looking: asyncio.Future[list[ServiceBusReceivedMessage]] | None = None
        self._interrupting: asyncio.TimerHandle | None = None
        self._is_closing = False
        self._owner = asyncio.create_task(self._run())

    async def receive(self, limit: int, wait: timedelta) -> list[Delivery]:
        self._check_owned()
        future = self._requests.add(limit, wait)
        self._has_work.set()
        try:
            return await future
        except asyncio.CancelledError:
            # A task can be cancelled between the moment at which its future has a result and the
            # moment at which the task goes on.
            if future.done() and not future.cancelled() and future.exception() is None:
                self._requests.spare.extendleft(reversed(future.result()))
                self._has_work.set()
            raise

    async def settle(self, message: ServiceBusReceivedMessage, verb: Verb) -> datetime | None:
        """What the verb answers: for a renewal, until when the message is held."""
        self._check_owned()
        settlement = _Settlement(message, verb, asyncio.get_running_loop().create_future())
        self._settlements.append(settlement)
        self._has_work.set()
        self._interrupt_in_time()
        return await settlement.future

    async def close(self) -> None:
        self._is_closing = True
        self._link.stop()
        self._has_work.set()
        self._interrupt()
        await self._owner

    async def _run(self) -> None:
        try:
            while not self._is_closing:
                await self._work()
            await self._give_back([*self._held, *self._spare_messages()])
        finally:
            self._fail_all(BusUnavailable("the bus is closed"))
            await self._link.close()

    async def _work(self) -> None:
        self._has_work.clear()
        for _ in range(len(self._settlements)):
            if self._settlements:
                await self._settle(self._settlements.popleft())
        if self._requests.wanted():
            await self._look()
        elif not self._settlements:
            await self._rest()

    def _check_owned(self) -> None:
        if self._is_closing or self._owner.done():
            raise BusUnavailable("the bus is closed")

    async def _look(self) -> None:
        looked = self._requests.look()
        try:
            self._quiet.check()
            if not self._requests.spare:
                await self._link.use(self._fetch)
        except BusUnavailable as error:
            self._requests.fail(error)
        except Failure as failure:
            self._fail(failure)
        for delivery in self._requests.hand_out():
            self._hold(delivery)
        self._requests.end(looked)

    async def _fetch(self, receiver: Receiver) -> None:
        """What has come is ours whatever happens next. A look that waits is given up for a
        settlement: until the first message comes it has nothing to lose."""
        wanted, ready = self._requests.wanted(), arrived(receiver)
        shortest = self._settings.shortest_wait
        if ready:
            count = min(wanted, ready)
            self._arrive(await receiver.receive_messages(count, shortest.total_seconds()))
            if self._requests.spare:
                return
        longest = max(min(self._settings.longest_look, self._requests.left()), shortest)
        seconds = longest.total_seconds()
        read_patiently(receiver, seconds)
        self._looking = asyncio.ensure_future(receiver.receive_messages(wanted, seconds))
        try:
            await asyncio.wait({self._looking})
        finally:
            looking, self._looking = self._looking, None
            looking.cancel()
            if self._interrupting is not None:
                self._interrupting.cancel()
                self._interrupting = None
        if not looking.cancelled():
            self._arrive(looking.result())

    def _interrupt_in_time(self) -> None:
        """Most looks end by themselves before."""
        if self._looking is not None and self._interrupting is None:
            seconds = self._settings.settle_within.total_seconds()
            self._interrupting = asyncio.get_running_loop().call_later(seconds, self._interrupt)

    def _interrupt(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    def _arrive(self, messages: list[ServiceBusReceivedMessage]) -> None:
        """What has lain in the client for longer than its lock is not ours any more."""
        now = self._clock()
        for message in messages:
            delivery = delivery_of(message, self._topic, self._subscription)
            if delivery.locked_until > now:
                self._requests.spare.append(delivery)

    def _hold(self, delivery: Delivery) -> None:
        assert isinstance(delivery.token, ServiceBusReceivedMessage)
        self._held[delivery.token] = delivery.locked_until
        if len(self._held) >= self._prune_at:
            now = self._clock()
            self._held = {one: until for one, until in self._held.items() if until > now}
            self._prune_at = max(2 * len(self._held), _FEW)

    async def _settle(self, settlement: _Settlement) -> None:
        message, verb, future = settlement
        if future.done():
            return
        try:
            until = await self._link.use(lambda receiver: verb(receiver, message))
        except Failure as failure:
            if failure.meaning is Meaning.LOST:
                self._held.pop(message, None)
            _fail(future, self._error(failure))
            self._notice(failure)
            return
        if until is None:
            self._held.pop(message, None)
        else:
            self._held[message] = until
        if not future.done():
            future.set_result(until)

    async def _rest(self) -> None:
        """Nobody wants anything. While the connection lasts the bus may still send messages over
        it, which nobody waits for: after a while these are given back, and later it is ended."""
        if not self._link.is_open:
            await until_set(self._has_work, _FOREVER)
            return
        linger = self._settings.linger
        first = min(self._settings.withdraw, linger)
        await until_set(self._has_work, first)
        if not self._has_work.is_set():
            await self._withdraw()
            await until_set(self._has_work, linger - first)
        if not self._has_work.is_set():
            self._link.hang_up()

    async def _withdraw(self) -> None:
        with suppress(Failure):
            await self._link.use(self._collect)
        if not self._requests.wanted():
            await self._give_back(self._spare_messages())

    async def _collect(self, receiver: Receiver) -> None:
        await withdraw(receiver)
        if ready := arrived(receiver):
            shortest = self._settings.shortest_wait.total_seconds()
            self._arrive(await receiver.receive_messages(ready, shortest))

    def _spare_messages(self) -> list[ServiceBusReceivedMessage]:
        spare = [delivery.token for delivery in self._requests.spare]
        self._requests.spare.clear()
        return [token for token in spare if isinstance(token, ServiceBusReceivedMessage)]

    async def _give_back(self, messages: list[ServiceBusReceivedMessage]) -> None:
        """Over the connection there is: a new one is not worth it, for locks run out."""
        for message in messages:
            if not self._link.is_open:
                return
            with suppress(Failure):
                await self._link.use(methodcaller("abandon_message", message))

    def _fail(self, failure: Failure) -> None:
        """All who wait for messages are told."""
        self._notice(failure)
        self._requests.fail(self._error(failure))

    def _notice(self, failure: Failure) -> None:
        """What concerns all who want something from here."""
        if failure.meaning is Meaning.BUSY:
            self._quiet.begin()
        elif failure.meaning is Meaning.AWAY and not self._link.is_open:
            self._fail_all(self._error(failure))

    def _fail_all(self, error: BusError) -> None:
        self._requests.fail(error)
        while self._settlements:
            _fail(self._settlements.popleft().future, error)

    def _error(self, failure: Failure) -> BusError:
        return failure.as_error(f"subscription {self._subscription} of {self._topic}", Misused)


def _fail(future: asyncio.Future[datetime | None], error: BusError) -> None:
    if not future.done():
        future.set_exception(type(error)(*error.args))
