"""One trace, from the client's request to the last RESULT."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from lucius_cli.demo.places import Places
from lucius_cli.demo.stack import Stack
from tests.flow.flow import SIS, running
from tests.observability.test_tracing import receiving
from tests.runner.deadlines import time_limit

pytestmark = [pytest.mark.check, time_limit(240)]

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
PAYLOAD = {"ocr": {}, "embedding": {}, "sis": SIS}
STEPS = ("OCR", "EMBEDDING", "SIS")
ORCHESTRATOR = "lucius-orchestrator"


async def test_the_trace_of_the_submit_runs_through_all_processes_to_the_last_result(
    places: Places, documents: Path, slow_engine: str, tmp_path: Path
) -> None:
    async with receiving() as receiver:
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
        stack = Stack(places, tmp_path, documents, engine=slow_engine, environ=environ)
        async with running(stack) as flow:
            document = documents / "invoice.pdf"
            job = await flow.submit("OCR_EMBEDDING_SIS", document, PAYLOAD, traceparent=TRACEPARENT)
            ended = await flow.finished(job)
    assert ended["state"] == "SUCCEEDED"
    assert ended["traceparent"].split("-")[1] == TRACE
    seen = {name for name, trace in spans(receiver.requests) if trace == TRACE}
    for step in STEPS:
        assert {(ORCHESTRATOR, f"publish {step}"), (ORCHESTRATOR, f"result {step}")} <= seen
        assert {service for service, _ in seen} >= {step.lower()}


def spans(
    requests: list[tuple[str, ExportTraceServiceRequest]],
) -> Iterator[tuple[tuple[str, str], str]]:
    """Service and name of each span, and its trace."""
    for _, export in requests:
        for resource in export.resource_spans:
            names = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    yield (names["service.name"], span.name), span.trace_id.hex()
