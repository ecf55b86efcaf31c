"""Control planes under test, with nothing of the machine's environment in them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from lucius_contract.messages import Directive, parse_directive
from lucius_contract.routing import directive_topic, lane_of
from lucius_orchestrator.bootstrap import running
from lucius_orchestrator.bootstrap.plane import ControlPlane, control_plane
from lucius_orchestrator.settings import load_settings
from tests.runner.deadlines import DEADLINE

ADDRESS = "http://127.0.0.1:8080"
OCR: dict[str, Any] = {
    "tenant_id": "acme",
    "request_type": "OCR",
    "input_ref": {"uri": "az://inbox/a.pdf"},
    "output_ref": {"uri": "az://outbox/a.txt"},
    "payload": {"dpi": 300},
    "schema_version": "1",
}


@asynccontextmanager
async def plane(folder: Path, **variables: str) -> AsyncIterator[ControlPlane]:
    given = {"LUCIUS_DATA_DIR": str(folder / "data"), "LUCIUS_BUS_PORT": "0", **variables}
    settings = load_settings(given)
    async with control_plane(settings, ADDRESS) as made, running(made.parts):
        yield made


def client(made: ControlPlane) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(made.app), base_url=ADDRESS)


async def next_directive(made: ControlPlane, service: str = "ocr") -> Directive:
    """Of the tenant that requests here are for; it is settled at once."""
    assert made.bus is not None
    topic = directive_topic(lane_of("acme"))
    bus = made.bus.bus
    (delivery,) = await bus.receive(topic, service, 1, timedelta(seconds=DEADLINE))
    await bus.complete(delivery)
    return parse_directive(delivery.message.body)


def reply(directive: Directive, kind: str, **said: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "jobId": directive.job_id,
        "stepId": directive.step_id,
        "tenant_id": directive.tenant_id,
        "attempt_no": directive.attempt_no,
        "lease_id": directive.lease_id,
        "timestamp": "2026-11-16T09:00:00Z",
        **said,
    }
