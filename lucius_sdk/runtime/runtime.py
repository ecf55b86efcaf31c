"""A service that runs: it takes directives from its lanes until it is told to stop."""

import asyncio
import logging
import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from lucius_bus.port import Bus, Delivery
from lucius_contract.messages import Capacity
from lucius_contract.routing import LANES
from lucius_contract.timeouts import MAX_CLOCK_SKEW
from lucius_sdk.ack_client import AckClient
from lucius_sdk.clock import Clock, SystemClock, ends_within
from lucius_sdk.context import StopReason
from lucius_sdk.handlers import HandlerPool
from lucius_sdk.idempotency_store import Claims, DedupStore
from lucius_sdk.metrics import NoMetrics, StepMetrics
from lucius_sdk.replies.port import ReplyChannel
from lucius_sdk.result_client import ResultClient
from lucius_sdk.runtime.desk import Desk
from lucius_sdk.runtime.leftovers import Leftovers
from lucius_sdk.runtime.parts import Parts
from lucius_sdk.service import Service
from lucius_sdk.servicebus_consumer import ServiceBusConsumer
from lucius_sdk.tracing import Tracing
from lucius_sdk.workspace_io import Storages

_log = logging.getLogger("lucius_sdk")

_FINISHING = 0.8  # of the grace time; the rest is for giving back what did not finish


def new_owner() -> str:
    """Of this start: whoever comes after a crash is somebody else."""
    return secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds. `ack`: how long work waits for the answer to its ACK. `skew`: how far clocks may
    differ."""

    concurrency: int = 8
    ack: float = 5.0
    skew: float = MAX_CLOCK_SKEW.total_seconds()
    lanes: tuple[int, ...] = field(default_factory=lambda: tuple(range(LANES)))


class ServiceRuntime:
    """Bus, store and replies are closed by whoever made them, after `stop`."""

    def __init__(
        self,
        service: Service,
        name: str,
        bus: Bus,
        store: DedupStore,
        replies: ReplyChannel,
        storages: Storages,
        limits: Limits,
        *,
        metrics: StepMetrics | None = None,
        tracing: Tracing | None = None,
        clock: Clock | None = None,
        owner: str | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._service = service
        self._clock = clock = clock or SystemClock()
        metrics = metrics or NoMetrics()
        owner = owner or new_owner()

        def retried(kind: str, _error: Exception) -> None:
            metrics.reply_retried(kind)

        self._pool = HandlerPool(limits.concurrency)
        parts = Parts(
            name=name,
            service=service,
            bus=bus,
            claims=Claims(store, owner, clock, timedelta(seconds=limits.skew)),
            acks=AckClient(replies, clock, chance, retried=retried),
            results=ResultClient(replies, clock, chance, retried=retried),
            pool=self._pool,
            storages=storages,
            clock=clock,
            metrics=metrics,
            tracing=tracing or Tracing(),
            capacity=Capacity(instance_id=owner, slots=limits.concurrency),
            ack_seconds=limits.ack,
            skew=limits.skew,
        )
        self._desk = Desk(parts)
        self._leftovers = Leftovers(parts, store)
        self._consumer = ServiceBusConsumer(
            bus, name, limits.lanes, limits.concurrency, self._accept, clock
        )
        self._sweeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Call the hooks, then take directives. What a hook raises is raised."""
        for hook in self._service.start_hooks:
            await self._pool.call(hook)
        self._consumer.start()
        self._sweeping = asyncio.create_task(self._leftovers.run())

    async def check_started(self) -> None:
        if self._sweeping is None:
            raise RuntimeError("its hooks have not ended yet")

    async def check_bus(self) -> None:
        """`BusError` while directives cannot be taken."""
        await self._consumer.check()

    @property
    def failing_lanes(self) -> list[int]:
        """Those from which nothing could be taken at the last look."""
        return self._consumer.failing_lanes

    async def stop(self, grace: float) -> bool:
        """Take nothing new, and finish what there is within most of the grace time, in seconds.
        What is left then is released, so that another instance takes it over at once. False if some
        handler did not end."""
        ends = self._clock.monotonic() + grace
        await self._consumer.stop()
        self._leftovers.stop()
        self._desk.stop_waiting(StopReason.SHUTTING_DOWN)
        if not await ends_within(self._clock, grace * _FINISHING, self._ended()):
            self._desk.stop(StopReason.SHUTTING_DOWN)
            await ends_within(self._clock, ends - self._clock.monotonic(), self._ended())
        await self._stop_sweeping()
        return await self._stop_hooks(max(ends - self._clock.monotonic(), 0.1))

    async def abort(self) -> None:
        """Stop at once and give nothing back, as a process that is killed would."""
        await self._consumer.stop()
        await self._desk.abort()
        await self._stop_sweeping()

    async def _ended(self) -> None:
        await self._desk.ended()
        await self._leftovers.ended()

    async def _stop_sweeping(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)

    async def _stop_hooks(self, seconds: float) -> bool:
        for hook in self._service.stop_hooks:
            try:
                await ends_within(self._clock, seconds, self._pool.call(hook))
            except Exception:
                _log.exception("hook.raised")
        return await self._pool.close(seconds)

    def _accept(self, lane: int, delivery: Delivery) -> None:
        self._desk.accept(lane, delivery, self._consumer)
