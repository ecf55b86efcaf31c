"""What a directive costs in CPU time where the bus costs nothing much: a service in this process,
on a bus in memory, beside a loop that receives, publishes two messages and completes.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from benchmarks.flow_service import CONCURRENCY
from benchmarks.noop_service import noop_service
from benchmarks.sdk_bus import SERVICE, directives
from lucius_bus.memory import MemoryBus
from lucius_bus.port import BusMessage, Delivery
from lucius_bus.topology import lane_topology
from lucius_contract.routing import LANES, directive_topic, reply_topic
from lucius_sdk.idempotency_store import open_store
from lucius_sdk.replies.bus import BusReplies
from lucius_sdk.runtime.runtime import Limits, ServiceRuntime
from lucius_sdk.workspace_io import open_storages

_DEADLINE = 120


class CountingBus(MemoryBus):
    """Notices when nothing is left to be completed."""

    def __init__(self) -> None:
        super().__init__(partial(datetime.now, UTC))
        self.apply(lane_topology([SERVICE]))
        self.is_drained = asyncio.Event()
        self._left = 0

    async def load(self, workspace: Path, first: int, count: int) -> None:
        self._left = count
        self.is_drained.clear()
        for lane, message in directives(workspace, first, count, datetime.now(UTC)):
            await self.publish(directive_topic(lane), [message])

    async def complete(self, delivery: Delivery) -> None:
        await super().complete(delivery)
        self._left -= 1
        if self._left == 0:
            self.is_drained.set()


Serving = Callable[[CountingBus, Path], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def runtime(bus: CountingBus, folder: Path, store: str) -> AsyncIterator[None]:
    """`store` is the address of the dedup store."""
    dedup = open_store(store)
    storages = open_storages(str(folder))
    replies = BusReplies(bus)
    limits = Limits(concurrency=CONCURRENCY)
    running = ServiceRuntime(noop_service(SERVICE), SERVICE, bus, dedup, replies, storages, limits)
    await running.start()
    try:
        yield
    finally:
        await running.stop(5)
        await replies.close()
        await dedup.close()
        storages.close()


@asynccontextmanager
async def bare(bus: CountingBus, _folder: Path) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(_serve(bus, lane)) for lane in range(LANES)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(bus: CountingBus, lane: int) -> None:
    while True:
        received = await bus.receive(
            directive_topic(lane), SERVICE, CONCURRENCY, timedelta(minutes=5)
        )
        kinds = ("ACK", "RESULT")
        replies = [BusMessage(kind, one.message.body) for one in received for kind in kinds]
        await bus.publish(reply_topic(lane), replies)
        for delivery in received:
            await bus.complete(delivery)


def cpu_us(serving: Serving, count: int) -> float:
    """Microseconds for each of that many directives, of all threads of this process."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_cpu_us(serving, Path(folder), count))


async def _cpu_us(serving: Serving, folder: Path, count: int) -> float:
    bus = CountingBus()
    async with serving(bus, folder), asyncio.timeout(_DEADLINE):
        await _drained(bus, folder, 0, count // 4)
        return await _drained(bus, folder, count, count) / count * 1e6


async def _drained(bus: CountingBus, folder: Path, first: int, count: int) -> float:
    """Loading is left out: it does not let others run."""
    await bus.load(folder, first, count)
    before = time.process_time()
    await bus.is_drained.wait()
    return time.process_time() - before


def with_sqlite(bus: CountingBus, folder: Path) -> AbstractAsyncContextManager[None]:
    return runtime(bus, folder, f"sqlite://{folder}/dedup.db")


def with_memory(bus: CountingBus, folder: Path) -> AbstractAsyncContextManager[None]:
    return runtime(bus, folder, "memory:")


if __name__ == "__main__":
    for each in (bare, with_memory, with_sqlite):
        print(f"{each.__name__}: {cpu_us(each, 2000):.0f} us")
