"""The receiving end of the bus: a receiver for each lane."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from typing import Any, NamedTuple

from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import ServiceBusError

LANES = 16
_LOOK = 0.05
_GLANCE = 0.02
_REFUSAL = 0.5
_PAUSE = 0.3
Verb = Callable[[ServiceBusReceiver], Awaitable[Any]]


class BusAway(Exception):
    """What was asked of a lane was not done."""


class Room:
    """For so many messages. Those who want one get it in the order in which they asked first."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._line: list[Hashable] = []

    def take(self, who: Hashable) -> bool:
        if who not in self._line:
            self._line.append(who)
        if self._line.index(who) >= self._free:
            return False
        self._line.remove(who)
        self._free -= 1
        return True

    def leave(self, who: Hashable) -> None:
        """It does not want one any more."""
        if who in self._line:
            self._line.remove(who)

    def free(self) -> None:
        self._free += 1


class _Asked(NamedTuple):
    verb: Verb
    done: asyncio.Future[None]


class Delivery:
    """A message that is locked for the service. `lock_seconds` is how long, unless renewed."""

    def __init__(self, lane: "Lane", message: ServiceBusReceivedMessage, room: Room) -> None:
        self._lane = lane
        self._room: Room | None = room
        self._message = message
        self.lane = lane.number
        self.body = b"".join(message.body)
        ends = message.locked_until_utc
        self.lock_seconds = max(ends.timestamp() - time.time(), 1.0) if ends else 30.0

    def make_room(self) -> None:
        """No slot is kept for it any more, so another message may be fetched. Idempotent."""
        room, self._room = self._room, None
        if room is not None:
            room.free()

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
    look for messages, which is short. Nothing is fetched for which there is no room."""

    def __init__(
        self,
        number: int,
        client: ServiceBusClient,
        service: str,
        take: Callable[[Delivery], None],
        room: Room,
    ) -> None:
        self.number = number
        self.room = room
        self.is_up = False
        self._client = client
        self._service = service
        self._take = take
        self._asked: deque[_Asked] = deque()
        self._receiver: ServiceBusReceiver | None = None
        self._is_receiving = True
        self._rests = asyncio.Event()
        self._is_ending = False
        self._refused_at = 0.0

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
                prefetch_count=0,
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
            self.room.leave(self)
            self._rests.set()
            await asyncio.sleep(_LOOK)
        elif not self.room.take(self):
            await self.refuse(receiver)
            await asyncio.sleep(_GLANCE)
        elif not await self._fetch(receiver):
            self.room.free()
            await asyncio.sleep(0)

    async def _fetch(self, receiver: ServiceBusReceiver) -> bool:
        found: list[ServiceBusReceivedMessage] = []
        try:
            found = await receiver.receive_messages(max_message_count=1, max_wait_time=_LOOK)
        except BaseException:
            self.room.free()
            raise
        for message in found:
            self._take(Delivery(self, message, self.room))
        return bool(found)

    async def refuse(self, receiver: ServiceBusReceiver) -> None:
        """The bus may still send what an earlier look has asked for. The client gives that back
        when it reads it outside of a look, as it does when it peeks."""
        if time.monotonic() > self._refused_at + _REFUSAL:
            self._refused_at = time.monotonic()
            await receiver.peek_messages(max_message_count=1)

    async def _break_off(self, error: Exception) -> None:
        while self._asked:
            _fail(self._asked.popleft().done, error)
        self.room.leave(self)
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
