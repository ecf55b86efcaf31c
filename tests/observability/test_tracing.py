"""Spans stand under the trace of the request that made the job; off, there is nothing at all."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from fastapi import FastAPI, Request
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from lucius_contract.messages import ResultStatus
from lucius_orchestrator.engine.telemetry import SUBMITTED, Telemetry
from lucius_orchestrator.observability.metrics import PrometheusMetrics
from lucius_orchestrator.observability.spans import SpanTracing, resource
from lucius_orchestrator.observability.tables import EVENTS
from lucius_orchestrator.observability.tracing import NoTracing, TracedHttp, configure_tracing
from lucius_orchestrator.observability.work import TracedTelemetry
from tests.engine.plane import TOPIC, TRACE, Plane, ack, heartbeat, one_step, request, result
from tests.observability.test_http import ask
from tests.runner.deadlines import DEADLINE, PROCESS_DEADLINE

TRACE_ID, PARENT_ID = TRACE.split("-")[1:3]
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
OFF_AND_NOT_LOADED = """
import sys
from lucius_orchestrator.observability.tracing import TracedHttp, configure_tracing
tracing = configure_tracing({})
TracedHttp(None, tracing)
tracing.telemetry(None)
sys.exit(any(name.partition(".")[0] == "opentelemetry" for name in sys.modules))
"""


class Spans:
    """Tracing whose spans tests can look at."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracing = SpanTracing(provider)

    def all(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span


def parent_of(span: ReadableSpan) -> tuple[str, str] | None:
    parent = span.parent
    return parent and (f"{parent.trace_id:032x}", f"{parent.span_id:016x}")


def seconds_of(span: ReadableSpan) -> float:
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.end_time - span.start_time) / 1e9


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.fixture
def spans(plane: Plane) -> Spans:
    made = Spans()
    plane.engine.telemetry = made.tracing.telemetry(None)
    return made


def test_off_nothing_of_opentelemetry_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OFF_AND_NOT_LOADED], timeout=PROCESS_DEADLINE, check=False
    )
    assert done.returncode == 0


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {ENDPOINT: " "},
        {ENDPOINT: "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
        {ENDPOINT: "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_SERVICE_NAME": "x"},
    ],
)
def test_it_is_off_unless_an_exporter_is_set(environ: dict[str, str]) -> None:
    assert not configure_tracing(environ).is_on


