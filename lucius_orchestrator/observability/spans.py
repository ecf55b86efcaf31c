"""Tracing when it is on. The only module that knows OpenTelemetry; imported only then."""

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lucius_bus.waiting import until_set
from lucius_orchestrator.engine.telemetry import Telemetry
from lucius_orchestrator.observability.tracing import FLUSH, SERVICE_NAME, Spanned
from lucius_orchestrator.observability.work import TracedTelemetry
from lucius_outbox.telemetry import Metrics

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def exporting(endpoint: str, service_name: str | None) -> "SpanTracing":
    """Spans go to the endpoint in batches, from a thread of their own."""
    provider = TracerProvider(resource=resource(service_name), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return SpanTracing(provider)


def resource(service_name: str | None) -> Resource:
    """A name that is set wins over our own, `OTEL_RESOURCE_ATTRIBUTES` included."""
    found = Resource.create()
    name = service_name or str(found.attributes["service.name"])
    if name.startswith("unknown_service"):
        name = SERVICE_NAME
    return found.merge(Resource({"service.name": name}))


class OpenSpan:
    """A request under way."""

    def __init__(self, span: Span, propagator: TraceContextTextMapPropagator) -> None:
        self._span = span
        carrier: dict[str, str] = {}
        propagator.inject(carrier, set_span_in_context(span))
        self.traceparent = carrier["traceparent"]

    def end(self, name: str, attributes: Mapping[str, str | int], error: str | None) -> None:
        self._span.update_name(name)
        self._span.set_attributes(attributes)
        if error is not None:
            _fail(self._span, error)
        self._span.end()


class SpanTracing:
    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("lucius_orchestrator")
        self._propagator = TraceContextTextMapPropagator()

    @property
    def is_on(self) -> bool:
        return True

    def request(self, carrier: Mapping[str, str]) -> OpenSpan:
        parent = self._propagator.extract(carrier)
        span = self._tracer.start_span("HTTP", parent, SpanKind.SERVER)
        return OpenSpan(span, self._propagator)

    def record(self, spanned: Spanned) -> None:
        span = self._tracer.start_span(
            spanned.name,
            self._propagator.extract({"traceparent": spanned.traceparent}),
            SpanKind.PRODUCER if spanned.is_sent else SpanKind.CONSUMER,
            spanned.attributes,
            start_time=_nanoseconds(spanned.began),
        )
        if spanned.error is not None:
            _fail(span, spanned.error)
        span.end(_nanoseconds(spanned.ended))

    def telemetry(self, metrics: Metrics | None) -> Telemetry:
        return TracedTelemetry(self, metrics)

    async def shutdown(self, within: timedelta = FLUSH) -> None:
        """In a thread that does not keep the process: an exporter may try for half a minute."""
        loop, flushed = asyncio.get_running_loop(), asyncio.Event()

        def flush() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # the loop may be closed, since nobody waited so long
                loop.call_soon_threadsafe(flushed.set)

        threading.Thread(target=flush, name="tracing-shutdown", daemon=True).start()
        await until_set(flushed, within)


def _fail(span: Span, error: str) -> None:
    span.set_status(Status(StatusCode.ERROR, error))
    span.set_attribute("error.type", error)


def _nanoseconds(at: datetime | None) -> int | None:
    return None if at is None else (at - _EPOCH) // _MICROSECOND * 1000
