"""Taking directives from the lanes of the bus, never more than there are free slots."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from datetime import timedelta

from lucius_bus.port import Bus, BusError, BusUnavailable, Delivery
from lucius_contract.routing import directive_topic
from lucius_sdk.clock import Clock, Timer
from lucius_sdk.servicebus_consumer.schedule import LaneSchedule, Look

_log = logging.getLogger("lucius_sdk")

_GATHERING = 0.005  # seconds


class ServiceBusConsumer:
    """One subscription on each lane. Whoever gets a delivery has its slot with it, and gives the
    slot back with `free`."""

    def __init__(
        self,
        bus: Bus,
        subscription: str,
        lanes: Iterable[int],
        slots: int,
        accept: Callable[[int, Delivery], None],
        clock: Clock,
    ) -> None:
        self._bus = bus
        self._subscription = subscription
        self._schedule = LaneSchedule(lanes, slots)
        self._accept = accept
        self._clock = clock
        self._looks: set[asyncio.Task[None]] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._failures: dict[int, BusError] = {}
        self._resting: Timer | None = None
        self._gathering: asyncio.TimerHandle | None = None
        self._is_planned = False
        self._is_stopped = True

    def start(self) -> None:
        self._is_stopped = False
        self._look()

    async def stop(self) -> None:
        """Ask for nothing more. What comes while the bus is asked is not taken: it is given back
        when the bus is closed."""
        self._is_stopped = True
        if self._resting is not None:
            self._resting.cancel()
        for look in self._looks:
            look.cancel()
        await asyncio.gather(*self._looks, return_exceptions=True)

    def free(self, seconds: float = 0.0) -> None:
        """Give a slot back; `seconds` is how long a handler had it."""
        self._schedule.freed(seconds)
        self._look_soon()

    async def take(self) -> None:
        """Wait for a slot, before any directive that has not come yet."""
        if self._schedule.take():
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.free()
            raise

    @property
    def failing_lanes(self) -> list[int]:
        return sorted(self._failures)

    async def check(self) -> None:
        """Whether all lanes can be looked at. `BusError`."""
        await self._bus.check()
        for lane, error in self._failures.items():
            raise type(error)(f"lane {lane}: {error}")

    def _look_soon(self) -> None:
        """Once for all slots that are freed about now: directives in batches cost less."""
        self._serve()
        if self._schedule.is_worth_a_look:
            self._gathering_ends()
        elif self._gathering is None:
            loop = asyncio.get_running_loop()
            self._gathering = loop.call_later(_GATHERING, self._gathering_ends)

    def _gathering_ends(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        if not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._is_planned = False
        self._serve()
        if self._is_stopped:
            return
        for look in self._schedule.next_looks(self._clock.monotonic()):
            task = asyncio.create_task(self._receive(look))
            self._looks.add(task)
            task.add_done_callback(self._looks.discard)
        self._rest()

    def _serve(self) -> None:
        """Those who wait come before those who have not come yet."""
        while self._waiting and self._schedule.free:
            waiter = self._waiting.popleft()
            if not waiter.done() and self._schedule.take():
                waiter.set_result(None)

    def _rest(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
        now = self._clock.monotonic()
        due = self._schedule.next_due(now)
        if due is not None:
            self._resting = self._clock.call_later(due - now, self._look)

    async def _receive(self, look: Look) -> None:
        wait = timedelta(seconds=look.wait)
        topic = directive_topic(look.lane)
        try:
            deliveries = await self._bus.receive(topic, self._subscription, look.limit, wait)
        except BusError as error:
            self._fail(look, error)
        else:
            self._failures.pop(look.lane, None)
            self._schedule.looked(look, len(deliveries))
            for delivery in deliveries:
                self._accept(look.lane, delivery)
        self._look_soon()

    def _fail(self, look: Look, error: BusError) -> None:
        """Told once for each lane and kind of trouble, not at each look."""
        self._schedule.failed(look, self._clock.monotonic())
        known = self._failures.get(look.lane)
        if type(known) is not type(error):
            level = logging.WARNING if isinstance(error, BusUnavailable) else logging.ERROR
            extra = {"lane": look.lane, "error": str(error)}
            _log.log(level, "lane.unreachable", extra=extra)
        self._failures[look.lane] = error
