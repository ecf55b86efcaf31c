"""Keeping messages locked while somebody works on them.

A step can have several messages: the one it came with, and every duplicate or redelivery that came
meanwhile. All of them are kept until the step is settled, and then settled alike.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from datetime import datetime

from lucius_bus.port import Bus, BusError, Delivery, LockLost
from lucius_sdk.clock import Clock
from lucius_sdk.metrics import StepMetrics

_log = logging.getLogger("lucius_sdk")

_SHORTEST_PAUSE = 0.1
_TRIES = 4  # a renewal that failed is tried again after a quarter of what is left


class MessageLocks:
    """`on_renewed` is told until when the longest lock lasts, after each renewal."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        metrics: StepMetrics,
        on_renewed: Callable[[datetime], Awaitable[None]],
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._metrics = metrics
        self._on_renewed = on_renewed
        self._held: list[Delivery] = []
        self._due = math.inf
        self._renewal: asyncio.Task[None] | None = None
        self._is_closed = False

    def add(self, delivery: Delivery) -> None:
        self._held.append(delivery)
        self._rest(2)

    def visit(self, now: float) -> None:
        """Renew what is due."""
        if now >= self._due:
            self._due = math.inf
            self._renewal = asyncio.create_task(self._renew())

    @property
    def until(self) -> datetime:
        """Until when the longest lock lasts; now, if nothing is held."""
        return max((one.locked_until for one in self._held), default=self._clock.now())

    async def complete(self) -> None:
        await self._settle(self._bus.complete)

    async def abandon(self) -> None:
        await self._settle(self._bus.abandon)

    async def dead_letter(self, reason: str, description: str) -> None:
        await self._settle(lambda one: self._bus.dead_letter(one, reason, description))

    async def close(self) -> None:
        """Renew nothing any more."""
        self._is_closed = True
        self._due = math.inf
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)

    async def _settle(self, verb: Callable[[Delivery], Awaitable[None]]) -> None:
        """Also what is added meanwhile. What cannot be settled comes again, and is then found to be
        done with."""
        await self.close()
        while self._held:
            delivery = self._held.pop(0)
            try:
                await verb(delivery)
            except BusError as error:
                extra = {"message_id": delivery.message.message_id, "error": str(error)}
                _log.info("message.unsettled", extra=extra)

    def _rest(self, parts: int) -> None:
        """Until a part of the time that the shortest lock has left is over."""
        if self._is_closed or not self._held:
            self._due = math.inf
            return
        left = min(one.locked_until for one in self._held) - self._clock.now()
        pause = max(left.total_seconds() / parts, _SHORTEST_PAUSE)
        self._due = self._clock.monotonic() + pause

    async def _renew(self) -> None:
        renewed = [await self._renew_one(delivery) for delivery in list(self._held)]
        if self._held:
            await self._on_renewed(self.until)
        self._rest(2 if all(renewed) else _TRIES)

    async def _renew_one(self, delivery: Delivery) -> bool:
        """A lock that is lost leaves the list: the message comes again, and joins if we have it."""
        place = self._held.index(delivery)
        try:
            self._held[place] = await self._bus.renew(delivery)
        except BusError as error:
            if not isinstance(error, LockLost) and self._clock.now() < delivery.locked_until:
                self._metrics.renewal("failed")
                return False
            self._metrics.renewal("lost")
            self._held.remove(delivery)
            return True
        self._metrics.renewal("renewed")
        return True
