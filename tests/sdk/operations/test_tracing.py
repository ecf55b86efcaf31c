"""Replies continue the trace of their directive, whatever is set up and whatever it says."""

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextvars import copy_context
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lucius_sdk.tracing import Tracing, configure_tracing
from tests.runner.deadlines import PROCESS_DEADLINE
from tests.sdk.operations.directives import PARENT, TRACE, directive

FORM = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
OTEL = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
MALFORMED = (
    "",
    "junk",
    f"00-{TRACE}-{PARENT}",
    f"00-{TRACE.upper()}-{PARENT}-01",
    f"00-{'0' * 32}-{PARENT}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"ff-{TRACE}-{PARENT}-01",
    f"00-{TRACE}-{PARENT}-01-more",
    f"00-{TRACE}-{PARENT}-01\n",
)
texts = st.sampled_from(MALFORMED) | st.from_regex(
    r"[ \t]?(00|01|ff)-[0a]{30,32}-[0b]{16}-0[01](-x)?[ \t]?", fullmatch=True
)


def parts(traceparent: str) -> tuple[str, str, str]:
    found = FORM.fullmatch(traceparent)
    assert found is not None, traceparent
    return found[1], found[2], found[3]


def spans(exporter: InMemorySpanExporter) -> list[Any]:
    return list(exporter.get_finished_spans())


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def recording(exporter: InMemorySpanExporter) -> Iterator[Tracing]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield Tracing(provider)
    provider.shutdown()


@pytest.mark.parametrize("flags", ["00", "01"])
def test_without_a_recorder_the_work_is_a_child_with_an_id_of_its_own(flags: str) -> None:
    own = []
    for _ in range(2):
        with Tracing().step_span(directive(traceparent=f"00-{TRACE}-{PARENT}-{flags}")) as span:
            own.append(span.traceparent)
    assert [parts(each)[0::2] for each in own] == [(TRACE, flags)] * 2
    assert len({PARENT, *(parts(each)[1] for each in own)}) == 3


def test_a_recorded_span_is_a_child_that_says_what_was_worked_on(
    recording: Tracing, exporter: InMemorySpanExporter
) -> None:
    with recording.step_span(directive()) as step:
        pass
    (span,) = spans(exporter)
    assert span.name == "execute OCR"
    assert format(span.parent.span_id, "016x") == PARENT
    assert step.traceparent == f"00-{TRACE}-{span.context.span_id:016x}-01"
    assert span.attributes["lucius.job_id"] == "job_1"
    assert span.attributes["lucius.attempt_no"] == 2
    assert span.status.status_code is StatusCode.UNSET


def test_a_span_that_is_not_sampled_is_still_an_own_child() -> None:
    provider = TracerProvider(ALWAYS_OFF, shutdown_on_exit=False)
    with Tracing(provider).step_span(directive()) as step:
        trace_id, span_id, flags = parts(step.traceparent)
    assert (trace_id, flags) == (TRACE, "00")
    assert span_id != PARENT


def test_failures_are_on_the_span_by_code_or_by_what_was_raised(
    recording: Tracing, exporter: InMemorySpanExporter
) -> None:
    with recording.step_span(directive()) as step:
        step.failed("INPUT_INVALID")
    with pytest.raises(KeyError), recording.step_span(directive()):
        raise KeyError("x")
    found = [(span.status.status_code, span.attributes["error.type"]) for span in spans(exporter)]
    assert found == [(StatusCode.ERROR, "INPUT_INVALID"), (StatusCode.ERROR, "KeyError")]


@pytest.mark.parametrize("traceparent", MALFORMED)
def test_a_malformed_traceparent_starts_a_new_trace(traceparent: str, recording: Tracing) -> None:
    for tracing in (Tracing(), recording):
        with tracing.step_span(directive(traceparent=traceparent)) as step:
            trace_id, span_id, flags = parts(step.traceparent)
        assert trace_id not in (TRACE, "0" * 32)
        assert span_id not in (PARENT, "0" * 16)
        assert int(flags, 16) & 1
        assert parts(tracing.continued(traceparent))[0] != TRACE


def test_a_span_that_happens_to_be_current_is_not_the_parent(recording: Tracing) -> None:
    with recording.step_span(directive()) as outer:
        assert parts(recording.continued("junk"))[0] != TRACE
        with recording.step_span(directive(traceparent="junk")) as inner:
            assert parts(inner.traceparent)[0] != parts(outer.traceparent)[0]


