"""The emulator as a process that loads its own lanes with directives and notes when they are gone.

    python -m benchmarks.sdk_bus WORKSPACE

prints how to connect. For each number that it reads from stdin it loads that many directives and,
when all are settled, says how long it took from the first to the last, as seen every few
milliseconds.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lucius_bus.port import BusMessage
from lucius_bus.topology import lane_topology
from lucius_contract.documents import Ref
from lucius_contract.messages import Directive, bus_message_id, directive_properties
from lucius_contract.routing import LANES, Mode, directive_topic, lane_of
from lucius_orchestrator.adapters.bus.embedded import EmbeddedBus
from servicebus_emulator.server import Emulator

SERVICE = "ocr"
TENANTS = 64
_GLANCE = 0.005
_TRACE = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"


async def serve(workspace: Path) -> None:
    emulator = Emulator()
    bus = EmbeddedBus(emulator)
    bus.apply(lane_topology([SERVICE]))
    await emulator.start()
    print(emulator.connection_string, flush=True)
    loaded = 0
    while line := await asyncio.to_thread(sys.stdin.readline):
        await load(bus, workspace, loaded, int(line))
        loaded += int(line)
        print(json.dumps(await _watch(emulator, int(line))), flush=True)
    await bus.close()
    await emulator.stop()


async def load(bus: EmbeddedBus, workspace: Path, first: int, count: int) -> None:
    by_lane: dict[int, list[BusMessage]] = {}
    for lane, message in directives(workspace, first, count, datetime.now(UTC)):
        by_lane.setdefault(lane, []).append(message)
    for lane, messages in by_lane.items():
        unpublished = await bus.publish(directive_topic(lane), messages)
        assert not unpublished, unpublished


def directives(
    workspace: Path, first: int, count: int, now: datetime
) -> Iterator[tuple[int, BusMessage]]:
    """Of many tenants, so that all lanes have some; with no address they are answered by bus."""
    for number in range(first, first + count):
        tenant = f"tenant-{number % TENANTS}"
        directive = Directive(
            job_id=f"job_{number:026d}",
            step_id=f"step_{number:026d}",
            tenant_id=tenant,
            attempt_no=1,
            lease_id=f"{number:032x}",
            protocol_id="ocr",
            step_type=SERVICE.upper(),
            input_ref=Ref(uri=f"az://inbox/{number}.pdf"),
            workspace_ref=Ref(uri=f"{workspace.as_uri()}/lucius/{tenant}/{number}/"),
            output_ref=Ref(uri=f"az://outbox/{number}.json"),
            payload={"dpi": 300},
            mode=Mode.DEFAULT,
            lane=lane_of(tenant),
            routing_key_used=tenant,
            correlation_id=f"bench-{number}",
            traceparent=_TRACE,
            lease_expires_at=now + timedelta(hours=1),
            lease_seconds=900,
            heartbeat_seconds=300,
        )
        yield directive.lane, _message(directive)


def _message(directive: Directive) -> BusMessage:
    properties = directive_properties(directive.to_json(), SERVICE)
    body, id = directive.to_bytes(), bus_message_id(directive)
    expires = directive.lease_expires_at
    return BusMessage(id, body, properties, directive.tenant_id, expires_at=expires)


async def _watch(emulator: Emulator, count: int) -> dict[str, float]:
    addresses = [f"{directive_topic(lane)}/Subscriptions/{SERVICE}" for lane in range(LANES)]
    sources = [emulator.broker.source(address) for address in addresses]
    began = None
    begun_with = 0
    while (left := sum(source.counts().active for source in sources)) > 0:
        if began is None and left < count:
            began, begun_with = time.time(), count - left
        await asyncio.sleep(_GLANCE)
    ended = time.time()
    dead = sum(source.counts().dead for source in sources)
    assert dead == 0, f"{dead} directives were refused"
    assert began is not None, "they do not all go within one glance"
    return {"seconds": ended - began, "done": count - begun_with}


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve(Path(sys.argv[1])))
