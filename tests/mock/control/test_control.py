"""The mock as tests in other languages use it: a process, and HTTP."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from contract_tests.contract import load_contract
from contract_tests.process import ServiceProcess
from orchestrator_mock.control import Control
from orchestrator_mock.recording import Recording
from orchestrator_mock.stage import Stage
from tests.mock.control.conftest import REFERENCE
from tests.runner.deadlines import PROCESS_DEADLINE

ROOT = Path(__file__).parents[3]
READY = re.compile(r"ready control=(http://127\.0\.0\.1:\d+) bus=(sb://127\.0\.0\.1:\d+)\n")


class Client:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self._session.request(method, path, json=body) as response:
            return response.status, await response.json()


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[Client]:
    """Of a control API before a sound service."""
    control = Control(stage)
    await control.open()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{control.port}") as session:
            yield Client(session)
    finally:
        await control.close()


async def test_a_directive_is_sent_followed_and_sent_again(client: Client) -> None:
    status, sent = await client("POST", "/directives", {"payload": {"ending": "?"}})
    assert status == 201
    job = sent["jobId"]
    _, recorded = await client("GET", f"/recording?job={job}&what=RESULT&wait=30")
    assert recorded["entries"][0]["body"]["status"] == "SUCCEEDED"
    await client("POST", f"/jobs/{job}:duplicate")
    _, late = await client(
        "GET", f"/recording?job={job}&since={recorded['next']}&what=completed&wait=30"
    )
    assert late["entries"]
    _, shown = await client("GET", f"/jobs/{job}")
    assert shown["reads"] == {"input.txt": 1}
    assert shown["state"] == "SUCCEEDED"


async def test_a_backlog_is_counted(client: Client) -> None:
    for number in range(5):
        await client("POST", "/directives", {"held": True, "tenant_id": f"tenant-{number}"})
    wanted = {"sent": 5, "locked": 3, "acknowledged": 3, "finished": 0}
    async with asyncio.timeout(PROCESS_DEADLINE):
        while (await client("GET", "/backlog")) != (200, wanted):
            await asyncio.sleep(0.05)


async def test_faults_are_listed_switched_on_and_off(client: Client) -> None:
    _, faults = await client("GET", "/faults")
    assert {"callback-500", "bus-away", "storage-cut"} <= {each["name"] for each in faults["known"]}
    await client("POST", "/faults", {"name": "callback-500", "count": 3})
    await client("POST", "/faults", {"name": "settlement-lost", "count": 2})
    await client("POST", "/faults", {"name": "reply-dropped", "count": None})
    _, faults = await client("GET", "/faults")
    active = {each["name"]: each["count"] for each in faults["active"]}
    assert active == {"callback-500": 3, "settlement-lost": 2, "reply-dropped": None}
    await client("DELETE", "/faults")
    _, faults = await client("GET", "/faults")
    assert faults["active"] == []


async def test_a_script_over_http_is_played_or_told_where_it_failed(client: Client) -> None:
    good = [{"send": {}}, {"expect": {"of": "last", "what": "RESULT", "status": "SUCCEEDED"}}]
    assert await client("POST", "/script", good) == (200, {"played": True})
    bad = [{"send": {}}, {"expect": {"of": "last", "what": "RESULT", "times": 7}}]
    status, told = await client("POST", "/script", bad)
    assert status == 409
    assert told["detail"].startswith("step 2, expect: 0 came, not 7")


async def test_a_seed_over_http_is_answered_with_what_it_found(client: Client) -> None:
    status, found = await client("POST", "/misbehave", {"seed": 5, "jobs": 4})
    assert (status, found["seed"], found["problems"]) == (200, 5, [])


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "told"),
    [
        ("POST", "/directives", {"kind": "odd"}, 400, "/kind"),
        ("POST", "/directives", {"what": 1}, 400, "/what"),
        ("POST", "/faults", {"name": "rain"}, 400, "there is no fault 'rain'"),
        ("GET", "/jobs/job_0", None, 404, "there is no job job_0"),
        ("POST", "/jobs/job_0:cancel", None, 404, "there is no job job_0"),
        ("POST", "/script", {"send": {}}, 400, "cannot be read"),
    ],
)
async def test_what_the_caller_got_wrong_is_told(
    client: Client, method: str, path: str, body: Any, status: int, told: str
) -> None:
    found, answer = await client(method, path, body)
    assert found == status
    assert told in answer["detail"]


@asynccontextmanager
async def mock_up(*arguments: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str, str]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "lucius_cli", "mock", "up", "--service", "upper", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("LUCIUS_")},
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PROCESS_DEADLINE):
            ready = READY.fullmatch((await process.stdout.readline()).decode())
        assert ready is not None
        yield process, ready[1], ready[2]
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


@asynccontextmanager
async def reference_service(bus: str, folder: Path) -> AsyncIterator[None]:
    connection = (
        f"Endpoint={bus};SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true;"
    )
    environment = {
        "folder": str(REFERENCE.parent),
        "state": str(folder),
        "LUCIUS_SERVICEBUS_CONNECTION": connection,
        "LUCIUS_SERVICE": "upper",
        "LUCIUS_WORKSPACE_ROOT": str(folder / "workspace"),
        "LUCIUS_ALLOW_PRIVATE_ADDRESSES": "on",
        "LUCIUS_OUTPUT_ROOTS": str(folder / "workspace"),
        "LUCIUS_HEALTH_PORT": "0",
        "LUCIUS_DEDUP_STORE": f"sqlite://{folder}/dedup.db",
    }
    loaded = load_contract(REFERENCE)
    service = ServiceProcess(loaded, environment, folder / "log", Recording())
    await service.launch()
    try:
        yield
    finally:
        await service.kill()


async def test_the_command_plays_a_script_and_ends(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(
        "- send: {as: it}\n- expect: {of: it, what: RESULT, status: SUCCEEDED, within: 50}\n"
    )
    arguments = ("--workspace", str(tmp_path / "workspace"), "--script", str(script))
    async with mock_up(*arguments) as (process, _, bus), reference_service(bus, tmp_path):
        async with asyncio.timeout(PROCESS_DEADLINE):
            code = await process.wait()
        assert process.stdout is not None
        assert (await process.stdout.read()).decode().startswith("the script was played")
    assert code == 0


async def test_the_command_stops_at_a_signal() -> None:
    async with mock_up() as (process, control, _):
        async with aiohttp.ClientSession() as session, session.get(f"{control}/healthz/live") as ok:
            assert ok.status == 200
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PROCESS_DEADLINE):
            assert await process.wait() == 0
