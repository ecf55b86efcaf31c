"""Requests are counted by the template of their route, whatever clients send."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.responses import StreamingResponse
from starlette.routing import Mount, Route

from lucius_orchestrator.observability.http import MeasuredHttp, Message, Receive, Scope, Send
from lucius_orchestrator.observability.metrics import PrometheusMetrics
from lucius_orchestrator.observability.tables import HTTP_REQUESTS, HTTP_SECONDS
from tests.runner.deadlines import DEADLINE


class Ticks:
    """A timer that moves a second each time that it is asked."""

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        self._now += 1
        return self._now


def api() -> FastAPI:
    router = APIRouter(prefix="/v1")

    @router.get("/jobs/{job_id}")
    async def read(job_id: str) -> dict[str, str]:
        return {"jobId": job_id}

    @router.post("/jobs/{job_id}:cancel")
    async def cancel(job_id: str) -> None: ...

    @router.get("/broken")
    async def broken() -> None:
        raise RuntimeError("broken")

    @router.get("/stream")
    async def stream() -> StreamingResponse:
        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(3):
                yield b"x"

        return StreamingResponse(chunks())

    app = FastAPI()
    for path in ("/v1/orchestrate", "/v1/commands", "/v1/raw/{name}"):
        app.router.routes.append(Route(path, Plain(), methods=["POST"]))
    both = Plain()
    for path in ("/v1/ack", "/v1/result"):
        app.router.routes.append(Route(path, both, methods=["POST"]))
    app.router.routes.append(Mount("/mounted", Plain()))
    app.include_router(router)
    return app


class Plain:
    """An endpoint that is an ASGI app itself."""

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def ask(app: Any, *requests: tuple[str, str]) -> list[int]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return [(await client.request(method, path)).status_code for method, path in requests]


def count(metrics: PrometheusMetrics, method: str, route: str, status: str) -> float | None:
    labels = {"method": method, "route": route, "status": status}
    return metrics.registry.get_sample_value(HTTP_REQUESTS, labels)


async def test_the_label_is_the_template_of_the_route() -> None:
    metrics = PrometheusMetrics()
    app = MeasuredHttp(api(), metrics)
    await ask(app, ("GET", "/v1/jobs/a"), ("GET", "/v1/jobs/b"), ("POST", "/v1/jobs/a:cancel"))
    assert count(metrics, "GET", "/v1/jobs/{job_id}", "200") == 2
    assert count(metrics, "POST", "/v1/jobs/{job_id}:cancel", "200") == 1


async def test_routes_whose_endpoint_is_an_app_have_templates_too() -> None:
    metrics = PrometheusMetrics()
    paths = ["/v1/orchestrate", "/v1/commands", "/v1/raw/a", "/v1/raw/b", "/v1/ack", "/v1/result"]
    await ask(MeasuredHttp(api(), metrics), *[("POST", path) for path in paths])
    counted = {path: count(metrics, "POST", path, "202") for path in (*paths, "/v1/raw/{name}")}
    assert counted == {
        "/v1/orchestrate": 1,
        "/v1/commands": 1,
        "/v1/ack": 1,
        "/v1/result": 1,
        "/v1/raw/{name}": 2,
        "/v1/raw/a": None,
        "/v1/raw/b": None,
    }


async def test_what_is_under_a_mounted_app_is_one_label() -> None:
    metrics = PrometheusMetrics()
    await ask(MeasuredHttp(api(), metrics), ("GET", "/mounted/a"), ("GET", "/mounted/b"))
    assert count(metrics, "GET", "unmatched", "202") == 2


async def test_unknown_paths_and_methods_are_one_label_each() -> None:
    metrics = PrometheusMetrics()
    app = MeasuredHttp(api(), metrics)
    strange = [("GET", "/wp-admin"), ("GET", "/v1/nothing"), ("PURGE", "/x"), ("BREW", "/y")]
    assert await ask(app, *strange) == [404] * 4
    assert count(metrics, "GET", "unmatched", "404") == 2
    assert count(metrics, "OTHER", "unmatched", "404") == 2


async def test_a_method_that_a_route_does_not_have_is_that_routes() -> None:
    metrics = PrometheusMetrics()
    await ask(MeasuredHttp(api(), metrics), ("DELETE", "/v1/jobs/a"))
    assert count(metrics, "DELETE", "/v1/jobs/{job_id}", "405") == 1


async def test_what_breaks_is_counted_as_such() -> None:
    metrics = PrometheusMetrics()
    assert await ask(MeasuredHttp(api(), metrics), ("GET", "/v1/broken")) == [500]
    assert count(metrics, "GET", "/v1/broken", "500") == 1


async def test_an_app_that_fails_before_it_answers_is_a_500() -> None:
    metrics = PrometheusMetrics()

    async def fail(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        await MeasuredHttp(fail, metrics)(_get("/x"), _receive, _send)
    assert count(metrics, "GET", "unmatched", "500") == 1


async def test_a_client_that_does_not_wait_is_counted_without_a_status() -> None:
    metrics, asked = PrometheusMetrics(), asyncio.Event()

    async def think(scope: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(MeasuredHttp(think, metrics)(_get("/x"), _receive, _send))
    async with asyncio.timeout(DEADLINE):
        await asked.wait()
        task.cancel()
        await asyncio.wait([task])
    assert count(metrics, "GET", "unmatched", "none") == 1


async def test_the_time_is_that_of_the_whole_answer() -> None:
    metrics = PrometheusMetrics()
    await ask(MeasuredHttp(api(), metrics, Ticks()), ("GET", "/v1/stream"), ("GET", "/v1/stream"))
    labels = {"route": "/v1/stream"}
    assert metrics.registry.get_sample_value(HTTP_SECONDS + "_sum", labels) == 2
    assert metrics.registry.get_sample_value(HTTP_SECONDS + "_count", labels) == 2


async def test_what_is_not_http_passes() -> None:
    metrics, seen = PrometheusMetrics(), []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    await MeasuredHttp(app, metrics)({"type": "lifespan"}, _receive, _send)
    assert seen == ["lifespan"]
    assert b"lucius_http_requests_total{" not in metrics.render()


def _get(path: str) -> Scope:
    return {"type": "http", "method": "GET", "path": path, "headers": []}


async def _receive() -> Message:
    return {"type": "http.request"}


async def _send(message: Message) -> None: ...
