"""The invoker over HTTP, against a real server on a socket."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.invoker.client import HttpInvoker
from lucius_orchestrator.ports.invoker import (
    AttemptName,
    InvokerError,
    InvokerRefused,
    InvokerUnavailable,
)
from tests.temporal.story import Story

KEY = "credential-" + "k" * 32
WHEN = datetime(2026, 1, 1, tzinfo=UTC)
ATTEMPT = AttemptName("job_1", "acme", "s0", 1, "f" * 32)
NEXT = Story().open()
OK = {"status": "ok", "next": NEXT}


class Desk:
    """Answers everything with what a test has put here, and keeps what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.answer: Any = OK
        self.asked: list[tuple[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections: set[object] = set()

    async def serve(self, request: web.Request) -> web.Response:
        self.asked.append((request.path, await request.json()))
        self.headers.append(dict(request.headers))
        assert request.transport is not None
        self.connections.add(request.transport.get_extra_info("peername"))
        body = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()
        return web.Response(status=self.status, body=body, content_type="application/json")


@asynccontextmanager
async def serving(handler: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
async def invoker(desk: Desk) -> AsyncIterator[HttpInvoker]:
    async with serving(desk.serve) as url, HttpInvoker(f"{url}/", KEY) as invoker:
        yield invoker


async def test_an_attempt_is_asked_for_as_the_internal_api_has_it(
    desk: Desk, invoker: HttpInvoker
) -> None:
    assert await invoker.open_attempt(ATTEMPT, WHEN) == NEXT
    identity = {"jobId": "job_1", "stepId": "s0", "tenant_id": "acme", "attempt_no": 1}
    identity |= {"lease_id": "f" * 32}
    expected = {**identity, "lease_expires_at": "2026-01-01T00:00:00Z"}
    assert desk.asked == [("/v1/internal/steps/attempt", expected)]
    assert desk.headers[0]["Authorization"] == f"Bearer {KEY}"


async def test_a_publish_names_the_attempt(desk: Desk, invoker: HttpInvoker) -> None:
    assert await invoker.publish(ATTEMPT) == NEXT
    path, body = desk.asked[0]
    assert path == "/v1/internal/publish"
    assert (body["directive"]["jobId"], body["directive"]["lease_id"]) == ("job_1", "f" * 32)


async def test_a_deadline_is_reported_to_its_job(desk: Desk, invoker: HttpInvoker) -> None:
    desk.answer = {**OK, "applied": True, "not_before": "2026-01-01T00:01:00Z"}
    reported = await invoker.report(ATTEMPT, "ACK_TIMEOUT", WHEN)
    assert reported == (NEXT, WHEN + timedelta(minutes=1))
    path, body = desk.asked[0]
    assert path == "/v1/internal/jobs/job_1/events"
    assert body == {
        "event": "ACK_TIMEOUT",
        "stepId": "s0",
        "attempt_no": 1,
        "lease_id": "f" * 32,
        "deadline": "2026-01-01T00:00:00Z",
    }


async def test_a_report_that_is_not_put_off(desk: Desk, invoker: HttpInvoker) -> None:
    assert (await invoker.report(ATTEMPT, "SLA_EXCEEDED", WHEN)).not_before is None


async def test_a_command_says_who_gave_it(desk: Desk, invoker: HttpInvoker) -> None:
    assert await invoker.command("job_1", "cancel", "temporal") == NEXT
    assert desk.asked == [("/v1/internal/jobs/job_1:cancel", {"by": "temporal"})]


async def test_connections_are_kept(desk: Desk, invoker: HttpInvoker) -> None:
    for _ in range(5):
        await invoker.publish(ATTEMPT)
    assert len(desk.connections) == 1


async def test_a_refusal_says_what_comes_next(desk: Desk, invoker: HttpInvoker) -> None:
    desk.status = 409
    desk.answer = {"code": "STALE_ATTEMPT", "detail": "attempt 2 is open", "next": NEXT}
    with pytest.raises(InvokerRefused, match="attempt 2 is open") as refused:
        await invoker.open_attempt(ATTEMPT, WHEN)
    assert (refused.value.code, refused.value.following) == (ErrorCode.STALE_ATTEMPT, NEXT)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, ErrorCode.JOB_NOT_FOUND),
        (401, ErrorCode.UNAUTHENTICATED),
        (403, ErrorCode.FORBIDDEN),
        (409, ErrorCode.STATE_CONFLICT),
    ],
)
async def test_a_refusal_need_not_say_what_comes_next(
    desk: Desk, invoker: HttpInvoker, status: int, code: ErrorCode
) -> None:
    desk.status, desk.answer = status, {"code": code, "detail": "no"}
    with pytest.raises(InvokerRefused) as refused:
        await invoker.publish(ATTEMPT)
    assert (refused.value.code, refused.value.following) == (code, None)


