"""Whether the service lives, whether it can work, and what it has counted, over HTTP.

One request per connection. Everything that is answered is known already, so a probe never waits; a
client that does not send or read for a few seconds is cut off.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

import h11

from lucius_outbox.telemetry import EventInfo
from lucius_sdk import readiness
from lucius_sdk.clock import Clock
from lucius_sdk.readiness import Look, Readiness

_log = logging.getLogger("lucius_sdk")

LIVE = "/healthz/live"
READY = "/healthz/ready"
METRICS = "/metrics"
PATIENCE = 5.0
MOST_CONNECTIONS = 100
MAX_HEAD = 16 * 1024
EVENTS: tuple[EventInfo, ...] = (
    *readiness.EVENTS,
    EventInfo("health.failed", "ERROR", ("path",), "A question about health ended in an error."),
)
_CHUNK = 16 * 1024
_JSON = "application/json"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class _Response(NamedTuple):
    status: HTTPStatus
    body: bytes
    media_type: str = _JSON


class HealthServer:
    """Serves from `start()` to `stop()`, which may be called twice. `checks` are what the service
    cannot work without; `metrics` gives Prometheus' text."""

    def __init__(
        self,
        host: str,
        port: int,
        is_live: Callable[[], bool],
        checks: Mapping[str, Look],
        metrics: Callable[[], bytes],
        clock: Clock,
    ) -> None:
        self._host = host
        self._port = port
        self._is_live = is_live
        self._readiness = Readiness(checks, clock)
        self._metrics = metrics
        self._clock = clock
        self._is_draining = False
        self._server: asyncio.Server | None = None
        self._stopped = asyncio.Event()
        self._stopped.set()
        self._connections: set[asyncio.Task[None]] = set()
        self._routes: Mapping[str, Callable[[], _Response]] = {
            LIVE: self._live,
            READY: self._ready,
            METRICS: self._counted,
        }

    async def start(self) -> None:
        """OSError if the port is taken."""
        self._server = await asyncio.start_server(self._serve, self._host, self._port)
        self._stopped.clear()
        self._readiness.start()

    @property
    def port(self) -> int:
        """Where it listens, once started; of several addresses the first."""
        if self._server is None or not self._server.sockets:
            return self._port
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    def draining(self) -> None:
        """The service takes no more work: it is not ready from now on."""
        self._is_draining = True

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await self._close(server)
            self._stopped.set()
        await self._stopped.wait()

    async def _close(self, server: asyncio.Server) -> None:
        server.close()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await self._readiness.stop()
        await server.wait_closed()

    def _live(self) -> _Response:
        if self._is_live():
            return _said(HTTPStatus.OK, {"status": "live"})
        return _said(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "stopped"})

    def _ready(self) -> _Response:
        checks = self._readiness.checks
        is_ready = self._is_live() and all(check.ok for check in checks)
        status = "draining" if self._is_draining else "ready" if is_ready else "not ready"
        code = HTTPStatus.OK if status == "ready" else HTTPStatus.SERVICE_UNAVAILABLE
        return _said(code, {"status": status, "checks": [check._asdict() for check in checks]})

    def _counted(self) -> _Response:
        return _Response(HTTPStatus.OK, self._metrics(), _PROMETHEUS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        timer = self._clock.call_later(PATIENCE, writer.transport.abort)
        try:
            await self._exchange(reader, writer)
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            timer.cancel()
            self._connections.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        try:
            request = await _request(http, reader)
        except h11.RemoteProtocolError as error:
            status = HTTPStatus(error.error_status_hint)
            await _send(_written(http, _problem(status, "this is no HTTP request")), reader, writer)
        else:
            if request is not None:
                is_head = request.method == b"HEAD"
                answer = _written(http, self._answer(request), is_head=is_head)
                await _send(answer, reader, writer)
        writer.close()

    def _answer(self, request: h11.Request) -> _Response:
        path = request.target.decode("ascii").partition("?")[0]
        if path not in self._routes:
            return _problem(HTTPStatus.NOT_FOUND, f"known are {', '.join(self._routes)}")
        if request.method not in (b"GET", b"HEAD"):
            return _problem(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are allowed")
        try:
            return self._routes[path]()
        except Exception:
            _log.exception("health.failed", extra={"path": path})
            return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, "the log says why")


async def _request(http: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    """None for a client that left without asking."""
    while True:
        event = http.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        http.receive_data(await reader.read(_CHUNK))


async def _send(answer: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A connection that is closed on unread bytes is reset, and the answer with it; so what still
    comes is passed over until the client leaves or is cut off."""
    writer.write(answer)
    await writer.drain()
    writer.write_eof()
    while await reader.read(_CHUNK):
        pass


def _written(http: h11.Connection, response: _Response, *, is_head: bool = False) -> bytes:
    headers = [
        ("Content-Type", response.media_type),
        ("Content-Length", str(len(response.body))),
        ("Cache-Control", "no-store"),
        ("Connection", "close"),
    ]
    if response.status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append(("Allow", "GET, HEAD"))
    events: list[h11.Event] = [h11.Response(status_code=response.status, headers=headers)]
    events += [h11.Data(data=b"" if is_head else response.body), h11.EndOfMessage()]
    return b"".join(http.send(event) or b"" for event in events)


def _problem(status: HTTPStatus, detail: str) -> _Response:
    return _said(status, {"status": status.phrase.lower(), "detail": detail})


def _said(status: HTTPStatus, what: Mapping[str, object]) -> _Response:
    return _Response(status, json.dumps(what).encode())
