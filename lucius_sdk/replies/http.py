"""Replies to the callback addresses of a directive."""

import asyncio
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import httpx

from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.replies.answers import Answer, ReplyUnavailable, Verdict
from lucius_sdk.replies.direct import DirectExchange
from lucius_sdk.replies.exchange import Answered, Exchange, ExchangeFailed, Header
from lucius_sdk.replies.http_answers import Response, answer_of
from lucius_sdk.replies.outgoing import Outgoing
from lucius_sdk.replies.targets import Route, Target, read_target

_TARGETS_KEPT = 256
_HEADER_VALUE = re.compile(r"[\x21-\x7e]+")
_HEADERS: tuple[Header, ...] = (
    (b"Content-Type", b"application/json"),
    (b"User-Agent", b"lucius-sdk"),
)


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
        self._target = lru_cache(_TARGETS_KEPT)(read_target)
        self._exchanges: dict[Route, Exchange] = {}
        self._is_closed = False

    async def send(self, address: ReplyAddress, reply: Outgoing) -> Answer:
        """REFUSED, too, for an address or token to which nothing can be sent."""
        if self._is_closed:
            raise ReplyUnavailable("replies are closed")
        try:
            target = self._target(reply.url_in(address) or "")
            headers = _headers(address.token, reply.traceparent)
        except ValueError as error:
            return Answer(Verdict.REFUSED, detail=str(error))
        answered = await self._answered(target, headers, reply.body)
        response = Response(target.origin, *answered)
        return answer_of(_without(address.token, response), self._now())

    async def check(self) -> None:
        """Only a directive names an address, so there is nothing to look at before one comes."""

    async def close(self) -> None:
        """What is under way is cut off."""
        self._is_closed = True
        while self._exchanges:
            _, exchange = self._exchanges.popitem()
            await exchange.close()

    async def _answered(self, target: Target, headers: list[Header], body: bytes) -> Answered:
        try:
            async with asyncio.timeout(self._limits.total):
                return await self._exchange(target.route).post(target, headers, body)
        except TimeoutError:
            reason = "no answer in time"
        except ExchangeFailed as failed:
            reason = str(failed)
        raise ReplyUnavailable(f"{target.origin}: {reason}")

    def _exchange(self, route: Route) -> Exchange:
        exchange = self._exchanges.get(route)
        if exchange is None:
            exchange = self._exchanges[route] = _new_exchange(route, self._limits)
        return exchange


def _new_exchange(route: Route, limits: HttpLimits) -> Exchange:
    tls: ssl.SSLContext | None = httpx.create_ssl_context() if route.is_secure else None
    if route.proxy is None:
        return DirectExchange(route, tls, limits.connect, limits.idle)
    from lucius_sdk.replies.proxied import ProxiedExchange  # few need it, and it is heavy

    return ProxiedExchange(route.proxy, tls, limits.connect, limits.idle)


def _headers(token: str | None, traceparent: str | None) -> list[Header]:
    headers = list(_HEADERS)
    if token is not None:
        if not _HEADER_VALUE.fullmatch(token):
            raise ValueError("the directive's token holds characters that no token has")
        headers.append((b"Authorization", b"Bearer " + token.encode()))
    if traceparent is not None and _HEADER_VALUE.fullmatch(traceparent):
        headers.append((b"traceparent", traceparent.encode()))
    return headers


def _without(token: str | None, response: Response) -> Response:
    """What refuses a reply is shown to people, and might repeat the token."""
    if token is None or response.status < 300:
        return response
    return response._replace(body=response.body.replace(token.encode(), b"***"))