@pytest.mark.parametrize("status", [302, 408, 429, 500, 502, 503, 504])
async def test_what_passes_is_tried_again_later(
    desk: Desk, invoker: HttpInvoker, status: int
) -> None:
    desk.status, desk.answer = status, {"code": "UNAVAILABLE", "next": NEXT}
    with pytest.raises(InvokerUnavailable, match=str(status)):
        await invoker.publish(ATTEMPT)


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (200, b"<html>"),
        (200, b"[]"),
        (200, {}),
        (200, {"next": None}),
        (200, b"\xff"),
        (404, b"<html>not found</html>"),
        (404, {"detail": "Not Found"}),
        (409, {"code": "OF_ANOTHER_RELEASE", "next": NEXT}),
        (409, {"code": ["STALE_ATTEMPT"]}),
        (409, {"code": "STALE_ATTEMPT", "next": "soon"}),
    ],
)
async def test_what_is_not_the_invokers_answer_is_tried_again_later(
    desk: Desk, invoker: HttpInvoker, status: int, answer: Any
) -> None:
    desk.status, desk.answer = status, answer
    with pytest.raises(InvokerUnavailable):
        await invoker.publish(ATTEMPT)


async def test_a_time_that_cannot_be_read_is_no_answer(desk: Desk, invoker: HttpInvoker) -> None:
    desk.answer = {**OK, "not_before": "soon"}
    with pytest.raises(InvokerUnavailable):
        await invoker.report(ATTEMPT, "ACK_TIMEOUT", WHEN)


async def test_an_invoker_that_is_away_is_told_as_such() -> None:
    async with HttpInvoker("http://127.0.0.1:1", KEY) as invoker:
        with pytest.raises(InvokerUnavailable, match="Connect call failed"):
            await invoker.publish(ATTEMPT)


async def test_an_invoker_that_does_not_answer_is_away() -> None:
    released = asyncio.Event()

    async def silent(request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    async with serving(silent) as url:
        short = timedelta(milliseconds=100)
        async with HttpInvoker(url, KEY, timeout=short) as invoker:
            with pytest.raises(InvokerUnavailable, match="in time"):
                await invoker.publish(ATTEMPT)
        released.set()


@pytest.mark.parametrize(("status", "code"), [(401, "UNAUTHENTICATED"), (503, "UNAVAILABLE")])
async def test_neither_credential_nor_lease_is_told(
    desk: Desk,
    invoker: HttpInvoker,
    caplog: pytest.LogCaptureFixture,
    status: int,
    code: str,
) -> None:
    desk.status, desk.answer = status, {"code": code, "detail": "no"}
    with caplog.at_level(logging.DEBUG), pytest.raises(InvokerError) as failed:
        await invoker.publish(ATTEMPT)
    said = f"{failed.value!r} {failed.value.__cause__!r} {caplog.text} {invoker!r}"
    assert KEY not in said
    assert ATTEMPT.lease_id not in said
