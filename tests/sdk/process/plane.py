"""An orchestrator in a process of its own, on the emulator of a yard."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from tests.cli.test_up import first_line, start
from tests.runner.deadlines import PROCESS_DEADLINE
from tests.sdk.process.yard import Yard

PROTOCOL = """
protocol_id: {name}
version: "1"
request_type: {name}
steps:
  - step_type: {step_type}
    service: {name}
    payload_schema: {{type: object}}
    ack_timeout: 10m
"""


class Plane:
    def __init__(self, url: str) -> None:
        self._http = httpx.AsyncClient(base_url=url, timeout=PROCESS_DEADLINE)

    async def close(self) -> None:
        await self._http.aclose()

    async def submit(self, request_type: str, **payload: Any) -> str:
        name = uuid4()
        envelope = {
            "tenant_id": "acme",
            "request_type": request_type,
            "input_ref": {"uri": f"https://example.com/{name}.pdf"},
            "output_ref": {"uri": f"az://outbox/{name}.txt"},
            "payload": payload,
            "schema_version": "1",
        }
        answer = await self._http.post("/v1/orchestrate", json=envelope)
        assert answer.status_code == 202, answer.text
        job: str = answer.json()["jobId"]
        return job

    async def finished(self, job: str) -> dict[str, Any]:
        """The job, once it is terminal: its stream ends then."""
        async with (
            asyncio.timeout(PROCESS_DEADLINE),
            self._http.stream("GET", f"/v1/jobs/{job}/stream") as stream,
        ):
            async for _ in stream.aiter_lines():
                pass
        found: dict[str, Any] = (await self._http.get(f"/v1/jobs/{job}")).json()
        return found

    async def causes(self, job: str) -> list[str]:
        """What changed its step, from its events."""
        events = (await self._http.get(f"/v1/jobs/{job}/events")).json()["items"]
        return [event["cause"] for event in events if event["type"] == "STEP_STATE_CHANGED"]


@asynccontextmanager
async def open_plane(
    yard: Yard, step_types: Mapping[str, str], **environ: str
) -> AsyncIterator[Plane]:
    """With a protocol of one step for each service, which is named like it."""
    folder = yard.folder
    _write_protocols(folder / "registry", step_types)
    given = {
        "LUCIUS_SERVICEBUS_CONNECTION": yard.emulator.connection_string,
        "LUCIUS_PROTOCOLS_DIR": str(folder / "registry"),
        "LUCIUS_WORKSPACE_ROOT": yard.workspace.as_uri(),
    }
    arguments = ("up", "--port", "0", "--data", str(folder / "data"))
    process = await asyncio.to_thread(start, folder, *arguments, **given | environ)
    with process:
        line = await asyncio.to_thread(first_line, process, folder)
        plane = Plane(line.split("api=")[1].split()[0])
        try:
            yield plane
        finally:
            await plane.close()
            process.terminate()
            await asyncio.to_thread(process.communicate, timeout=PROCESS_DEADLINE)


def _write_protocols(folder: Path, step_types: Mapping[str, str]) -> None:
    (folder / "protocols").mkdir(parents=True)
    for name, step_type in step_types.items():
        text = PROTOCOL.format(name=name, step_type=step_type)
        (folder / "protocols" / f"{name}.yaml").write_text(text)
