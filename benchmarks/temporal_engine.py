"""The Temporal engine in one process: API's part, invoker and worker, with a service that answers
at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path

from temporalio.client import Client

from benchmarks.engine import SERVICES, request, serving
from lucius_bus.memory import MemoryBus
from lucius_bus.topology import lane_topology
from lucius_contract.envelope import parse_envelope
from lucius_contract.refs import RefPolicy
from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger
from lucius_orchestrator.adapters.registry.yaml_registry import YamlRegistry
from lucius_orchestrator.api import ApiLimits, Check
from lucius_orchestrator.api.app import create_health_app
from lucius_orchestrator.api.internal import InternalApi, InternalCredential, WithInternalApi
from lucius_orchestrator.api.parts import HealthParts
from lucius_orchestrator.bootstrap import Part, real_world, running
from lucius_orchestrator.domain.aggregate import Aggregate, Engine, ReplyVia, StepPolicy
from lucius_orchestrator.domain.decision import Decision
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.engine.planning import PlanSettings, plan_request
from lucius_orchestrator.engine.telemetry import Telemetry
from lucius_orchestrator.invoker.client import HttpInvoker
from lucius_orchestrator.invoker.desk import InvokerDesk
from lucius_orchestrator.outbox.publishing import DirectivePublisher
from lucius_orchestrator.replies.consumer import ReplyConsumer
from lucius_orchestrator.security.authentication import NoAuthentication
from lucius_orchestrator.temporal.client import TemporalWorkflows
from lucius_orchestrator.temporal.connection import TemporalOptions, connected
from lucius_orchestrator.temporal.signals import WorkflowSignals
from lucius_orchestrator.temporal.starts import WorkflowStarts
from lucius_orchestrator.temporal.worker import TemporalWorker
from tests.api.serving import address, served

_KEY = "k" * 32
_TRACE = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"


class Ends(Telemetry):
    """Tells who waits for a job that it has ended."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[str, asyncio.Event] = {}

    def of(self, job_id: str) -> asyncio.Event:
        return self._waiting.setdefault(job_id, asyncio.Event())

    def committed(self, event: str, decision: Decision, after: Aggregate) -> None:
        super().committed(event, decision, after)
        if decision.job.get("state") in TERMINAL_JOB_STATES:
            self.of(after.job.job_id).set()


class TemporalEngine:
    def __init__(self, engine: LedgerEngine, ends: Ends, client: Client) -> None:
        self._engine = engine
        self._client = client
        self._ends = ends
        self._numbers = count()
        registry = YamlRegistry(None, StepPolicy(reply_via=ReplyVia.BUS))
        registry.load()
        self._snapshot = registry.snapshot()

    async def run_one(self) -> None:
        envelope = parse_envelope(request(next(self._numbers)), RefPolicy())
        planned = plan_request(
            envelope,
            self._snapshot,
            PlanSettings("az://workspace", engine=Engine.TEMPORAL),
            correlation_id="bench",
            traceparent=_TRACE,
        )
        submission = await self._engine.submit(planned)
        await self._ends.of(submission.job_id).wait()
        await self._client.get_workflow_handle(submission.job_id).result()

    async def run_many(self, jobs: int, at_once: int) -> None:
        places = asyncio.Semaphore(at_once)

        async def run() -> None:
            async with places:
                await self.run_one()

        await asyncio.gather(*(run() for _ in range(jobs)))


@asynccontextmanager
async def temporal_engine(folder: Path, server: str) -> AsyncIterator[TemporalEngine]:
    world, ends, options = real_world(), Ends(), TemporalOptions(server)
    async with AsyncExitStack() as stack:
        ledger = await SqliteLedger.open(folder / "ledger.db")
        stack.push_async_callback(ledger.close)
        engine = LedgerEngine(ledger, world, ends)
        bus = MemoryBus(world.clock)
        bus.apply(lane_topology(SERVICES))
        await stack.enter_async_context(serving(bus))
        desk = InvokerDesk(engine, DirectivePublisher(engine, bus, timedelta(seconds=20)))
        port = await stack.enter_async_context(served(_invoker_app(desk)))
        invoker = await stack.enter_async_context(HttpInvoker(address(port), _KEY))
        workflows = TemporalWorkflows(options)
        parts: list[Part] = [
            ReplyConsumer(engine, bus),
            WorkflowStarts(engine, workflows),
            WorkflowSignals(engine, workflows),
            TemporalWorker(options, invoker),
        ]
        await stack.enter_async_context(running(parts))
        yield TemporalEngine(engine, ends, await connected(options))


def _invoker_app(desk: InvokerDesk) -> WithInternalApi:
    parts = HealthParts(authenticator=NoAuthentication(), readiness=_nothing, metrics=lambda: b"")
    internal = InternalApi(desk, InternalCredential([_KEY]), ApiLimits().retry_after)
    return WithInternalApi(create_health_app(parts), internal, parts)


async def _nothing() -> list[Check]:
    return []