def test_a_protocol_that_is_not_spoken_is_told(caplog: pytest.LogCaptureFixture) -> None:
    environ = {ENDPOINT: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    assert not configure_tracing(environ).is_on
    (record,) = caplog.records
    assert (record.getMessage(), vars(record)["protocol"]) == ("tracing.unsupported", "grpc")
    assert {"tracing.unsupported", "tracing.failed"} <= {info.name for info in EVENTS}


async def test_off_the_engine_has_its_plain_voice_and_requests_pass_untouched() -> None:
    tracing = configure_tracing({})
    assert isinstance(tracing, NoTracing)
    assert type(tracing.telemetry(None)) is Telemetry
    seen: list[str | None] = []
    await ask(TracedHttp(api(seen), tracing), ("GET", "/v1/jobs/a"))
    assert seen == [None]
    await tracing.shutdown()


def api(seen: list[str | None]) -> FastAPI:
    app = FastAPI()

    @app.get("/v1/jobs/{job_id}")
    async def read(job_id: str, request: Request) -> None:
        seen.append(request.headers.get("traceparent"))
        if job_id == "broken":
            raise RuntimeError("password=S3cr3t")

    @app.get("/healthz/live")
    async def live() -> None: ...

    return app


async def test_a_request_is_a_span_that_what_follows_continues() -> None:
    spans, seen = Spans(), list[str | None]()
    await ask(TracedHttp(api(seen), spans.tracing), ("GET", "/v1/jobs/a"))
    span = spans.one("GET /v1/jobs/{job_id}")
    assert span.kind is SpanKind.SERVER
    assert span.parent is None
    assert said(span)["http.response.status_code"] == 200
    assert seen[0] is not None
    assert seen[0].startswith(f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-")


async def test_a_request_continues_the_trace_that_it_names() -> None:
    spans, seen = Spans(), list[str | None]()
    app = TracedHttp(api(seen), spans.tracing)
    headers = [(b"traceparent", TRACE.encode()), (b"accept", b"*/*")]
    scope = {"type": "http", "method": "GET", "path": "/v1/jobs/a", "headers": headers}
    await app({**scope, "query_string": b""}, _receive, _send)
    assert parent_of(spans.one("GET /v1/jobs/{job_id}")) == (TRACE_ID, PARENT_ID)
    assert seen[0] is not None
    assert seen[0].split("-")[1] == TRACE_ID
    assert seen[0] != TRACE


async def test_a_request_that_fails_is_a_failed_span_without_details() -> None:
    spans = Spans()
    await ask(TracedHttp(api([]), spans.tracing), ("GET", "/v1/jobs/broken"), ("GET", "/x"))
    span = spans.one("GET /v1/jobs/{job_id}")
    assert span.status.status_code is StatusCode.ERROR
    assert said(span)["error.type"] == "RuntimeError"
    assert "S3cr3t" not in span.to_json()
    assert spans.one("GET unmatched").status.is_unset


async def test_probes_are_no_spans() -> None:
    spans = Spans()
    await ask(TracedHttp(api([]), spans.tracing), ("GET", "/healthz/live"), ("GET", "/metrics"))
    assert spans.all() == []


async def test_each_part_of_an_attempt_is_a_span_of_the_jobs_trace(
    plane: Plane, spans: Spans
) -> None:
    job_id = await plane.submit()
    plane.later(seconds=1)
    directive = await plane.directive()
    plane.later(seconds=2)
    await plane.reply(ack(directive))
    await plane.reply(heartbeat(directive))
    plane.later(seconds=3)
    await plane.reply(result(directive))
    names = ["publish OCR", "ack OCR", "heartbeat OCR", "result OCR"]
    assert [span.name for span in spans.all()] == names
    assert {parent_of(span) for span in spans.all()} == {(TRACE_ID, PARENT_ID)}
    assert [seconds_of(spans.one(f"{what} OCR")) for what in ("publish", "ack", "result")] == [
        1,
        2,
        3,
    ]
    kinds = [span.kind for span in spans.all()]
    assert kinds == [SpanKind.PRODUCER, *[SpanKind.CONSUMER] * 3]
    attributes = said(spans.one("result OCR"))
    assert attributes["lucius.job_id"] == job_id
    assert attributes["lucius.verdict"] == "APPLIED"
    assert (attributes["lucius.step_id"], attributes["lucius.attempt_no"]) == ("step_01", 1)
    assert (attributes["lucius.tenant_id"], attributes["lucius.correlation_id"]) == ("acme", "c-0")
    assert directive.lease_id not in "".join(span.to_json() for span in spans.all())


async def test_a_reply_that_changed_nothing_is_a_moment_with_its_verdict(
    plane: Plane, spans: Spans
) -> None:
    directive = await plane.succeeded()
    await plane.reply(result(directive))
    await plane.reply(heartbeat(directive.model_copy(update={"lease_id": "guessed"})))
    *_, duplicate, stale = spans.all()
    assert said(duplicate)["lucius.verdict"] == "DUPLICATE"
    assert duplicate.status.is_unset
    assert said(stale)["lucius.verdict"] == "STALE_ATTEMPT"
    assert stale.status.status_code is StatusCode.ERROR
    assert seconds_of(stale) < DEADLINE


async def test_a_result_that_says_failure_is_a_failed_span(plane: Plane, spans: Spans) -> None:
    directive = await plane.working()
    await plane.reply(result(directive, ResultStatus.FAILED_FINAL))
    assert said(spans.one("result OCR"))["error.type"] == "ocr.BROKEN"


async def test_every_attempt_has_spans_of_its_own(plane: Plane, spans: Spans) -> None:
    directive = await plane.working()
    await plane.reply(result(directive, ResultStatus.FAILED_RETRY))
    plane.later(minutes=2)
    await plane.sweep_all()
    await plane.reply(ack(await plane.directive()))
    for what in ("publish OCR", "ack OCR"):
        assert [said(span)["lucius.attempt_no"] for span in spans.named(what)] == [1, 2]


async def test_a_directive_that_was_acknowledged_before_it_counted_as_sent_is_a_span(
    plane: Plane, spans: Spans
) -> None:
    job_id = await plane.submit()
    attempt = await plane.attempt(job_id)

    async def acknowledge(*_: Any) -> None:
        await plane.reply(ack(attempt))

    plane.bus_detour.after["publish"] = acknowledge
    await plane.dispatch()
    assert len(spans.named("publish OCR")) == len(spans.named("ack OCR")) == 1


async def test_a_directive_that_the_bus_refuses_is_a_failed_span(
    plane: Plane, spans: Spans
) -> None:
    await plane.submit(request(one_step(max_attempts=1)))
    plane.bus.refuse(TOPIC)
    await plane.dispatch()
    assert said(spans.one("publish OCR"))["error.type"] == "DISPATCH_FAILED"


async def test_the_engine_still_counts(plane: Plane) -> None:
    metrics = PrometheusMetrics()
    plane.engine.telemetry = Spans().tracing.telemetry(metrics)
    await plane.submit()
    assert metrics.registry.get_sample_value(SUBMITTED) == 1


class Failing(NoTracing):
    def record(self, spanned: object) -> None:
        raise RuntimeError(f"token=S3cr3t of {type(spanned).__name__}")


async def test_a_span_that_cannot_be_made_disturbs_nobody_and_is_told_once(
    plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    plane.engine.telemetry = TracedTelemetry(Failing())
    await plane.succeeded()
    told = [record for record in caplog.records if record.getMessage() == "tracing.failed"]
    assert [vars(record)["error"] for record in told] == ["RuntimeError: token=*** of Spanned"]


class Receiver:
    """An OTLP/HTTP endpoint on the loopback."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, ExportTraceServiceRequest]] = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.url = ""

    async def take(self, asked: web.Request) -> web.Response:
        export = ExportTraceServiceRequest()
        export.ParseFromString(await asked.read())
        self.requests.append((asked.path, export))
        await self.answers.wait()
        return web.Response(content_type="application/x-protobuf")


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver, app = Receiver(), web.Application()
    app.router.add_post("/{path:.*}", receiver.take)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield receiver
    receiver.answers.set()
    await runner.cleanup()


@pytest.mark.parametrize(
    ("variable", "path", "expected"),
    [(ENDPOINT, "/", "/v1/traces"), (TRACES_ENDPOINT, "/otlp/here", "/otlp/here")],
)
async def test_spans_arrive_at_the_endpoint(
    plane: Plane, variable: str, path: str, expected: str
) -> None:
    async with receiving() as receiver, asyncio.timeout(DEADLINE):
        tracing = configure_tracing({variable: receiver.url + path, "OTEL_SERVICE_NAME": "mine"})
        assert tracing.is_on
        plane.engine.telemetry = tracing.telemetry(None)
        await plane.succeeded()
        await tracing.shutdown(timedelta(seconds=DEADLINE))
    ((seen, export),) = receiver.requests
    assert seen == expected
    (spans,) = export.resource_spans
    names = {each.key: each.value.string_value for each in spans.resource.attributes}
    assert names["service.name"] == "mine"
    found = [span for scope in spans.scope_spans for span in scope.spans]
    assert [span.name for span in found] == ["publish OCR", "ack OCR", "result OCR"]
    assert {span.trace_id.hex() for span in found} == {TRACE_ID}


async def test_shutdown_does_not_wait_longer_than_it_may(plane: Plane) -> None:
    async with receiving() as receiver, asyncio.timeout(DEADLINE):
        receiver.answers.clear()
        tracing = configure_tracing({ENDPOINT: receiver.url})
        plane.engine.telemetry = tracing.telemetry(None)
        await plane.succeeded()
        await tracing.shutdown(timedelta(milliseconds=50))
        assert not receiver.answers.is_set()


def test_the_services_name_is_ours_unless_one_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(variable, raising=False)
    assert resource(None).attributes["service.name"] == "lucius-orchestrator"
    assert resource("mine").attributes["service.name"] == "mine"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=ours,team=docs")
    assert resource(None).attributes["service.name"] == "ours"
    assert resource(None).attributes["team"] == "docs"


async def _receive() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _send(message: Any) -> None: ...
