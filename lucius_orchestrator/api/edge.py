"""What holds for every request: a correlation id, bounds in size and time, one form of errors.

Plain ASGI. It stands outside of all routes, so that whatever they raise is answered here.
"""

import logging

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lucius_artifacts.errors import Unavailable
from lucius_bus.waiting import in_time
from lucius_contract.messages import REPLY_LIMIT
from lucius_logs.context import correlation
from lucius_orchestrator.api.answers import send_refusal
from lucius_orchestrator.api.bodies import BoundedBody, ClientGone, check_announced
from lucius_orchestrator.api.headers import CORRELATION, correlation_id
from lucius_orchestrator.api.parts import HealthParts
from lucius_orchestrator.api.paths import CALLBACKS
from lucius_orchestrator.api.problems import CLOSE, UNFORESEEN, Refusal, refusal_of
from lucius_outbox.redaction import redacted
from lucius_outbox.telemetry import EventInfo

_log = logging.getLogger("lucius_orchestrator.api")

EVENTS: tuple[EventInfo, ...] = (
    EventInfo(
        "api.request_failed",
        "ERROR",
        ("method", "path", "correlation_id"),
        "A request met an error that nobody foresaw; the record holds it.",
    ),
    EventInfo(
        "api.artifacts_unavailable",
        "WARNING",
        ("method", "path", "correlation_id", "error"),
        "A request was refused, since the catalogue, the storage or the policy of artifacts cannot"
        " be reached.",
    ),
)


class Edge:
    def __init__(self, app: ASGIApp, parts: HealthParts) -> None:
        self._app = app
        self._entropy = parts.entropy
        self._max_body_bytes = parts.limits.max_body_bytes
        self._seconds = parts.limits.request_timeout.total_seconds()
        self._retry_after = parts.limits.retry_after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        identity = correlation_id(scope, self._entropy)
        token = correlation.set(identity)
        try:
            await self._serve(scope, receive, Answering(send, identity, self._seconds))
        finally:
            correlation.reset(token)

    async def _serve(self, scope: Scope, receive: Receive, send: "Answering") -> None:
        try:
            await self._app(scope, self._bounded(scope, receive), send)
        except (ClientGone, ClientDisconnect):
            return
        except Exception as error:
            await self._refuse(error, scope, send)

    async def _refuse(self, error: Exception, scope: Scope, send: "Answering") -> None:
        refusal = self._refusal(error)
        where = {"method": scope["method"], "path": scope["path"]}
        extra = {**where, "correlation_id": correlation.get()}
        if refusal is None:
            _log.error("api.request_failed", exc_info=error, extra=extra)
        if isinstance(error, Unavailable):
            text = redacted(str(error))
            _log.warning("api.artifacts_unavailable", extra={**extra, "error": text})
        if not send.started:  # otherwise the server closes the connection: half an answer is none
            await send_refusal(refusal or UNFORESEEN, send)

    def _refusal(self, error: Exception) -> Refusal | None:
        return refusal_of(error, self._retry_after)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        limit = self._limit_of(scope["path"])
        check_announced(scope, limit)
        return BoundedBody(receive, limit, self._seconds)

    def _limit_of(self, path: str) -> int:
        return min(REPLY_LIMIT, self._max_body_bytes) if path in CALLBACKS else self._max_body_bytes


class ObjectEdge(Edge):
    """For the bytes of objects: the endpoint itself says how many may come, and waits for each of
    them only so long."""

    def __init__(self, app: ASGIApp, parts: HealthParts) -> None:
        super().__init__(app, parts)
        self._seconds = parts.limits.object_idle.total_seconds()

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:  # noqa: ARG002 - see above
        return receive

    def _refusal(self, error: Exception) -> Refusal | None:
        """A connection whose body was not read to its end cannot be used again."""
        refusal = super()._refusal(error)
        return refusal and refusal._replace(headers={**refusal.headers, **CLOSE})


class Answering:
    """An ASGI `send` that says under which correlation id, and waits only so long for a client that
    does not read."""

    __slots__ = ("_identity", "_seconds", "_send", "started")

    def __init__(self, send: Send, identity: str, seconds: float) -> None:
        self._send = send
        self._identity = identity.encode()
        self._seconds = seconds
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            message["headers"] = [*message.get("headers", ()), (CORRELATION, self._identity)]
        try:
            await in_time(self._send(message), self._seconds)
        except TimeoutError as error:
            raise ClientGone from error
