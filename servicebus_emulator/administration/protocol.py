"""HTTP/1.1 on a connection, by h11: one request after another, each answered at once."""

import asyncio
import logging
from typing import Protocol, cast

import h11

from servicebus_emulator.administration.exchange import Request, Response, error_response
from servicebus_emulator.connection_limits import ConnectionLimits

MAX_BODY = 1024 * 1024
_MAX_HEAD = 16 * 1024
_DETAILS = {
    408: "the request did not arrive in time",
    413: "the request is too large",
    431: "the request is too large",
}
_log = logging.getLogger(__name__)


class Application(Protocol):
    def handle(self, request: Request) -> Response: ...


class Full:
    """In the place of the administration when there are too many connections."""

    def handle(self, _request: Request) -> Response:
        return error_response(503, "the emulator has too many connections", is_last=True)


class AdministrationProtocol(asyncio.Protocol):
    """A peer that sends what is not HTTP, too much of it, or too slowly, is told so and left. One
    that does not read its answers is not read from either, and left after a while."""

    def __init__(self, app: Application, limits: ConnectionLimits) -> None:
        self._app = app
        self._limits = limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD)
        self._transport: asyncio.Transport
        self._head: h11.Request | None = None
        self._body = bytearray()
        self._is_full = False
        self._is_between = False
        self._is_over = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is of no such class
        self._expire_in(self._limits.request_ms)

    def connection_lost(self, _error: Exception | None, /) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._is_between:
            self._is_between = False
            self._expire_in(self._limits.request_ms)
        self._http.receive_data(data)
        self._advance()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._is_full = True
        if not self._transport.is_closing():
            self._transport.pause_reading()
            self._expire_in(self._limits.request_ms)

    def resume_writing(self) -> None:
        self._is_full = False
        if not (self._is_over or self._transport.is_closing()):
            self._expire_in(self._limits.request_ms)
            self._transport.resume_reading()
            self._advance()

    def _advance(self) -> None:
        while not (self._is_full or self._is_over or self._transport.is_closing()):
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._give_up(error.error_status_hint)
                return
            if event is h11.NEED_DATA or event is h11.PAUSED:
                self._continue_if_awaited()
                return
            self._take(event)

    def _take(self, event: object) -> None:
        match event:
            case h11.Request():
                self._head = event
                self._body.clear()
            case h11.Data():
                self._body += event.data
                if len(self._body) > MAX_BODY:
                    self._give_up(413)
            case h11.EndOfMessage():
                self._answer()
            case h11.ConnectionClosed():
                self._close()

    def _continue_if_awaited(self) -> None:
        if self._http.they_are_waiting_for_100_continue:
            self._send(h11.InformationalResponse(status_code=100, headers=[]))

    def _answer(self) -> None:
        assert self._head is not None
        request = _request(self._head, bytes(self._body))
        self._respond(self._handled(request), is_head=request.method == "HEAD")
        if self._http.our_state is h11.MUST_CLOSE:
            self._close()
        elif self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
            self._is_between = True
            if not self._is_full:
                self._expire_in(self._limits.keep_alive_ms)

    def _handled(self, request: Request) -> Response:
        try:
            return self._app.handle(request)
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            return error_response(500, "the emulator failed: its log says why")

    def _give_up(self, status: int) -> None:
        """Nothing of what follows can be understood. It is passed over for a while: a connection
        that is closed on unread bytes is reset, and the answer with it."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            detail = _DETAILS.get(status, "this is not HTTP")
            self._respond(error_response(status, detail, is_last=True))
        self._is_over = True
        self._expire_in(self._limits.closing_ms)
        try:
            self._transport.write_eof()
        except OSError:  # the peer did not wait for them
            self._transport.abort()

    def _close(self) -> None:
        self._transport.close()
        self._is_over = True
        self._expire_in(self._limits.closing_ms)

    def _expire_in(self, milliseconds: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(milliseconds / 1000, self._expire)

    def _expire(self) -> None:
        if self._is_over or self._is_full:
            self._transport.abort()
        elif self._is_between:
            self._close()
        else:
            self._give_up(408)

    def _respond(self, response: Response, *, is_head: bool = False) -> None:
        headers = [("Content-Length", str(len(response.body))), *response.headers]
        if response.body:
            headers.append(("Content-Type", response.content_type))
        if response.is_last:
            headers.append(("Connection", "close"))
        body = [] if is_head else [h11.Data(data=response.body)]
        head = h11.Response(status_code=response.status, headers=headers)
        self._send(head, *body, h11.EndOfMessage())

    def _send(self, *events: h11.Event) -> None:
        written = [self._http.send(event) or b"" for event in events]
        self._transport.write(b"".join(written))


def _request(head: h11.Request, body: bytes) -> Request:
    path, _, query = head.target.decode("ascii").partition("?")
    headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
    return Request(head.method.decode(), path, query, headers, body)
