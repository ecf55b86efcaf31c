"""Traces from the request that made a job, through its directives, to the replies.

Off unless an exporter is set, by the variables that OpenTelemetry defines; then nothing of it is
even imported (see `spans` for what is done when it is on). Services continue the trace that a
directive names, so their spans and ours are siblings under the request's.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from lucius_orchestrator.engine.telemetry import Telemetry
from lucius_orchestrator.observability.http import (
    Answer,
    App,
    Receive,
    Scope,
    Send,
    method_of,
    route_of,
)
from lucius_outbox.telemetry import Metrics

_log = logging.getLogger("lucius_orchestrator")

SERVICE_NAME = "lucius-orchestrator"
PROTOCOL = "http/protobuf"
FLUSH = timedelta(seconds=5)
_UNTRACED = ("/healthz", "/metrics")
_CONTEXT = (b"traceparent", b"tracestate")


class Spanned(NamedTuple):
    """Something that is over. Without `began` and `ended` it is a moment, which is now."""

    name: str
    traceparent: str
    is_sent: bool
    """By us, rather than to us."""
    attributes: Mapping[str, str | int]
    began: datetime | None = None
    ended: datetime | None = None
    error: str | None = None


class RequestSpan(Protocol):
    """A request under way; `traceparent` is what follows from it continues."""

    @property
    def traceparent(self) -> str: ...

    def end(self, name: str, attributes: Mapping[str, str | int], error: str | None) -> None: ...


class Tracing(Protocol):
    @property
    def is_on(self) -> bool: ...

    def request(self, carrier: Mapping[str, str]) -> RequestSpan:
        """Begin a span, within the one that the carrier's `traceparent` names, if it does."""

    def record(self, spanned: Spanned) -> None: ...

    def telemetry(self, metrics: Metrics | None) -> Telemetry:
        """The engine's voice, which makes spans of what it tells if tracing is on."""

    async def shutdown(self, within: timedelta = FLUSH) -> None:
        """Export what is left. What takes longer is given up, since the process is to end."""


class NoTracing:
    @property
    def is_on(self) -> bool:
        return False

    def request(self, carrier: Mapping[str, str]) -> RequestSpan:
        raise AssertionError(f"tracing is off; {len(carrier)} headers for nothing")

    def record(self, spanned: Spanned) -> None: ...

    def telemetry(self, metrics: Metrics | None) -> Telemetry:
        return Telemetry(metrics)

    async def shutdown(self, within: timedelta = FLUSH) -> None: ...


def configure_tracing(environ: Mapping[str, str]) -> Tracing:
    """As the variables `OTEL_*` say. The endpoint is taken from `environ`; headers, certificates,
    sampling and the like OpenTelemetry reads itself, from the environment of the process."""
    endpoint = _endpoint(environ)
    if endpoint is None or _is_switched_off(environ):
        return NoTracing()
    protocol = _first(environ, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol not in (None, PROTOCOL):
        _log.warning("tracing.unsupported", extra={"protocol": protocol})
        return NoTracing()
    from lucius_orchestrator.observability.spans import exporting

    return exporting(endpoint, environ.get("OTEL_SERVICE_NAME") or None)


def _endpoint(environ: Mapping[str, str]) -> str | None:
    base = _first(environ, "OTEL_EXPORTER_OTLP_ENDPOINT")
    whole = _first(environ, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return whole or (f"{base.rstrip('/')}/v1/traces" if base else None)


def _is_switched_off(environ: Mapping[str, str]) -> bool:
    is_disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return is_disabled or environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none"


def _first(environ: Mapping[str, str], *names: str) -> str | None:
    return next((value for name in names if (value := environ.get(name, "").strip())), None)


class TracedHttp:
    """ASGI middleware: a span for every request but those of probes and scrapes. The request goes
    on with the span as its `traceparent`, so that a job which it makes is part of the trace."""

    def __init__(self, app: App, tracing: Tracing) -> None:
        self._app = app
        self._tracing = tracing
        self._is_on = tracing.is_on

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_on or scope["type"] != "http" or scope["path"].startswith(_UNTRACED):
            await self._app(scope, receive, send)
            return
        span, answer, error = self._begun(scope), Answer(send), None
        try:
            await self._app(scope, receive, answer)
        except BaseException as failure:
            error = type(failure).__name__
            raise
        finally:
            _end(span, scope, answer.status, error)

    def _begun(self, scope: Scope) -> RequestSpan:
        headers = scope["headers"]
        found = [(name, value) for name, value in headers if name in _CONTEXT]
        span = self._tracing.request({n.decode(): v.decode("latin-1") for n, v in found})
        others = [(name, value) for name, value in headers if name != b"traceparent"]
        scope["headers"] = [*others, (b"traceparent", span.traceparent.encode())]
        return span


def _end(span: RequestSpan, scope: Scope, status: int, error: str | None) -> None:
    method, route = method_of(scope), route_of(scope)
    attributes: dict[str, str | int] = {"http.request.method": method, "http.route": route}
    if status:
        attributes["http.response.status_code"] = status
    if error is None and status >= 500:
        error = str(status)
    span.end(f"{method} {route}", attributes, error)
