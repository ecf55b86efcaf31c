"""The trace that a directive names, continued: the work is a span within it, and replies name that
span, so that whoever reads a trace sees both sides.

Spans are recorded where somebody has set OpenTelemetry up: the team's own code, or the variables
`OTEL_*` (see `configure_tracing`). Everywhere else a span is only a new id within the same trace.
Nothing here fails work: a traceparent that cannot be read starts a trace of its own.
"""

import asyncio
import logging
import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN_CONTEXT,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TracerProvider,
)

from lucius_contract.messages import Directive
from lucius_outbox.telemetry import EventInfo

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider as RecordingProvider

_log = logging.getLogger("lucius_sdk")

PROTOCOL = "http/protobuf"
PACKAGES = "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
EVENTS: tuple[EventInfo, ...] = (
    EventInfo("tracing.failed", "WARNING", (), "A span could not be begun; the work goes on."),
    EventInfo("tracing.not_installed", "WARNING", ("install",), "Spans cannot be exported."),
    EventInfo(
        "tracing.unsupported",
        "WARNING",
        ("protocol",),
        "Spans go out over HTTP with protobuf only.",
    ),
)
RandomBits = Callable[[int], int]
_FLUSH_SECONDS = 5.0
_TRACEPARENT = re.compile(
    r"[ \t]*(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})"
    r"-(?!0{16})(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<rest>-.*)?[ \t]*"
)


class StepSpan:
    """The work on a directive. `traceparent` is what its replies carry."""

    __slots__ = ("_span", "traceparent")

    def __init__(self, span: Span) -> None:
        self._span = span
        self.traceparent = _traceparent(span.get_span_context())

    def failed(self, code: str) -> None:
        """The work ended with this error."""
        self._span.set_status(Status(StatusCode.ERROR, code))
        self._span.set_attribute("error.type", code)


class Tracing:
    """`provider` is where spans are recorded; without one, whatever the process has set up.
    `random_bits` makes ids where nobody else does."""

    def __init__(
        self,
        provider: TracerProvider | None = None,
        random_bits: RandomBits = random.getrandbits,
    ) -> None:
        self._has_provider = provider is not None
        self._tracer = trace.get_tracer("lucius_sdk", tracer_provider=provider)
        self._random_bits = random_bits

    def continued(self, traceparent: str) -> str:
        """A traceparent of the same trace with an id of its own, without a span."""
        read = _read(traceparent)
        if read is None:
            return _traceparent(self._child(INVALID_SPAN_CONTEXT))
        return f"00-{read['trace']}-{self._id(64):016x}-{read['flags']}"

    @contextmanager
    def step_span(self, directive: Directive) -> Iterator[StepSpan]:
        """The span is the current one within, in threads too if they were given the context. An
        exception that leaves it is its error."""
        span = self._begun(directive)
        step, token = StepSpan(span), contexts.attach(trace.set_span_in_context(span))
        try:
            yield step
        except Exception as error:
            step.failed(type(error).__name__)
            raise
        finally:
            contexts.detach(token)
            span.end()

    async def shutdown(self) -> None:
        """Export what is left."""

    def _begun(self, directive: Directive) -> Span:
        parent = _parent(directive.traceparent)
        if not self._has_provider and _is_free():
            return NonRecordingSpan(self._child(parent))
        span = self._recorded(directive, parent)
        own = span.get_span_context()
        # Without a recorder the API hands the parent back, which is not ours to name.
        if not own.is_valid or own.span_id == parent.span_id:
            return NonRecordingSpan(self._child(parent))
        return span

    def _recorded(self, directive: Directive, parent: SpanContext) -> Span:
        context = trace.set_span_in_context(NonRecordingSpan(parent), Context())
        name, attributes = f"execute {directive.step_type}", _attributes(directive)
        try:
            return self._tracer.start_span(name, context, SpanKind.CONSUMER, attributes)
        except Exception:
            _log.warning("tracing.failed", exc_info=True)
            return NonRecordingSpan(parent)

    def _child(self, parent: SpanContext) -> SpanContext:
        if parent.is_valid:
            return SpanContext(parent.trace_id, self._id(64), False, parent.trace_flags)
        return SpanContext(self._id(128), self._id(64), False, TraceFlags(TraceFlags.SAMPLED))

    def _id(self, bits: int) -> int:
        """Zero stands for no id."""
        return self._random_bits(bits) or 1


class ExportingTracing(Tracing):
    def __init__(self, provider: "RecordingProvider") -> None:
        super().__init__(provider)
        self._provider = provider

    async def shutdown(self) -> None:
        """In a thread that does not keep the process: an exporter may try for half a minute."""
        loop, flushed = asyncio.get_running_loop(), asyncio.Event()

        def flush() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # the loop may be closed, since nobody waited so long
                loop.call_soon_threadsafe(flushed.set)

        threading.Thread(target=flush, name="tracing-shutdown", daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await flushed.wait()


def configure_tracing(environ: Mapping[str, str], service: str) -> Tracing:
    """As the variables `OTEL_*` say; OpenTelemetry reads the rest of them itself. A provider that
    the team's own code has set before wins, and ours is set for the team's spans otherwise."""
    if not _is_wanted(environ) or not _is_free():
        return Tracing()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider as RecordingProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        _log.warning("tracing.not_installed", extra={"install": PACKAGES})
        return Tracing()
    named = {} if environ.get("OTEL_SERVICE_NAME") else {"service.name": service}
    provider = RecordingProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return ExportingTracing(provider)


def _is_wanted(environ: Mapping[str, str]) -> bool:
    is_off = _set(environ, "OTEL_SDK_DISABLED") == "true"
    is_off = is_off or _set(environ, "OTEL_TRACES_EXPORTER") == "none"
    has_endpoint = _set(
        environ, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"
    )
    if is_off or not has_endpoint:
        return False
    protocol = _set(environ, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol not in (None, PROTOCOL):
        _log.warning("tracing.unsupported", extra={"protocol": protocol})
        return False
    return True


def _is_free() -> bool:
    """Whether nobody has set a provider. Asked for each step, since a team may set one late."""
    return isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _set(environ: Mapping[str, str], *names: str) -> str | None:
    found = (environ.get(name, "").strip().lower() for name in names)
    return next(filter(None, found), None)


def _read(traceparent: str) -> "re.Match[str] | None":
    """Version 00 has nothing after the flags; later ones may have more."""
    found = _TRACEPARENT.fullmatch(traceparent)
    return None if found and found["version"] == "00" and found["rest"] else found


def _parent(traceparent: str) -> SpanContext:
    """Not valid where it cannot be read."""
    read = _read(traceparent)
    if read is None:
        return INVALID_SPAN_CONTEXT
    flags = TraceFlags(int(read["flags"], 16))
    return SpanContext(int(read["trace"], 16), int(read["span"], 16), True, flags)


def _traceparent(context: SpanContext) -> str:
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _attributes(directive: Directive) -> dict[str, str | int]:
    return {
        "lucius.job_id": directive.job_id,
        "lucius.tenant_id": directive.tenant_id,
        "lucius.correlation_id": directive.correlation_id,
        "lucius.step_id": directive.step_id,
        "lucius.step_type": directive.step_type,
        "lucius.attempt_no": directive.attempt_no,
        "lucius.lane": directive.lane,
    }
