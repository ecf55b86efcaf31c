"""A protocol that nobody has heard of, from a file alone, through every part of the engine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pydantic_core
import pytest

from lucius_bus.memory import MemoryBus
from lucius_bus.port import BusMessage
from lucius_bus.topology import lane_topology
from lucius_contract.envelope import parse_envelope
from lucius_contract.refs import RefPolicy
from lucius_contract.routing import LANES, directive_topic, reply_topic
from lucius_contract.states import TERMINAL_JOB_STATES, JobState, StepState
from lucius_orchestrator.adapters.ledger.memory import MemoryLedger
from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger
from lucius_orchestrator.adapters.registry.yaml_registry import YamlRegistry
from lucius_orchestrator.bootstrap import Part, real_world, running
from lucius_orchestrator.domain.aggregate import Aggregate, StepPolicy
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.engine.planning import PlanSettings, plan_request
from lucius_orchestrator.outbox.dispatcher import Dispatcher
from lucius_orchestrator.ports.ledger import Ledger
from lucius_orchestrator.replies.consumer import ReplyConsumer
from lucius_orchestrator.sweepers.runner import SweeperRunner, all_sweepers
from tests.runner.deadlines import DEADLINE

PROTOCOL = """\
protocol_id: wine-cellar
version: "7"
request_type: DECANT_WINE
aliases: [decant]
steps:
  - step_type: UNCORK
    service: sommelier
    reply_via: bus
    payload_schema:
      type: object
      required: [bottle]
      additionalProperties: false
      properties: {bottle: {type: string}}
  - step_type: BREATHE
    service: decanter
    reply_via: bus
    lease: 45m
    payload_schema: {type: object}
"""
REQUEST = {
    "tenant_id": "cellar",
    "request_type": "decant",
    "input_ref": {"uri": "az://cellar/1961.pdf"},
    "output_ref": {"uri": "az://table/glass.json"},
    "payload": {"uncork": {"bottle": "1961"}, "breathe": {}},
    "schema_version": "1",
}


class AnyService:
    """Does whatever it is asked to, and remembers the directives."""

    def __init__(self, bus: MemoryBus, service: str) -> None:
        self._bus = bus
        self._service = service
        self.seen: list[Any] = []

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for lane in range(LANES):
                tasks.create_task(self._serve(lane))

    async def _serve(self, lane: int) -> None:
        while True:
            for delivery in await self._bus.receive(
                directive_topic(lane), self._service, 1, timedelta(minutes=5)
            ):
                directive = pydantic_core.from_json(delivery.message.body)
                self.seen.append(directive)
                await self._bus.publish(reply_topic(lane), _replies(directive))
                await self._bus.complete(delivery)


def _replies(directive: Any) -> list[BusMessage]:
    names = ("jobId", "stepId", "tenant_id", "attempt_no", "lease_id")
    said = {name: directive[name] for name in names}
    said["timestamp"] = datetime.now(UTC).isoformat()
    artifact = {"name": "a", "uri": "az://w/a", "sha256": "0" * 64, "size": 0, "media_type": "x/y"}
    ack = {"type": "ACK", "status": "ACKED", **said}
    result = {"type": "RESULT", "status": "SUCCEEDED", "artifacts": [artifact], **said}
    return [BusMessage(kind, pydantic_core.to_json(m)) for kind, m in (("a", ack), ("r", result))]


@asynccontextmanager
async def opened(backend: str, folder: Path) -> AsyncIterator[Ledger]:
    ledger: Ledger
    if backend == "memory":
        ledger = MemoryLedger(clock=real_world().clock)
    else:
        ledger = await SqliteLedger.open(folder / "ledger.db")
    try:
        yield ledger
    finally:
        await ledger.close()


async def terminal(ledger: Ledger, job_id: str) -> Aggregate:
    async with asyncio.timeout(DEADLINE):
        while True:
            stored = await ledger.load(job_id)
            assert stored is not None
            if stored.aggregate.job.state in TERMINAL_JOB_STATES:
                return stored.aggregate
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_a_protocol_of_unknown_steps_runs_from_its_file_alone(
    backend: str, tmp_path: Path
) -> None:
    (tmp_path / "protocols").mkdir()
    (tmp_path / "protocols" / "wine.yaml").write_text(PROTOCOL, encoding="utf-8")
    registry = YamlRegistry(tmp_path, StepPolicy())
    registry.load()
    snapshot = registry.snapshot()
    services = {step.service for p in snapshot.protocols.values() for step in p.steps}
    world = real_world()
    bus = MemoryBus(world.clock)
    bus.apply(lane_topology(services))
    async with opened(backend, tmp_path) as ledger:
        engine = LedgerEngine(ledger, world)
        parts: list[Part] = [
            ReplyConsumer(engine, bus),
            Dispatcher(engine, bus),
            SweeperRunner(all_sweepers(engine), engine.telemetry),
        ]
        workers = [AnyService(bus, service) for service in sorted(services)]
        tasks = [asyncio.create_task(worker.run()) for worker in workers]
        async with running(parts):
            envelope = parse_envelope(pydantic_core.to_json(REQUEST), RefPolicy())
            request = plan_request(
                envelope,
                snapshot,
                PlanSettings("file:///workspace"),
                correlation_id="c-1",
                traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01",
            )
            submission = await engine.submit(request)
            ended = await terminal(ledger, submission.job_id)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert ended.job.state is JobState.SUCCEEDED
    assert ended.job.protocol_version == "7"
    assert [step.step_type for step in ended.steps] == ["UNCORK", "BREATHE"]
    assert {step.state for step in ended.steps} == {StepState.SUCCEEDED}
    decanter, sommelier = workers
    assert sommelier.seen[0]["payload"] == {"bottle": "1961"}
    assert decanter.seen[0]["lease_seconds"] == 45 * 60
    assert list(decanter.seen[0]["prior_artifacts"]) == ["UNCORK"]
