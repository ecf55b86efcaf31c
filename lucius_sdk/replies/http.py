"""Replies to the callback addresses of a directive.

Requests go straight to httpx's transport over aiohttp. The layers of `httpx.AsyncClient` are for
redirects, cookies and logins, of which a callback has none, and they would cost more than all the
rest of a request.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.replies.answers import Answer, ReplyUnavailable, Verdict
from lucius_sdk.replies.http_answers import Response, answer_of
from lucius_sdk.replies.outgoing import Outgoing
from lucius_sdk.replies.targets import Route, Target, read_target

ANSWER_LIMIT = 64 * 1024
"""Bytes of an answer that are read; one that goes on is not an orchestrator's."""

_TARGETS_KEPT = 256
_HEADER_VALUE = re.compile(r"[\x21-\x7e]+")
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, application/problem+json",
    "Accept-Encoding": "identity",
    "User-Agent": "lucius-sdk",
}
# The transport lets some errors of aiohttp through as they are.
_FAULTS = (httpx.TransportError, aiohttp.ClientError, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Seconds. `idle` is less than servers keep a connection that rests, so that a reply seldom
    meets one that is being closed."""

    connect: float = 5.0
    total: float = 10.0
    idle: float = 4.0


class HttpReplies:
    """Connections are made when they are first needed and then kept; how many replies are under way
    at once is for the caller to limit. `now` is what dates in answers are compared with."""

    def __init__(self, now: Callable[[], datetime], limits: HttpLimits | None = None) -> None:
        self._now = now
        self._limits = limits or HttpLimits()
        self._extensions = {"timeout": {"connect": self._limits.connect}}
        self._target = lru_cache(_TARGETS_KEPT)(read_target)
        self._transports: dict[Route, AiohttpTransport] = {}
        self._is_closed = False

    async def send(self, address: ReplyAddress, reply: Outgoing) -> Answer:
        """REFUSED, too, for an address or token to which nothing can be sent."""
        if self._is_closed:
            raise ReplyUnavailable("replies are closed")
        try:
            target = self._target(reply.url_in(address) or "")
            request = self._request(target, address.token, reply)
        except ValueError as error:
            return Answer(Verdict.REFUSED, detail=str(error))
        response = await self._exchanged(target, request)
        return answer_of(_without(address.token, response), self._now())

    async def check(self) -> None:
        """Only a directive names an address, so there is nothing to look at before one comes."""

    async def close(self) -> None:
        """What is under way is cut off."""
        self._is_closed = True
        while self._transports:
            _, transport = self._transports.popitem()
            await transport.aclose()

    def _request(self, target: Target, token: str | None, reply: Outgoing) -> httpx.Request:
        headers = []
        if token is not None:
            if not _HEADER_VALUE.fullmatch(token):
                raise ValueError("the directive's token holds characters that no token has")
            headers.append((b"Authorization", b"Bearer " + token.encode()))
        if reply.traceparent is not None and _HEADER_VALUE.fullmatch(reply.traceparent):
            headers.append((b"traceparent", reply.traceparent.encode()))
        stream = httpx.ByteStream(reply.body)  # given as content it would be looked at for longer
        request = httpx.Request(
            "POST", target.url, headers=headers, stream=stream, extensions=self._extensions
        )
        request.read()
        return request

    async def _exchanged(self, target: Target, request: httpx.Request) -> Response:
        try:
            async with asyncio.timeout(self._limits.total):
                response = await self._transport(target.route).handle_async_request(request)
                stream = response.stream
                assert isinstance(stream, httpx.AsyncByteStream)
                try:
                    body = await _read(stream)
                finally:
                    await stream.aclose()
        except _FAULTS as fault:
            reason = _reason(fault)
        else:
            status = response.status_code
            retry_after = response.headers.get("retry-after") if status >= 300 else None
            return Response(target.origin, status, body, retry_after)
        # Raised out here, without the fault: some of aiohttp's carry the request and its token.
        raise ReplyUnavailable(f"{target.origin}: {reason}")

    def _transport(self, route: Route) -> AiohttpTransport:
        transport = self._transports.get(route)
        if transport is None:
            transport = self._transports[route] = _new_transport(route, self._limits.idle)
        return transport


def _new_transport(route: Route, idle: float) -> AiohttpTransport:
    tls = httpx.create_ssl_context() if route.is_secure else False

    def session() -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=0, keepalive_timeout=idle),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
        )

    proxy = httpx.Proxy(route.proxy) if route.proxy else None
    return AiohttpTransport(verify=tls, proxy=proxy, client=session)


async def _read(stream: httpx.AsyncByteStream) -> bytes:
    parts, size = [], 0
    async for part in stream:
        parts.append(part)
        size += len(part)
        if size > ANSWER_LIMIT:
            return b""
    return b"".join(parts)


def _reason(fault: Exception) -> str:
    """Without the address, which most of these errors quote."""
    mapped = isinstance(fault, httpx.TransportError)
    cause = fault.__cause__ if mapped and fault.__cause__ is not None else fault
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        return str(cause.certificate_error)
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return type(cause).__name__


def _without(token: str | None, response: Response) -> Response:
    """What refuses a reply is shown to people, and might repeat the token."""
    if token is None or response.status < 300:
        return response
    return response._replace(body=response.body.replace(token.encode(), b"***"))
