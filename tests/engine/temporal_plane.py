"""A plane whose jobs are driven by workflows on a real Temporal server; tests play the services.

Nothing happens by itself, as on the other plane: START and SIGNAL rows are delivered when a test
says `dispatch`, which then waits until the workflows have done what follows from them. The clock
stands at the moment at which the test began, so that deadlines lie ahead for the server too.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from lucius_bus.memory import MemoryBus
from lucius_orchestrator.api import ApiLimits
from lucius_orchestrator.api.app import create_health_app
from lucius_orchestrator.api.internal import InternalApi, InternalCredential, WithInternalApi
from lucius_orchestrator.api.parts import HealthParts
from lucius_orchestrator.domain.aggregate import Aggregate, Engine
from lucius_orchestrator.domain.window import Limits
from lucius_orchestrator.domain.workflow import Action, what_next
from lucius_orchestrator.engine.engine import EngineSettings
from lucius_orchestrator.engine.requests import JobRequest
from lucius_orchestrator.engine.steering import Steering
from lucius_orchestrator.invoker.client import HttpInvoker
from lucius_orchestrator.invoker.desk import DeskSettings, InvokerDesk
from lucius_orchestrator.outbox.publishing import DirectivePublisher
from lucius_orchestrator.ports.ledger import JobQuery
from lucius_orchestrator.security.authentication import NoAuthentication
from lucius_orchestrator.temporal.client import TemporalWorkflows, WorkflowSettings
from lucius_orchestrator.temporal.connection import TemporalOptions
from lucius_orchestrator.temporal.courier import CourierSettings
from lucius_orchestrator.temporal.signals import WorkflowSignals
from lucius_orchestrator.temporal.starts import WorkflowStarts
from lucius_orchestrator.temporal.worker import TemporalWorker
from tests.api.serving import address, served
from tests.engine.plane import MANY, WIDE, Plane, request
from tests.ledger.backends import Backend
from tests.names import unique
from tests.runner.deadlines import DEADLINE

KEY = "k" * 32
_AT_ONCE = CourierSettings(pause=timedelta(0), linger=timedelta(0))
_NO_GRACE = DeskSettings(recovery_grace=timedelta(0))
_SKEW = timedelta(milliseconds=10)


def set_to_now(backend: Backend) -> Backend:
    backend.clock.now = datetime.now(UTC)
    return backend


class TemporalPlane(Plane):
    drives = Engine.TEMPORAL
    new_state = "QUEUED"
    first_number = os.getpid() << 32
    """Ids of jobs are ids of workflows: tests of other workers must have others."""

    def engage(self, options: TemporalOptions, opened: AsyncExitStack) -> None:
        """`opened` closes what the first dispatch opens."""
        self._options = options
        self._opened = opened
        self._works = False
        self.workflows = TemporalWorkflows(options, WorkflowSettings(skew=_SKEW))
        self.starts = WorkflowStarts(self.engine, self.workflows, _AT_ONCE)
        self.signals = WorkflowSignals(self.engine, self.workflows, _AT_ONCE)
        bus: Any = self.bus_detour
        publisher = DirectivePublisher(self.engine, bus, timedelta(seconds=DEADLINE))
        self.desk = InvokerDesk(self.engine, publisher, _NO_GRACE)
        self.steering = Steering(self.engine, self.desk)

    async def replica(
        self, settings: EngineSettings | None = None, limits: Limits = WIDE
    ) -> "TemporalPlane":
        ledger = await self.backend.reopen()
        other = TemporalPlane(self.backend, ledger, self.bus, self._numbers, settings, limits)
        other.engage(self._options, self._opened)
        return other

    async def submit(self, asked: JobRequest | None = None) -> str:
        asked = asked or request()
        return await super().submit(asked._replace(engine=Engine.TEMPORAL))  # type: ignore[attr-defined]

    async def dispatch(self) -> int:
        """Until workflows wait for services; returns how many rows were delivered to them."""
        if not self._works:
            self._works = True
            await self._opened.enter_async_context(self._working())
        delivered = 0
        while batch := await self.starts.run_once() + await self.signals.run_once():
            delivered += batch
        await self._settled()
        return delivered

    async def turn(self) -> None:
        """Workflows live in real time."""
        self.clock.now = datetime.now(UTC)
        await asyncio.sleep(0.01)
        await self.dispatch()

    async def _settled(self) -> None:
        async with asyncio.timeout(DEADLINE):
            while not all(self._rests(found) for found in await self._jobs()):
                await asyncio.sleep(0.005)

    async def _jobs(self) -> list[Aggregate]:
        page = await self.ledger.jobs(JobQuery(limit=MANY))
        found = [await self.ledger.load(job.job_id) for job in page.items]
        return [stored.aggregate for stored in found if stored is not None]

    def _rests(self, aggregate: Aggregate) -> bool:
        if aggregate.job.engine is not Engine.TEMPORAL:
            return True
        following = what_next(aggregate)
        if following["action"] == Action.OPEN and following["at"] is not None:
            return datetime.fromisoformat(following["at"]) > self.clock()
        return following["action"] in (Action.WAIT, Action.END)

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[None]:
        """A worker, and the invoker that it asks."""
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(served(self._invoker_app()))
            invoker = await stack.enter_async_context(HttpInvoker(address(port), KEY))
            worker = TemporalWorker(self._options, invoker)
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            tasks.create_task(worker.run())
            stack.push_async_callback(worker.stop)
            yield

    def _invoker_app(self) -> Any:
        parts = HealthParts(
            authenticator=NoAuthentication(),
            readiness=_nothing,
            metrics=lambda: b"",
        )
        internal = InternalApi(self.desk, InternalCredential([KEY]), ApiLimits().retry_after)
        return WithInternalApi(create_health_app(parts), internal, parts)


async def _nothing() -> list[Any]:
    return []


@asynccontextmanager
async def temporal_plane(
    backend: Backend, bus: MemoryBus, server: str, limits: Limits = WIDE
) -> AsyncIterator[TemporalPlane]:
    """On a task queue of its own."""
    plane = TemporalPlane.new(backend, bus, limits)
    assert isinstance(plane, TemporalPlane)
    queue = unique("plane")
    async with AsyncExitStack() as opened:
        plane.engage(TemporalOptions(server, task_queue=queue), opened)
        yield plane
