"""Jobs of the example services, over HTTP, as a client sees them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from lucius_cli.demo.stack import Stack
from tests.runner.deadlines import seconds

DEADLINE = seconds(90)
"""For three services that share the processors with what else runs."""

PROMPTS = [
    {"name": "total", "prompt": "What is the total amount due?", "output": "text"},
    {"name": "date", "prompt": "What is the invoice date?", "output": "text"},
    {"name": "customer", "prompt": "Who is the customer?", "output": "text"},
]
SIS = {"prompt_set": PROMPTS}

Job = dict[str, Any]


class Flow:
    def __init__(self, stack: Stack, http: httpx.AsyncClient) -> None:
        self.stack = stack
        self._http = http

    async def submit(
        self,
        request_type: str,
        document: Path,
        payload: Mapping[str, Any],
        **members: Any,
    ) -> str:
        output = self.stack.data / "output" / uuid4().hex
        envelope = {
            "tenant_id": "acme",
            "request_type": request_type,
            "input_ref": {"uri": document.as_uri()},
            "output_ref": {"uri": output.as_uri()},
            "payload": payload,
            "schema_version": "1",
            "idempotency_key": uuid4().hex,
            **members,
        }
        answer = await self._http.post("/v1/orchestrate", json=envelope)
        assert answer.status_code == 202, answer.text
        job: str = answer.json()["jobId"]
        return job

    async def job(self, job: str) -> Job:
        found: Job = (await self._http.get(f"/v1/jobs/{job}")).json()
        return found

    async def command(self, job: str, verb: str) -> None:
        (await self.try_command(job, verb)).raise_for_status()

    async def try_command(self, job: str, verb: str) -> httpx.Response:
        return await self._http.post(f"/v1/jobs/{job}:{verb}")

    async def events(self, job: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self._http.get(f"/v1/jobs/{job}/events")).json()[
            "items"
        ]
        return found

    async def dead_letters(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self._http.get("/v1/dead-letters")).json()["items"]
        return found

    async def finished(self, job: str, within: float = DEADLINE) -> Job:
        return await self.until(job, lambda found: found["completed_at"] is not None, within)

    async def until(self, job: str, is_so: Callable[[Job], bool], within: float = DEADLINE) -> Job:
        """The job, once it is so; it is looked at after each of its events."""
        async with (
            asyncio.timeout(within),
            self._http.stream("GET", f"/v1/jobs/{job}/stream") as stream,
        ):
            async for line in stream.aiter_lines():
                if line.startswith("data:") and is_so(found := await self.job(job)):
                    return found
        found = await self.job(job)
        assert is_so(found), found
        return found


@asynccontextmanager
async def running(stack: Stack) -> AsyncIterator[Flow]:
    """The stack is started and stopped beside this loop, which may be serving it meanwhile."""
    await asyncio.to_thread(stack.__enter__)
    try:
        async with connected(stack) as flow:
            yield flow
    finally:
        await asyncio.to_thread(stack.__exit__, None, None, None)


@asynccontextmanager
async def connected(stack: Stack) -> AsyncIterator[Flow]:
    async with httpx.AsyncClient(base_url=stack.url, timeout=DEADLINE) as http:
        yield Flow(stack, http)


def step(job: Job, step_type: str) -> dict[str, Any]:
    (found,) = (each for each in job["steps"] if each["step_type"] == step_type)
    return dict(found)


def states(job: Job) -> dict[str, str]:
    return {each["step_type"]: each["state"] for each in job["steps"]}
