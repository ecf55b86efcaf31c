"""A service on the memory bus, whose time is moved by hand."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lucius_bus.memory import MemoryBus
from lucius_bus.topology import lane_topology
from lucius_contract.messages import Directive, Reply, Result, parse_reply
from lucius_contract.routing import (
    LANES,
    REPLY_SUBSCRIPTION,
    directive_topic,
    reply_topic,
)
from lucius_sdk import Service, StepContext
from lucius_sdk.clock import Clock
from lucius_sdk.idempotency_store import MemoryStore
from lucius_sdk.metrics import StepMetrics
from lucius_sdk.replies.bus import BusReplies
from lucius_sdk.replies.routing import Replies
from lucius_sdk.runtime.runtime import Limits, ServiceRuntime
from lucius_sdk.testing import FakeClock, RecordedReplies
from lucius_sdk.testing.directives import directive_message, make_directive
from lucius_sdk.workspace_io import LocalStorage, Storages
from tests.runner.deadlines import DEADLINE

NAME = "test"
_AT_ONCE = timedelta(0)
CALLBACKS = {
    "callback_urls": {
        "ack": "http://127.0.0.1:9/ack",
        "result": "http://127.0.0.1:9/result",
        "heartbeat": "http://127.0.0.1:9/heartbeat",
    },
    "callback_token": "secret-token",
}


class Payload(BaseModel):
    pages: int = 1


class Workshop:
    """What the team's handler does: it can be held, and it counts."""

    def __init__(self) -> None:
        self.runs: Counter[tuple[str, int]] = Counter()
        self.open = threading.Event()
        self.open.set()
        self.now = 0
        self.most = 0
        self.act: Callable[[StepContext[Payload]], None] = _write
        self._lock = threading.Lock()

    def hold(self) -> None:
        self.open.clear()

    def let_go(self) -> None:
        self.open.set()

    def execute(self, ctx: StepContext[Payload]) -> None:
        with self._lock:
            self.runs[ctx.job_id, ctx.attempt_no] += 1
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            while not self.open.wait(0.005):
                ctx.check()
            self.act(ctx)
        finally:
            with self._lock:
                self.now -= 1


def _write(ctx: StepContext[Payload]) -> None:
    ctx.workspace.write("output.txt", f"{ctx.job_id} {ctx.attempt_no}")


class Rig:
    """`replies` is the orchestrator as it is reached over HTTP; replies by the bus are read from
    its topics. Several instances share bus and store."""

    def __init__(self, folder: Path, clock: FakeClock | None = None) -> None:
        self.folder = folder
        self.clock = clock or FakeClock()
        self.bus = MemoryBus(self.clock.now)
        self.bus.apply(lane_topology([NAME]))
        self.store = MemoryStore()
        self.replies = RecordedReplies()
        self.workshop = Workshop()
        self.storages = Storages(LocalStorage(folder, readable=(folder,), writable=(folder,)))
        self.instances: list[ServiceRuntime] = []

    def service(self) -> Service:
        service = Service(NAME)
        service.step("TEST", payload=Payload)(self.workshop.execute)
        return service

    async def start(self, concurrency: int = 4, **options: Any) -> ServiceRuntime:
        clock: Clock = options.pop("clock", self.clock)
        metrics: StepMetrics | None = options.pop("metrics", None)
        runtime = ServiceRuntime(
            options.pop("service", None) or self.service(),
            NAME,
            self.bus,
            self.store,
            Replies(self.replies, BusReplies(self.bus)),
            self.storages,
            Limits(concurrency=concurrency, **options),
            metrics=metrics,
            clock=clock,
            chance=lambda: 0.5,
        )
        self.instances.append(runtime)
        await runtime.start()
        return runtime

    async def kill(self, runtime: ServiceRuntime) -> None:
        """As if the process had been killed: nothing of it runs or writes any more."""
        self.instances.remove(runtime)
        await runtime.abort()

    async def stop(self, runtime: ServiceRuntime, grace: float = 10 * DEADLINE) -> bool:
        """Time passes while it is waited for, ten times as fast, so that threads have the time of a
        deadline to end."""
        self.instances.remove(runtime)
        stopping = asyncio.create_task(runtime.stop(grace))
        async with asyncio.timeout(DEADLINE):
            while not stopping.done():
                await asyncio.wait({stopping}, timeout=0.01)
                self.clock.advance(0.1)
        return await stopping

    async def close(self) -> None:
        self.workshop.let_go()
        for runtime in list(self.instances):
            await self.stop(runtime)
        self.storages.close()

    def directive(self, job: str = "job_1", **members: Any) -> Directive:
        """One that wants its replies over HTTP."""
        members = {"jobId": job, **CALLBACKS, **members}
        return make_directive(self.clock.now(), self.folder.as_uri(), **members)

    def bus_directive(self, job: str = "job_1", **members: Any) -> Directive:
        """One that wants its replies by the bus."""
        return self.directive(job, callback_urls=None, callback_token=None, **members)

    async def send(self, directive: Directive, times: int = 1) -> None:
        message = directive_message(directive, NAME)
        topic = directive_topic(directive.lane)
        assert not await self.bus.publish(topic, [message] * times)

    async def send_raw(self, directive: Directive, body: bytes) -> None:
        message = directive_message(directive, NAME)._replace(body=body)
        assert not await self.bus.publish(directive_topic(directive.lane), [message])

    async def advance(self, seconds: float, step: float = 1.0) -> None:
        passed = 0.0
        while passed < seconds:
            self.clock.advance(min(step, seconds - passed))
            self.bus.tick()
            passed += step
            await turns(20)

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not is_so():
                await asyncio.sleep(0)

    async def results(self, count: int = 1) -> list[Result]:
        """As soon as there are so many."""
        await self.until(lambda: len(self.replies.results) >= count)
        return self.replies.results

    async def settled(self) -> None:
        """Nothing waits on the bus, and nothing is locked."""
        await self.until(lambda: self.on_bus() == 0)

    def on_bus(self) -> int:
        counts = (self.bus.counts(directive_topic(lane), NAME) for lane in range(LANES))
        return sum(count.active + count.locked for count in counts)

    def locked(self) -> int:
        return sum(self.bus.counts(directive_topic(lane), NAME).locked for lane in range(LANES))

    def dead(self) -> int:
        return sum(self.bus.counts(directive_topic(lane), NAME).dead for lane in range(LANES))

    async def bus_replies(self, directive: Directive, count: int) -> list[Reply]:
        """So many, from the reply topic of the directive's lane."""
        found: list[Reply] = []
        async with asyncio.timeout(DEADLINE):
            while len(found) < count:
                for delivery in await self.bus.receive(
                    reply_topic(directive.lane), REPLY_SUBSCRIPTION, 100, _AT_ONCE
                ):
                    await self.bus.complete(delivery)
                    found.append(parse_reply(delivery.message.body))
        return found

    @property
    def runs(self) -> Counter[tuple[str, int]]:
        return self.workshop.runs

    def files(self) -> set[str]:
        """All files below the storage's root, without the hidden ones."""
        return {
            str(path.relative_to(self.folder))
            for path in self.folder.rglob("*")
            if path.is_file() and not path.name.startswith(".")
        }


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
