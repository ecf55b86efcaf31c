"""One connection of the client: made when it is needed, and made anew when it broke."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from lucius_bus.servicebus.client import Handler, Wire, wire_of
from lucius_bus.servicebus.errors import (
    Failure,
    Meaning,
    failure_of,
    verdict_of,
)
from lucius_bus.servicebus.pacing import Backoff
from lucius_bus.servicebus.settings import ServiceBusSettings
from lucius_bus.waiting import in_time, until_set

H = TypeVar("H", bound=Handler)
T = TypeVar("T")
_GLANCE = 0.01  # seconds; opening takes the client some tenths of a second


class Link(Generic[H]):
    """Its owner makes one call at a time. A call that fails is a `Failure`, whatever the client
    raised."""

    def __init__(
        self, make: Callable[[], H], settings: ServiceBusSettings, chance: Callable[[], float]
    ) -> None:
        self._make = make
        self._limit = settings.attempt_timeout.total_seconds()
        self._backoff = Backoff(settings.first_pause, settings.longest_pause, chance)
        self._handler: H | None = None
        self._wire: Wire | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    @property
    def is_open(self) -> bool:
        return self._handler is not None

    async def use(self, call: Callable[[H], Awaitable[T]]) -> T:
        """A connection that was open may have ended since, unnoticed: then once more on a new
        one. Not when it took its time to fail: somebody waits."""
        was_open = self.is_open
        try:
            return await self._attempt(call)
        except Failure as failure:
            if not was_open or self.is_open or not failure.is_sudden:
                raise
        return await self._attempt(call)

    def stop(self) -> None:
        """No new connection is made from now on."""
        self._closing.set()

    def hang_up(self) -> None:
        """What the client has received and not handed over is given back. Closing takes it up to a
        second, for which nobody has to wait."""
        handler, self._handler = self._handler, None
        wire, self._wire = self._wire, None
        if handler is not None:
            leaving = asyncio.create_task(self._leave(handler, wire))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        self.stop()
        self.hang_up()
        if self._leaving:
            await asyncio.wait(self._leaving)

    async def _attempt(self, call: Callable[[H], Awaitable[T]]) -> T:
        handler = await self._open()
        try:
            return await in_time(call(handler), self._limit)
        except Failure:
            raise
        except Exception as error:
            if verdict_of(error).is_broken:
                self.hang_up()
            raise failure_of(error) from error

    async def _open(self) -> H:
        if self._handler is not None:
            return self._handler
        loop = asyncio.get_running_loop()
        await until_set(self._closing, self._backoff.left(loop.time()))
        if self._closing.is_set():
            raise Failure(Meaning.AWAY, "the bus is closed")
        self._handler = self._make()
        try:
            async with asyncio.timeout(self._limit):
                await self._enter(self._handler)
        except BaseException as error:
            self.hang_up()
            if not isinstance(error, Exception):
                raise
            failure = failure_of(error)
            if failure.meaning is Meaning.AWAY:
                self._backoff.fail(loop.time())
            raise failure from error
        self._backoff.succeed()
        return self._handler

    async def _enter(self, handler: H) -> None:
        """Look at it now and then while it opens: should it fail, its socket is out of reach."""
        opening = asyncio.ensure_future(handler.__aenter__())
        try:
            while self._wire is None and not opening.done():
                await asyncio.wait({opening}, timeout=_GLANCE)
                self._wire = wire_of(handler)
            await opening
        finally:
            if not opening.done():
                opening.cancel()
                await asyncio.gather(opening, return_exceptions=True)

    async def _leave(self, handler: H, wire: Wire | None) -> None:
        with suppress(Exception):
            async with asyncio.timeout(self._limit):
                await handler.close()
        if wire is not None and (closing := wire.close()) is not None:
            await closing
