"""HTTP/1.1 connections that are kept, with one request under way on each.

A callback is one small POST and one small answer, thousands of times over. A general client takes
ten times as long for it as the socket does; here bytes are joined, written, and parsed in C.
"""

import asyncio
import ssl
from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import httptools

from lucius_sdk.replies.exchange import ANSWER_LIMIT, Answered, ExchangeFailed, Header
from lucius_sdk.replies.targets import Route, Target

_EYEBALLS = 0.25  # seconds after which the next address of a name is tried beside the first
_FINAL = 200  # statuses below announce another
_LENGTHS = (b"content-length", b"transfer-encoding")
_TARGETS_KEPT = 256


class DirectExchange:
    """With one host. Connections that have rested for longer than `idle` seconds are not used
    again; making one may take `connect` seconds."""

    def __init__(
        self, route: Route, tls: ssl.SSLContext | None, connect: float, idle: float
    ) -> None:
        self._route = route
        self._tls = tls
        self._connect = connect
        self._idle = idle
        self._loop = asyncio.get_running_loop()
        self._resting: list[tuple[_Connection, float]] = []
        self._opened: set[_Connection] = set()

    async def post(self, target: Target, headers: Sequence[Header], body: bytes) -> Answered:
        lines = [_begin(target), *(b"%b: %b\r\n" % header for header in headers)]
        request = b"%bContent-Length: %d\r\n\r\n%b" % (b"".join(lines), len(body), body)
        connection = self._rested() or await self._connected()
        try:
            answered = await connection.exchange(request)
        finally:
            if connection.is_reusable:
                self._resting.append((connection, self._loop.time()))
            else:
                connection.abort()
        return answered

    async def close(self) -> None:
        for connection in list(self._opened):
            connection.abort()

    def _rested(self) -> "_Connection | None":
        """The one that rested for the shortest time, if that was not too long."""
        while self._resting:
            connection, since = self._resting.pop()
            if self._loop.time() - since > self._idle:
                connection.abort()
            elif connection.is_reusable:
                return connection
        return None

    async def _connected(self) -> "_Connection":
        try:
            async with asyncio.timeout(self._connect):
                _, connection = await self._loop.create_connection(
                    lambda: _Connection(self._opened),
                    self._route.host,
                    self._route.port,
                    ssl=self._tls,
                    happy_eyeballs_delay=_EYEBALLS,
                )
                return connection
        except OSError as error:
            reason = _reason(error)
        raise ExchangeFailed(reason)


@lru_cache(_TARGETS_KEPT)
def _begin(target: Target) -> bytes:
    return b"POST %b HTTP/1.1\r\nHost: %b\r\n" % (target.url.raw_path, target.url.netloc)


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return error.strerror or type(error).__name__


class _Connection(asyncio.Protocol):
    """Also what its parser calls back. It may be used again after a whole answer alone."""

    def __init__(self, opened: "set[_Connection]") -> None:
        self._opened = opened
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Answered] | None = None
        self.on_message_begin()

    def exchange(self, request: bytes) -> asyncio.Future[Answered]:
        self._answer = asyncio.get_running_loop().create_future()
        self.is_reusable = False
        if self._transport is None:
            self._fail("the connection was closed")
        else:
            self._transport.write(request)
        return self._answer

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._opened.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._opened.discard(self)
        if error is None and self._status >= _FINAL and not self._has_length:
            self._end()
        self._fail("the connection was closed before the answer was whole")
        self.is_reusable = False

    def data_received(self, data: bytes) -> None:
        """What nobody asked for ends the connection."""
        if self._answer is None or self._answer.done():
            self.is_reusable = False
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail("the answer is no HTTP")

    def on_message_begin(self) -> None:
        """Of an answer; of a second one, nobody knows where it ends and the next begins."""
        self._status, self._body = 0, b""
        self._retry_after: str | None = None
        self._has_length = False
        self.is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        known = name.lower()
        if known in _LENGTHS:
            self._has_length = True
        elif known == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > ANSWER_LIMIT:
            self._body = b""
            self._end()

    def on_message_complete(self) -> None:
        if self._status >= _FINAL and self._answer is not None and not self._answer.done():
            self.is_reusable = self._parser.should_keep_alive()
            self._end()

    def _end(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answered(self._status, self._body, self._retry_after))

    def _fail(self, reason: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ExchangeFailed(reason))
