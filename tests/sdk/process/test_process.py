"""A service as a process: code that lets nothing else run, and probes from outside."""

import asyncio
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from lucius_contract.routing import directive_topic
from lucius_sdk.testing.directives import directive_message, make_directive
from tests.runner.deadlines import PROCESS_DEADLINE, seconds
from tests.sdk.process.recorder import Recorder, open_recorder
from tests.sdk.process.yard import ROOT, Yard, open_yard

LOCK = timedelta(seconds=seconds(8))
SERVICE = "worker"


async def send(yard: Yard, recorder: Recorder, job: str, step_type: str, **members: Any) -> None:
    directive = make_directive(
        datetime.now(UTC),
        yard.workspace.as_uri(),
        jobId=job,
        step_type=step_type,
        **recorder.callbacks,
        **members,
    )
    message = directive_message(directive, SERVICE)
    assert not await yard.bus.publish(directive_topic(directive.lane), [message])


@pytest.mark.full
async def test_a_handler_that_burns_the_processor_for_three_locks_runs_once(
    tmp_path: Path,
) -> None:
    """In a thread and in the handlers' event loop, with another instance that waits for its
    chance."""
    burning = {"seconds": 3.3 * LOCK.total_seconds()}
    async with open_yard(tmp_path, [SERVICE], LOCK) as yard, open_recorder() as recorder:
        async with yard.service(SERVICE) as one, yard.service(SERVICE) as other:
            await send(yard, recorder, "thread", "BURN", payload=burning)
            await send(yard, recorder, "loop", "BLOCK", payload=burning)
            await recorder.until(lambda: len(recorder.results) == 2, PROCESS_DEADLINE)
            await yard.empty(SERVICE)
            assert await one.stop() == 0
            assert await other.stop() == 0
        assert yard.runs == {"thread": 1, "loop": 1}
        assert {job: len(bodies) for job, bodies in recorder.results.items()} == yard.runs


@pytest.mark.check
async def test_ready_turns_false_while_the_bus_is_away_and_true_when_it_is_back(
    tmp_path: Path,
) -> None:
    async with (
        open_yard(tmp_path, [SERVICE], LOCK) as yard,
        yard.service(SERVICE) as running,
        httpx.AsyncClient(base_url=running.health, timeout=PROCESS_DEADLINE) as probe,
    ):
        await until_ready(probe, 200)
        port = yard.emulator.port
        await yard.emulator.stop()
        found = await until_ready(probe, 503)
        assert {check["name"]: check["ok"] for check in found["checks"]} == {
            "start": True,
            "bus": False,
            "store": True,
            "workspace": True,
        }
        assert (await probe.get("/healthz/live")).status_code == 200
        await yard.emulator.start(port=port)
        await until_ready(probe, 200)
        metrics = (await probe.get("/metrics")).text
        assert "lucius_service_running 0.0" in metrics
        assert await running.stop() == 0


async def until_ready(probe: httpx.AsyncClient, status: int) -> dict[str, Any]:
    """Ask until it is so; each request is a round trip, so that this does not spin."""
    async with asyncio.timeout(PROCESS_DEADLINE):
        while True:
            answer = await probe.get("/healthz/ready")
            if answer.status_code == status:
                found: dict[str, Any] = answer.json()
                return found


@pytest.mark.parametrize(
    ("environ", "code", "said"),
    [
        ({"LUCIUS_CONCURRENCY": "many"}, 2, "LUCIUS_CONCURRENCY"),
        ({"LUCIUS_DEDUP_STORE": "file:///x"}, 2, "LUCIUS_DEDUP_STORE"),
        ({"LUCIUS_WORKSPACE_ROOT": "/proc/nowhere"}, 3, "cannot start"),
    ],
)
async def test_a_start_that_cannot_succeed_says_why(
    tmp_path: Path, environ: dict[str, str], code: int, said: str
) -> None:
    async with open_yard(tmp_path, [SERVICE], LOCK) as yard:
        process, log = await yard.start(SERVICE, **environ)
        async with asyncio.timeout(PROCESS_DEADLINE):
            out, _ = await process.communicate()
        assert process.returncode == code, log.read_text()
        assert out == b""
        assert said in log.read_text()
        assert "Traceback" not in log.read_text()


FAILING_HOOK = """
from lucius_sdk import Service

service = Service("ocr")


@service.on_start
def load() -> None:
    raise RuntimeError("no model at https://user:hunter2@models.example; install one")


@service.step("OCR")
def execute(ctx) -> None: ...


service.run()
"""


async def test_a_start_hook_that_raises_is_told_without_its_secrets(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(FAILING_HOOK)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        program,
        cwd=tmp_path,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "LUCIUS_HEALTH_PORT": "0", "PYTHONPATH": str(ROOT)},
    )
    async with asyncio.timeout(PROCESS_DEADLINE):
        _, said = await process.communicate()
    assert process.returncode == 3
    assert b"ocr cannot start: a hook raised RuntimeError: no model at" in said
    assert b"hunter2" not in said
