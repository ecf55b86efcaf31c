"""Services with few slots and slow work, in the time of a plane."""

import heapq
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from lucius_bus.port import Delivery
from lucius_contract.audit import Verdict
from lucius_contract.messages import Ack, Capacity, Directive, parse_directive
from lucius_contract.routing import LANES, directive_topic
from tests.engine.plane import AT_ONCE, Plane, ack, result

Work = Callable[[], Awaitable[None]]


class SlowService:
    """An instance that takes from the bus what it has slots for. `frozen`: it keeps what it has,
    and says nothing."""

    def __init__(self, town: "Town", name: str, slots: int, seconds: float) -> None:
        self.name = name
        self.slots = slots
        self.seconds = seconds
        self.is_up = True
        self.is_frozen = False
        self.states_capacity = True
        self.runs = Counter[tuple[str, str]]()
        """How often each step of a job was begun."""
        self.held: list[Delivery] = []
        self._lanes = itertools.cycle(range(LANES))
        self._town = town
        self._instance = f"{name}-{len(town.services)}"

    async def look(self) -> None:
        """Take what comes, lane after lane, as long as a slot is free."""
        if not self.is_up:
            return
        plane = self._town.plane
        for _ in range(LANES):
            if len(self.held) == self.slots:
                return
            topic = directive_topic(next(self._lanes))
            for delivery in await plane.bus.receive(topic, self.name, 1, AT_ONCE):
                self.held.append(delivery)
                if not self.is_frozen:
                    await self._begin(delivery)

    async def _begin(self, delivery: Delivery) -> None:
        directive = parse_directive(delivery.message.body)
        answer = await self._town.plane.reply(self._ack(directive))
        await self._town.plane.bus.complete(delivery)
        if answer.verdict is Verdict.STALE_ATTEMPT:
            self.held.remove(delivery)
            return
        self.runs[directive.job_id, directive.step_id] += 1
        self._town.later(self.seconds, lambda: self._end(directive, delivery))

    def _ack(self, directive: Directive) -> Ack:
        said = ack(directive)
        if self.states_capacity:
            said = said.model_copy(
                update={"capacity": Capacity(instance_id=self._instance, slots=self.slots)}
            )
        return said

    async def _end(self, directive: Directive, delivery: Delivery) -> None:
        await self._town.plane.reply(result(directive))
        self.held.remove(delivery)


class Town:
    """A plane with its services; time goes from one event to the next."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.services: list[SlowService] = []
        self.requests = itertools.count()
        self._numbers = itertools.count()
        self._agenda: list[tuple[datetime, int, Work]] = []
        self.later(1, self._tick)

    def service(self, name: str = "ocr", slots: int = 1, seconds: float = 5.0) -> SlowService:
        service = SlowService(self, name, slots, seconds)
        self.services.append(service)
        return service

    def later(self, seconds: float, work: Work) -> None:
        due = self.plane.clock.now + timedelta(seconds=seconds)
        heapq.heappush(self._agenda, (due, next(self._numbers), work))

    async def until(self, done: Callable[[], Awaitable[bool]], hours: float = 24) -> timedelta:
        """Let time pass until it is done; return how long that took."""
        began = self.plane.clock.now
        await self._settle()
        while not await done():
            due, _, work = heapq.heappop(self._agenda)
            assert due - began < timedelta(hours=hours), self.plane.traffic.services()
            self.plane.later(due - self.plane.clock.now)
            await work()
            await self._settle()
        return self.plane.clock.now - began

    async def all_ended(self) -> bool:
        return (await self.plane.ledger.in_flight()).total == 0

    async def passes(self, duration: timedelta) -> None:
        end = self.plane.clock.now + duration

        async def is_over() -> bool:
            return self.plane.clock.now >= end

        await self.until(is_over)

    async def _settle(self) -> None:
        """Everything that can happen now: directives go out, free slots take them."""
        while await self.plane.dispatch():
            for service in self.services:
                await service.look()
        for service in self.services:
            await service.look()
        if await self.plane.dispatch():
            await self._settle()

    async def _tick(self) -> None:
        self.plane.traffic.tick()
        await self.plane.sweep_all()
        self.later(1, self._tick)
