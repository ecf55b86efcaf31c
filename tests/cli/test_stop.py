"""How a control plane stops: nothing that was answered is lost, nobody holds it up."""

import asyncio
import signal
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger
from tests.cli.test_up import ENVELOPE, Plane, running
from tests.runner.deadlines import PROCESS_DEADLINE

CLIENTS = 16


async def submit_until_it_stops(plane: Plane, first: asyncio.Event, accepted: list[str]) -> None:
    async with httpx.AsyncClient(base_url=plane.url, timeout=PROCESS_DEADLINE) as http:
        for number in range(100_000):
            request: dict[str, Any] = {**ENVELOPE, "idempotency_key": f"{id(http)}-{number}"}
            try:
                answer = await http.post("/v1/orchestrate", json=request)
            except httpx.TransportError:
                return
            assert answer.status_code == 202
            accepted.append(answer.json()["jobId"])
            first.set()


async def test_what_was_answered_before_the_stop_is_in_the_ledger(tmp_path: Path) -> None:
    accepted: list[str] = []
    first = asyncio.Event()
    with running(tmp_path, "up", "--port", "0", "--data", "data") as plane:
        async with asyncio.timeout(PROCESS_DEADLINE), asyncio.TaskGroup() as clients:
            for _ in range(CLIENTS):
                clients.create_task(submit_until_it_stops(plane, first, accepted))
            await first.wait()
            plane.process.send_signal(signal.SIGTERM)
        assert plane.process.wait(timeout=PROCESS_DEADLINE) == 0
    ledger = await SqliteLedger.open(tmp_path / "data" / "ledger.db")
    missing = [job_id for job_id in accepted if await ledger.load(job_id) is None]
    await ledger.close()
    assert missing == []


@pytest.mark.check
async def test_a_client_that_watches_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    """The grace is far longer than the test waits."""
    grace = {"LUCIUS_SHUTDOWN_GRACE_SECONDS": "600"}
    with running(tmp_path, "up", "--port", "0", "--data", "data", **grace) as plane:
        async with (
            asyncio.timeout(PROCESS_DEADLINE),
            httpx.AsyncClient(base_url=plane.url, timeout=PROCESS_DEADLINE) as http,
        ):
            job_id = (await http.post("/v1/orchestrate", json=ENVELOPE)).json()["jobId"]
            async with http.stream("GET", f"/v1/jobs/{job_id}/stream") as stream:
                lines = stream.aiter_lines()
                assert (await anext(lines)).startswith("id: ")
                plane.process.send_signal(signal.SIGTERM)
                async for _ in lines:
                    pass
        assert plane.process.wait(timeout=PROCESS_DEADLINE) == 0


HALF_A_REQUEST = b"POST /v1/orchestrate HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"


@pytest.mark.check
def test_a_second_signal_does_not_cut_the_stop_short(tmp_path: Path) -> None:
    with running(tmp_path, "up", "--port", "0", "--data", "data") as plane:
        url = httpx.URL(plane.url)
        address = url.host, url.port or 0
        with socket.create_connection(address) as client:
            client.sendall(HALF_A_REQUEST)  # it is waited for
            plane.process.send_signal(signal.SIGTERM)
            until_it_takes_no_more(address)
            plane.process.send_signal(signal.SIGTERM)
        assert plane.process.wait(timeout=PROCESS_DEADLINE) == 0


def until_it_takes_no_more(address: tuple[str, int]) -> None:
    deadline = time.monotonic() + PROCESS_DEADLINE
    while time.monotonic() < deadline:
        try:
            socket.create_connection(address, timeout=PROCESS_DEADLINE).close()
        except (ConnectionRefusedError, ConnectionResetError):
            return
    raise AssertionError("it still takes connections")
