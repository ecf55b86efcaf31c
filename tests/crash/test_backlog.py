"""Three processes that dispatch, killed at random, before a service that is slow.

All jobs are submitted at once: one tenant has most of them. The window must hold while dispatchers
die and come back, the tenants must take turns, and no job may be lost or lose its tries to the
queue.
"""

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sys import executable

import pydantic_core
import pytest

from lucius_bus.memory import MemoryBus
from lucius_bus.port import BusMessage, Delivery, Unpublished
from lucius_contract.routing import LANES, directive_topic, reply_topic
from lucius_contract.states import JobState
from lucius_orchestrator.ports.ledger import Ledger
from tests.crash.goal import Goal
from tests.crash.jobs import BACKLOG, SERVICES, topology
from tests.crash.killer import Killer
from tests.crash.process import open_ledger
from tests.crash.service import ack_of, result_of
from tests.crash.shared_bus import served
from tests.crash.store import store
from tests.crash.verdict import all_ended, check_history, history_of
from tests.runner.deadlines import seconds, time_limit
from tests.runner.tiers import by_tier

JOBS = by_tier(150, 400, 1000)
SLOTS, WORK = 2, 0.1
DISPATCHERS, KILLS = 3, by_tier(5, 10)
KILL_AFTER = (0.3, 1.5)
MOST_ON_THE_BUS = 50
"""What a quarter of the ACK timeout takes is 15; after a kill twice or three times as many."""
DEADLINE = seconds(240)

pytestmark = time_limit(280)


class CountingBus(MemoryBus):
    """Counts directives that were published and not taken."""

    on_the_bus = 0
    most = 0

    async def publish(self, topic: str, messages: Sequence[BusMessage]) -> list[Unpublished]:
        unpublished = await super().publish(topic, messages)
        if "replies" not in topic:
            self.on_the_bus += len(messages) - len(unpublished)
            self.most = max(self.most, self.on_the_bus)
        return unpublished


class SlowService:
    """One instance with a few slots, for all services; it states them."""

    def __init__(self, bus: CountingBus) -> None:
        self._bus = bus
        self._slots = asyncio.Semaphore(SLOTS)
        self._came = asyncio.Event()
        self.runs = Counter[tuple[str, str, int]]()
        self.order: list[str] = []

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                for service in SERVICES:
                    for lane in range(LANES):
                        await self._look(tasks, service, lane)
                await asyncio.sleep(WORK / 20)

    async def _look(self, tasks: asyncio.TaskGroup, service: str, lane: int) -> None:
        if self._slots.locked():
            return
        topic = directive_topic(lane)
        for delivery in await self._bus.receive(topic, service, 1, timedelta(0)):
            self._bus.on_the_bus -= 1
            await self._slots.acquire()
            tasks.create_task(self._work(lane, delivery))

    async def _work(self, lane: int, delivery: Delivery) -> None:
        directive = pydantic_core.from_json(delivery.message.body)
        await self._bus.complete(delivery)
        self.runs[directive["jobId"], directive["stepId"], directive["attempt_no"]] += 1
        self.order.append(directive["tenant_id"])
        capacity = {"instance_id": "slow", "slots": SLOTS}
        await self._bus.publish(reply_topic(lane), [ack_of(directive, capacity=capacity)])
        await asyncio.sleep(WORK)
        await self._bus.publish(reply_topic(lane), [result_of(directive)])
        self._slots.release()


@pytest.mark.parametrize("backend", ["sqlite", pytest.param("postgres", marks=pytest.mark.check)])
async def test_dispatchers_that_are_killed_keep_to_the_window_and_to_turns(
    backend: str, tmp_path: Path
) -> None:
    seed, goal = random.randrange(2**32), Goal(str(tmp_path / "goal"))
    print(f"seed {seed}")
    bus = CountingBus(lambda: datetime.now(UTC))
    bus.apply(topology())
    service = SlowService(bus)
    with tempfile.TemporaryDirectory(prefix="bus") as short:
        socket = f"{short}/bus"
        async with store(backend, tmp_path) as address, served(bus, socket):
            place = (backend, address, socket, *goal, BACKLOG)
            command = (executable, "-m", "tests.crash.process", *place)
            killer = Killer(random.Random(seed), command, KILLS, KILL_AFTER)
            ledger = await open_ledger(backend, address)
            background = [asyncio.create_task(service.run())]
            background += [asyncio.create_task(killer.keep_one()) for _ in range(DISPATCHERS)]
            try:
                async with asyncio.timeout(DEADLINE):
                    goal.raise_to(JOBS)
                    ending = asyncio.create_task(all_ended(ledger, JOBS, JOBS, BACKLOG))
                    await asyncio.wait({ending, *background}, return_when=asyncio.FIRST_COMPLETED)
                    assert ending.done()
                await check(ledger, service, bus)
            finally:
                for task in (ending, *background):
                    task.cancel()
                await asyncio.gather(ending, *background, return_exceptions=True)
                await ledger.close()


async def check(ledger: Ledger, service: SlowService, bus: CountingBus) -> None:
    attempts = Counter[int]()
    for number in range(JOBS):
        aggregate, events = await history_of(ledger, number, BACKLOG)
        assert aggregate.job.state is JobState.SUCCEEDED
        check_history(aggregate, events)
        attempts[max(step.attempt_no for step in aggregate.steps)] += 1
    print(f"attempts {attempts}, most on the bus {bus.most}")
    assert bus.most <= MOST_ON_THE_BUS
    assert attempts[1] > 0.8 * JOBS
    small = [place for place, tenant in enumerate(service.order) if tenant != "tenant-0"]
    assert small[len(small) * 9 // 10] < 0.75 * len(service.order)
