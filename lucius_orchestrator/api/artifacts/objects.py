"""The bytes of objects, where the storage is files of this deployment. Plain ASGI: they pass
through in small pieces, whatever their number.

An address is its own credential. What it allows is signed with it: which part with which length, or
which object, shown as what.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from http import HTTPStatus
from typing import NamedTuple

from starlette.types import Receive, Scope, Send

from lucius_artifacts.errors import NotFound
from lucius_artifacts.objects.disposition import attachment
from lucius_artifacts.objects.keys import not_as_long
from lucius_artifacts.signing import Offered, UrlSigner
from lucius_bus.waiting import in_time
from lucius_orchestrator.api.artifacts.access import ArtifactAccess
from lucius_orchestrator.api.artifacts.ranges import Span, asked_span
from lucius_orchestrator.api.bodies import ClientGone
from lucius_orchestrator.api.headers import header
from lucius_orchestrator.api.parameters import read_query
from lucius_orchestrator.api.parts import ApiParts
from lucius_orchestrator.api.paths import ARTIFACTS
from lucius_orchestrator.api.problems import BodyTooSlow

PREFIX = f"{ARTIFACTS}/objects/"
PIECE = 256 * 1024
"""Bytes that a client must take in the time that it has for one."""

_PLACE = re.compile(
    re.escape(PREFIX) + r"(?P<key>[A-Za-z0-9_-]{1,128})(/parts/(?P<number>[1-9][0-9]{0,5}))?"
)
_OF_A_PART = ("expires", "length", "signature")
_OF_AN_OBJECT = ("expires", "media_type", "file_name", "signature")
_SAFE = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; sandbox"),
    (b"cache-control", b"private"),
    (b"accept-ranges", b"bytes"),
)


class Place(NamedTuple):
    key: str
    number: int | None

    @classmethod
    def of(cls, path: str) -> "Place | None":
        found = _PLACE.fullmatch(path)
        if found is None:
            return None
        return cls(found["key"], int(found["number"]) if found["number"] else None)


class _ObjectEndpoint:
    def __init__(self, parts: ApiParts, access: ArtifactAccess) -> None:
        self._access = access
        self._idle = parts.limits.object_idle.total_seconds()

    @property
    def _signer(self) -> UrlSigner:
        signer = self._access.artifacts.signer
        if signer is None:
            raise NotFound("object that is served here: addresses of objects lead to their storage")
        return signer


class PutPart(_ObjectEndpoint):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        place = Place.of(scope["path"])
        if place is None or place.number is None:
            raise NotFound("such part")
        length = self._signer.accept_part(place.key, place.number, read_query(scope, _OF_A_PART))
        _check_announced(scope, place.number, length)
        async with aclosing(_chunks(receive, self._idle)) as content:
            await self._access.artifacts.objects.put_part(place.key, place.number, length, content)
        await send({"type": "http.response.start", "status": HTTPStatus.NO_CONTENT, "headers": []})
        await send({"type": "http.response.body"})


class GetObject(_ObjectEndpoint):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        place = Place.of(scope["path"])
        if place is None or place.number is not None:
            raise NotFound("such object")
        offered = self._signer.accept_read(place.key, read_query(scope, _OF_AN_OBJECT))
        objects = self._access.artifacts.objects
        total = sum((await objects.parts(place.key)).values())
        span = asked_span(header(scope, b"range"), total)
        content = objects.read(place.key, span.start, span.end)
        first = await anext(content, b"")  # what is not there is said before anything else
        await send(_start(span, total, offered))
        await _send_all(send, first, content)


def _check_announced(scope: Scope, number: int, length: int) -> None:
    """Before any of it is read."""
    announced = header(scope, b"content-length")
    if announced is not None and announced.lstrip(b"0") != b"%d" % length:
        raise not_as_long(number, length)


async def _chunks(receive: Receive, idle: float) -> AsyncGenerator[bytes, None]:
    more = True
    while more:
        try:
            message = await in_time(receive(), idle)
        except TimeoutError as error:
            raise BodyTooSlow from error
        if message["type"] == "http.disconnect":
            raise ClientGone
        if message.get("body"):
            yield message["body"]
        more = message.get("more_body", False)


def _start(span: Span, total: int, offered: Offered) -> dict[str, object]:
    headers = [
        (b"content-type", _media_type(offered).encode()),
        (b"content-length", b"%d" % (span.end - span.start)),
        (b"content-disposition", attachment(offered.file_name).encode()),
        *_SAFE,
    ]
    if span.is_whole:
        return {"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers}
    headers.append((b"content-range", b"bytes %d-%d/%d" % (span.start, span.end - 1, total)))
    status = HTTPStatus.PARTIAL_CONTENT
    return {"type": "http.response.start", "status": status, "headers": headers}


def _media_type(offered: Offered) -> str:
    """Not everything that is printable can stand in a header."""
    given = offered.media_type
    return given if given.isascii() and given.isprintable() else "application/octet-stream"


async def _send_all(send: Send, first: bytes, content: AsyncIterator[bytes]) -> None:
    await _send(send, first)
    async for chunk in content:
        await _send(send, chunk)
    await send({"type": "http.response.body"})


async def _send(send: Send, chunk: bytes) -> None:
    for begin in range(0, len(chunk), PIECE):
        piece = chunk[begin : begin + PIECE]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)  # so that the server writes it, and may say that it must wait
