"""Bodies of requests: bounded in size and in time."""

import asyncio

from starlette.types import Message, Receive, Scope

from lucius_bus.waiting import in_time
from lucius_orchestrator.api.headers import header
from lucius_orchestrator.api.problems import BodyTooLarge, BodyTooSlow

_DIGITS = 18


def check_announced(scope: Scope, limit: int) -> None:
    """Refuse a body that says of itself that it is too large, before any of it is read."""
    announced = header(scope, b"content-length")
    if announced is not None and announced.isdigit() and _is_more(announced, limit):
        raise BodyTooLarge(limit)


def _is_more(digits: bytes, limit: int) -> bool:
    """Python refuses to read a number of many thousand digits."""
    return len(digits) > _DIGITS or int(digits) > limit


class BoundedBody:
    """An ASGI `receive` that passes on at most `limit` bytes of body, within `seconds` of its
    making. What comes after the body, the client's leaving, may take as long as it likes."""

    __slots__ = ("_complete", "_deadline", "_left", "_limit", "_receive")

    def __init__(self, receive: Receive, limit: int, seconds: float) -> None:
        self._receive = receive
        self._limit = self._left = limit
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._complete = False

    async def __call__(self) -> Message:
        if self._complete:
            return await self._receive()
        message = await self._next()
        self._complete = not message.get("more_body", False)
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise BodyTooLarge(self._limit)
        return message

    async def _next(self) -> Message:
        left = self._deadline - asyncio.get_running_loop().time()
        try:
            return await in_time(self._receive(), left)
        except TimeoutError as error:
            raise BodyTooSlow from error


class ClientGone(Exception):
    """The client left in the middle of its request; there is nobody to answer."""


async def read_body(receive: Receive) -> bytes:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return body
    return body + await _rest(receive)


async def _rest(receive: Receive) -> bytes:
    parts = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)
