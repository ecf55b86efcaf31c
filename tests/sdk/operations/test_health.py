"""Probes are answered at once from what is known; what is away is known within seconds."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from lucius_sdk.clock import SystemClock
from lucius_sdk.health import MAX_HEAD, MOST_CONNECTIONS, HealthServer
from lucius_sdk.health import PATIENCE as CLIENT_PATIENCE
from lucius_sdk.readiness import INTERVAL, PATIENCE, Readiness
from lucius_sdk.testing.clock import FakeClock
from tests.runner.deadlines import DEADLINE

MOST_LATE = 10.0
"""How long `ready` may take to turn false."""


class Thing:
    """Something that a service needs, which tests take away."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.hanging: asyncio.Event | None = None
        self.asked = 0
        self.answered = 0

    async def __call__(self) -> None:
        self.asked += 1
        if self.hanging is not None:
            await self.hanging.wait()
        self.answered += 1
        if self.error is not None:
            raise self.error


class Stage:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.bus, self.store = Thing(), Thing()
        self.is_live = True
        self.metrics: Callable[[], bytes] = lambda: b"lucius_up 1\n"
        self.server = HealthServer(
            "127.0.0.1",
            0,
            lambda: self.is_live,
            {"bus": self.bus, "store": self.store},
            lambda: self.metrics(),
            self.clock,
        )

    async def ask(self, path: str) -> tuple[int, Any]:
        status, _, body = await self.exchange(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return status, json.loads(body)

    async def exchange(self, request: bytes) -> tuple[int, str, bytes]:
        async with asyncio.timeout(DEADLINE):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
            writer.write(request)
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), head.decode(), body

    async def ready(self) -> dict[str, bool]:
        _, said = await self.ask("/healthz/ready")
        return {check["name"]: check["ok"] for check in said["checks"]}

    async def pass_time(self, seconds: float, step: float = 0.5) -> None:
        for _ in range(round(seconds / step)):
            self.clock.advance(step)
            await turns()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@asynccontextmanager
async def started() -> AsyncIterator[Stage]:
    stage = Stage()
    await stage.server.start()
    await turns()
    try:
        yield stage
    finally:
        await stage.server.stop()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with started() as stage:
        yield stage


async def test_a_service_that_has_what_it_needs_is_ready(stage: Stage) -> None:
    assert await stage.ask("/healthz/live") == (200, {"status": "live"})
    status, said = await stage.ask("/healthz/ready")
    assert (status, said["status"]) == (200, "ready")
    assert said["checks"][0] == {"name": "bus", "ok": True, "detail": "answers"}


async def test_nothing_is_ready_before_it_was_looked_at() -> None:
    stage = Stage()
    stage.bus.hanging = asyncio.Event()
    await stage.server.start()
    await turns()
    status, said = await stage.ask("/healthz/ready")
    assert (status, said["checks"][0]["detail"]) == (503, "not looked at yet")
    assert await stage.ask("/healthz/live") == (200, {"status": "live"})
    await stage.server.stop()


@pytest.mark.parametrize("manner", ["fails", "hangs"])
async def test_ready_turns_false_in_time_when_something_goes_away_and_true_when_it_is_back(
    stage: Stage, manner: str
) -> None:
    if manner == "fails":
        stage.store.error = ConnectionError("gone")
    else:
        stage.store.hanging = asyncio.Event()
    await stage.pass_time(MOST_LATE)
    assert await stage.ready() == {"bus": True, "store": False}
    if stage.store.hanging is not None:
        stage.store.hanging.set()
    stage.store.error = stage.store.hanging = None
    await stage.pass_time(INTERVAL + PATIENCE)
    assert await stage.ready() == {"bus": True, "store": True}


async def test_the_longest_way_to_not_ready_is_within_the_contract() -> None:
    assert INTERVAL + PATIENCE < MOST_LATE


async def test_a_hanging_look_is_not_repeated_and_holds_up_no_other(stage: Stage) -> None:
    stage.store.hanging = asyncio.Event()
    await stage.pass_time(60)
    assert stage.store.asked - stage.store.answered == 1
    assert stage.bus.answered >= 60 / INTERVAL - 1
    status, said = await stage.ask("/healthz/ready")
    assert (status, said["checks"][1]["detail"]) == (503, "no answer for 3 s")


async def test_what_is_said_of_a_failure_holds_no_secret(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.bus.error = ConnectionError("amqps://root:hunter2@bus refused")
    with caplog.at_level(logging.INFO, "lucius_sdk"):
        await stage.pass_time(INTERVAL + 1)
    _, said = await stage.ask("/healthz/ready")
    assert said["checks"][0]["detail"] == "ConnectionError: amqps://***@bus refused"
    assert all("hunter2" not in str(vars(record)) for record in caplog.records)


async def test_a_change_is_logged_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "lucius_sdk"):
        stage.bus.error = OSError("away")
        await stage.pass_time(30)
        stage.bus.error = None
        await stage.pass_time(30)
    found = [(record.message, vars(record)["check"]) for record in caplog.records]
    assert found == [("health.lost", "bus"), ("health.found", "bus")]


