"""A control plane in one process, with a service that answers at once."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pydantic_core

from lucius_bus.memory import MemoryBus
from lucius_bus.port import BusMessage, Delivery
from lucius_bus.topology import lane_topology
from lucius_contract.envelope import Envelope, parse_envelope
from lucius_contract.refs import RefPolicy
from lucius_contract.routing import LANES, directive_topic, reply_topic
from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger
from lucius_orchestrator.adapters.registry.yaml_registry import YamlRegistry
from lucius_orchestrator.bootstrap import real_world, running
from lucius_orchestrator.domain.aggregate import Aggregate, StepPolicy
from lucius_orchestrator.domain.decision import Decision
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.engine.planning import PlanSettings, plan_request
from lucius_orchestrator.engine.telemetry import Telemetry
from lucius_orchestrator.outbox.dispatcher import Dispatcher
from lucius_orchestrator.ports.ledger import JobQuery, Ledger
from lucius_orchestrator.ports.registry import Snapshot
from lucius_orchestrator.replies.consumer import ReplyConsumer

SERVICES = ("ocr", "embedding", "sis")
IN_FLIGHT = 400
TENANTS = 50
_TIMESTAMP = "2026-11-16T09:00:00Z"
_TRACE = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
_CAPACITY = f'"capacity":{{"instance_id":"bench","slots":{100 * LANES}}}'
_PAYLOAD = {
    "ocr": {"dpi": 300},
    "embedding": {"chunk_size": 200},
    "sis": {"prompt_set": [{"name": "total", "prompt": "What is due?", "output": "text"}]},
}


class Measured(NamedTuple):
    jobs_per_second: float
    cpu_per_job: float


class ScriptedService:
    """Takes the directives of one service from all lanes; acknowledges and finishes each."""

    def __init__(self, bus: MemoryBus, service: str) -> None:
        self._bus = bus
        self._service = service

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for lane in range(LANES):
                tasks.create_task(self._serve(lane))

    async def _serve(self, lane: int) -> None:
        while True:
            deliveries = await self._bus.receive(
                directive_topic(lane), self._service, 100, timedelta(minutes=5)
            )
            replies = [reply for delivery in deliveries for reply in _replies(delivery)]
            await self._bus.publish(reply_topic(lane), replies)
            for delivery in deliveries:
                await self._bus.complete(delivery)


def _replies(delivery: Delivery) -> Sequence[BusMessage]:
    """Written without an encoder: what a service costs is not what is measured."""
    said = pydantic_core.from_json(delivery.message.body)
    rest = (
        f'"jobId":"{said["jobId"]}","stepId":"{said["stepId"]}","tenant_id":"{said["tenant_id"]}",'
        f'"attempt_no":{said["attempt_no"]},"lease_id":"{said["lease_id"]}",'
        f'"correlation_id":"{said["correlation_id"]}","timestamp":"{_TIMESTAMP}"}}'
    )
    key = delivery.message.message_id
    return [
        BusMessage(f"{key}.ACK", f'{{"type":"ACK","status":"ACKED",{_CAPACITY},{rest}'.encode()),
        BusMessage(f"{key}.RESULT", f'{{"type":"RESULT","status":"SUCCEEDED",{rest}'.encode()),
    ]


class Finished(Telemetry):
    """Counts jobs that ended, and gives their place in flight to the next."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self.places = asyncio.Semaphore(IN_FLIGHT)
        self.all = asyncio.Event()
        self._left = jobs

    def committed(self, event: str, decision: Decision, after: Aggregate) -> None:
        super().committed(event, decision, after)
        if decision.job.get("state") in TERMINAL_JOB_STATES:
            self.places.release()
            self._left -= 1
            if self._left == 0:
                self.all.set()


def request(number: int) -> bytes:
    return pydantic_core.to_json(
        {
            "tenant_id": f"tenant-{number % TENANTS}",
            "request_type": "OCR_EMBEDDING_SIS",
            "input_ref": {"uri": f"az://inbox/{number}.pdf"},
            "output_ref": {"uri": f"az://outbox/{number}.json"},
            "payload": _PAYLOAD,
            "schema_version": "1",
        }
    )


async def jobs_per_second(jobs: int) -> Measured:
    """Of a new ledger in a new file."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = await SqliteLedger.open(Path(folder) / "ledger.db")
        try:
            return await drive(ledger, 0, jobs)
        finally:
            await ledger.close()


async def drive(ledger: Ledger, first: int, jobs: int) -> Measured:
    """Submit jobs with numbers from `first` and wait until all have ended."""
    world = real_world()
    bus = MemoryBus(world.clock)
    bus.apply(lane_topology(SERVICES))
    finished = Finished(jobs)
    engine = LedgerEngine(ledger, world, finished)
    registry = YamlRegistry(None, StepPolicy())
    registry.load()
    snapshot = registry.snapshot()
    policy = RefPolicy()
    envelopes = [parse_envelope(request(n), policy) for n in range(first, first + jobs)]
    async with serving(bus), running([ReplyConsumer(engine, bus), Dispatcher(engine, bus)]):
        start, cpu = time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as tasks:
            for envelope in envelopes:
                await finished.places.acquire()
                tasks.create_task(_submit(engine, snapshot, envelope))
        await finished.all.wait()
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return Measured(jobs / seconds, cpu / jobs)


async def submit_one(ledger: Ledger) -> str:
    """Submit a job that nobody works on; return its id."""
    registry = YamlRegistry(None, StepPolicy())
    registry.load()
    envelope = parse_envelope(request(0), RefPolicy())
    engine = LedgerEngine(ledger, real_world(), Telemetry())
    await _submit(engine, registry.snapshot(), envelope)
    page = await ledger.jobs(JobQuery())
    return page.items[0].job_id


async def _submit(engine: LedgerEngine, snapshot: Snapshot, envelope: Envelope) -> None:
    settings = PlanSettings("az://workspace")
    await engine.submit(
        plan_request(envelope, snapshot, settings, correlation_id="bench", traceparent=_TRACE)
    )


@asynccontextmanager
async def serving(bus: MemoryBus) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(ScriptedService(bus, name).run()) for name in SERVICES]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
