"""The receiving end of the bus: a receiver for each lane."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import ServiceBusError

LANES = 16
_LOOK = 0.1
_PAUSE = 0.3
_AHEAD = 4
Verb = Callable[[ServiceBusReceiver], Awaitable[Any]]


class BusAway(Exception):
    """What was asked of a lane was not done."""


class _Asked(NamedTuple):
    verb: Verb
    done: asyncio.Future[None]


class Delivery:
    """A message that is locked for the service. `lock_seconds` is how long, unless renewed."""

    def __init__(self, lane: "Lane", message: ServiceBusReceivedMessage) -> None:
        self._lane = lane
        self._message = message
        self.lane = lane.number
        self.body = b"".join(message.body)
        ends = message.locked_until_utc
        self.lock_seconds = max(ends.timestamp() - time.time(), 1.0) if ends else 30.0

    async def complete(self) -> None:
        await self._lane.ask(lambda receiver: receiver.complete_message(self._message))

    async def abandon(self) -> None:
        await self._lane.ask(lambda receiver: receiver.abandon_message(self._message))

    async def dead_letter(self, reason: str | None, description: str | None) -> None:
        await self._lane.ask(
            lambda receiver: receiver.dead_letter_message(
                self._message, reason=reason, error_description=description
            )
        )

    async def renew(self) -> None:
        await self._lane.ask(lambda receiver: receiver.renew_message_lock(self._message))


class Lane:
    """The client does one thing at a time well, so settlements and renewals wait for the end of a
    look for messages, which is short."""

    def __init__(
        self,
        number: int,
        client: ServiceBusClient,
        service: str,
        take: Callable[[Delivery], None],
    ) -> None:
        self.number = number
        self.is_up = False
        self._client = client
        self._service = service
        self._take = take
        self._asked: deque[_Asked] = deque()
        self._receiver: ServiceBusReceiver | None = None
        self._is_receiving = True
        self._rests = asyncio.Event()
        self._is_ending = False

    async def ask(self, verb: Verb) -> None:
        """`BusAway`."""
        if self._is_ending:
            raise BusAway("the lane has ended")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked.append(_Asked(verb, done))
        await done

    async def run(self) -> None:
        """Until its end. A connection that broke is made anew."""
        while not self._is_ending:
            try:
                receiver = await self._open()
                await self._do_what_is_asked(receiver)
                await self._look(receiver)
            except (ServiceBusError, OSError, TimeoutError) as error:
                await self._break_off(error)
        await self._close()

    async def rest(self) -> None:
        """Returns when nothing more is taken; what was taken can still be settled."""
        self._is_receiving = False
        await self._rests.wait()

    def end(self) -> None:
        self._is_ending = True
        self._rests.set()

    async def _open(self) -> ServiceBusReceiver:
        if self._receiver is None:
            receiver = self._client.get_subscription_receiver(
                f"global-bus-p{self.number}",
                self._service,
                prefetch_count=_AHEAD,
                socket_timeout=_LOOK,
            )
            self._receiver = await receiver.__aenter__()
        self.is_up = True
        return self._receiver

    async def _do_what_is_asked(self, receiver: ServiceBusReceiver) -> None:
        while self._asked:
            verb, done = self._asked.popleft()
            try:
                await verb(receiver)
            except (ServiceBusError, ValueError) as error:
                _fail(done, error)
            else:
                if not done.done():
                    done.set_result(None)

    async def _look(self, receiver: ServiceBusReceiver) -> None:
        if not self._is_receiving:
            self._rests.set()
            await asyncio.sleep(_LOOK / 2)
            return
        for message in await receiver.receive_messages(max_message_count=1, max_wait_time=_LOOK):
            self._take(Delivery(self, message))

    async def _break_off(self, error: Exception) -> None:
        while self._asked:
            _fail(self._asked.popleft().done, error)
        await self._close()
        if not self._is_receiving:
            self._rests.set()
        await asyncio.sleep(_PAUSE)

    async def _close(self) -> None:
        self.is_up = False
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            with suppress(ServiceBusError, OSError, TimeoutError):
                await receiver.close()


def _fail(done: asyncio.Future[None], error: Exception) -> None:
    if not done.done():
        done.set_exception(BusAway(str(error)))