async def test_a_service_that_drains_is_live_and_not_ready(stage: Stage) -> None:
    stage.server.draining()
    status, said = await stage.ask("/healthz/ready")
    assert (status, said["status"]) == (503, "draining")
    assert (await stage.ask("/healthz/live"))[0] == 200


async def test_a_service_that_has_stopped_is_neither_live_nor_ready(stage: Stage) -> None:
    stage.is_live = False
    assert await stage.ask("/healthz/live") == (503, {"status": "stopped"})
    assert (await stage.ask("/healthz/ready"))[0] == 503


async def test_metrics_are_given_as_they_are(stage: Stage) -> None:
    status, head, body = await stage.exchange(b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (status, body) == (200, b"lucius_up 1\n")
    assert "text/plain; version=0.0.4" in head


async def test_an_error_is_answered_and_logged(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> bytes:
        raise RuntimeError("no numbers today")

    stage.metrics = broken
    assert (await stage.ask("/metrics"))[0] == 500
    assert "health.failed" in caplog.messages


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"HEAD /healthz/live HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        (b"POST /healthz/live HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /healthz/live HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 3 + b"\r\n\r\n", 400),
        (b"GET /healthz/live HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 3 * MAX_HEAD, 431),
        (b"GET /healthz/live HTTP/1.1\r\nHost: x\r\n\r\n" * 3, 200),
    ],
)
async def test_every_request_has_an_answer(stage: Stage, request_bytes: bytes, status: int) -> None:
    found, head, body = await stage.exchange(request_bytes)
    assert found == status
    assert "Connection: close" in head
    assert bool(body) is not request_bytes.startswith(b"HEAD")
    assert await stage.ask("/healthz/live") == (200, {"status": "live"})


@pytest.mark.parametrize("sent", [b"", b"GET /healthz/live HT"])
async def test_a_client_that_leaves_early_troubles_nobody(stage: Stage, sent: bytes) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", stage.server.port)
    writer.write(sent)
    writer.transport.abort()
    assert await stage.ask("/healthz/live") == (200, {"status": "live"})


@pytest.mark.parametrize("sent", [b"", b"GET /healthz/live HT"])
async def test_a_slow_client_is_cut_off(stage: Stage, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.server.port)
    writer.write(sent)
    assert await stage.ask("/healthz/live") == (200, {"status": "live"})
    stage.clock.advance(CLIENT_PATIENCE)
    assert await is_cut(reader)
    writer.close()


async def test_a_client_that_does_not_leave_is_cut_off(stage: Stage) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.server.port)
    writer.write(b"GET /healthz/live HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(DEADLINE):
        assert (await reader.read()).endswith(b"}")
    stage.clock.advance(CLIENT_PATIENCE)
    async with asyncio.timeout(DEADLINE):
        with suppress(ConnectionError):
            while True:
                writer.write(b"still here")
                await writer.drain()
    writer.close()


async def test_no_more_connections_are_held_than_a_few(stage: Stage) -> None:
    opened = [
        await asyncio.open_connection("127.0.0.1", stage.server.port)
        for _ in range(MOST_CONNECTIONS + 1)
    ]
    assert await is_cut(opened[-1][0])
    for _, writer in opened:
        writer.close()
    async with asyncio.timeout(DEADLINE):
        while not await is_served(stage):
            await turns()


async def is_served(stage: Stage) -> bool:
    try:
        return await stage.ask("/healthz/live") == (200, {"status": "live"})
    except (IndexError, OSError):
        return False


async def is_cut(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(DEADLINE):
        try:
            return await reader.read() == b""
        except ConnectionResetError:
            return True


async def test_stopping_twice_is_nothing_and_ends_what_is_open() -> None:
    async with started() as stage:
        port = stage.server.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await is_served(stage)
        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(stage.server.stop(), stage.server.stop())
            await stage.server.stop()
        assert await is_cut(reader)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        asked = stage.bus.asked
        await stage.pass_time(10)
        assert stage.bus.asked == asked


async def test_stopping_does_not_wait_for_a_look_that_never_ends() -> None:
    released = asyncio.Event()

    async def stubborn() -> None:
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()

    readiness = Readiness({"stubborn": stubborn}, SystemClock())
    readiness.start()
    await turns()
    async with asyncio.timeout(DEADLINE):
        await readiness.stop()
    released.set()
    await turns()


async def test_a_port_that_is_taken_is_an_error_at_the_start(stage: Stage) -> None:
    second = HealthServer("127.0.0.1", stage.server.port, lambda: True, {}, bytes, stage.clock)
    with pytest.raises(OSError, match=str(stage.server.port)):
        await second.start()
    await second.stop()


async def test_a_look_that_cancels_itself_is_a_failure_like_any_other() -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    looks: dict[str, Callable[[], Awaitable[None]]] = {"odd": cancelled}
    readiness = Readiness(looks, FakeClock())
    readiness.start()
    await turns()
    assert [check.detail for check in readiness.checks] == ["the look was cancelled"]
    await readiness.stop()