@given(texts)
def test_a_traceparent_is_read_as_opentelemetry_reads_it(traceparent: str) -> None:
    context = TraceContextTextMapPropagator().extract({"traceparent": traceparent}, Context())
    expected = trace.get_current_span(context).get_span_context()
    # Its check is looser in one place: it lets a line break stand at the end.
    found = parts(Tracing().continued(traceparent))
    if expected.is_valid and not traceparent.endswith("\n"):
        assert found[0] == format(expected.trace_id, "032x")
        assert found[2] == format(expected.trace_flags, "02x")
    else:
        assert found[0] not in traceparent


def test_an_id_of_zero_is_never_made() -> None:
    tracing = Tracing(random_bits=lambda _: 0)
    assert parts(tracing.continued("junk")) == (f"{1:032x}", f"{1:016x}", "01")


@pytest.mark.parametrize("is_recording", [True, False])
def test_the_span_is_current_within_and_in_threads_that_got_the_context(
    is_recording: bool, recording: Tracing
) -> None:
    carried: dict[str, str] = {}
    with (recording if is_recording else Tracing()).step_span(directive()) as step:
        inject = TraceContextTextMapPropagator().inject
        thread = threading.Thread(target=copy_context().run, args=(inject, carried))
        thread.start()
        thread.join()
    assert carried["traceparent"] == step.traceparent
    assert not trace.get_current_span().get_span_context().is_valid


class Broken(trace.TracerProvider):
    def get_tracer(self, *_: Any, **__: Any) -> Any:
        return self

    def start_span(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no span today")


def test_a_recorder_that_fails_fails_no_work(caplog: pytest.LogCaptureFixture) -> None:
    with Tracing(Broken()).step_span(directive()) as step:
        assert parts(step.traceparent)[0] == TRACE
    assert "tracing.failed" in caplog.messages


@pytest.mark.parametrize(
    "environ",
    [
        {},
        OTEL | {"OTEL_SDK_DISABLED": "TRUE"},
        OTEL | {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": " "},
    ],
)
async def test_nothing_is_exported_unless_it_is_asked_for(environ: dict[str, str]) -> None:
    tracing = configure_tracing(environ, "ocr")
    assert type(tracing) is Tracing
    await tracing.shutdown()


def test_another_protocol_is_told_and_not_tried(caplog: pytest.LogCaptureFixture) -> None:
    environ = OTEL | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    assert type(configure_tracing(environ, "ocr")) is Tracing
    (record,) = caplog.records
    assert (record.message, vars(record)["protocol"]) == ("tracing.unsupported", "grpc")


def test_without_the_packages_a_line_says_what_to_install(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert type(configure_tracing(OTEL, "ocr")) is Tracing
    (record,) = caplog.records
    assert record.message == "tracing.not_installed"
    assert "opentelemetry-sdk" in vars(record)["install"]


class Collector(BaseHTTPRequestHandler):
    """Takes what exporters send, and tells it to its server."""

    server: "Collecting"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None: ...


class Collecting(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Collector)
        self.got: list[tuple[str, bytes]] = []


PROGRAM = """
import asyncio, json, os, sys
from opentelemetry import trace
from lucius_sdk.tracing import configure_tracing
from tests.sdk.operations.directives import directive

async def main():
    tracing = configure_tracing(os.environ, "ocr-service")
    with tracing.step_span(directive()) as step:
        with trace.get_tracer("team").start_as_current_span("of the team"):
            pass
    await tracing.shutdown()
    print(json.dumps({"traceparent": step.traceparent, "class": type(tracing).__name__}))

asyncio.run(main())
"""


async def test_spans_go_to_the_endpoint_that_is_set_those_of_the_team_too() -> None:
    with Collecting() as collecting:
        thread = threading.Thread(target=collecting.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            address = f"http://127.0.0.1:{collecting.server_port}"
            found = await asyncio.to_thread(_run, {"OTEL_EXPORTER_OTLP_ENDPOINT": address})
        finally:
            collecting.shutdown()
            thread.join()
    assert found["class"] == "ExportingTracing"
    paths, bodies = zip(*collecting.got, strict=True)
    sent = b"".join(bodies)
    assert set(paths) == {"/v1/traces"}
    assert bytes.fromhex(TRACE) in sent
    assert bytes.fromhex(parts(found["traceparent"])[1]) in sent
    for text in (b"execute OCR", b"of the team", b"ocr-service"):
        assert text in sent


def test_a_provider_that_the_team_has_set_is_used() -> None:
    program = PROGRAM.replace(
        "async def main():",
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))\n"
        "async def main():",
    )
    found = _run(OTEL, program)
    assert found["class"] == "Tracing"
    assert parts(found["traceparent"])[0] == TRACE


def _run(environ: dict[str, str], program: str = PROGRAM) -> Any:
    environ = {"PATH": "", "PYTHONPATH": ".", **environ}
    command = [sys.executable, "-W", "error", "-c", program]
    run = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=True, timeout=PROCESS_DEADLINE
    )
    return json.loads(run.stdout)
