"""A storage account as a network shows it to a store: what comes between, a test asks for."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from yarl import URL

from tests.azurite import Azurite
from tests.runner.deadlines import DEADLINE

_SIGNED = ("Content-Type", "Accept", "Accept-Encoding", "User-Agent")
_READS = ("GET", "HEAD")
_OF_THE_CONNECTION = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")


class Fault(Enum):
    DROPPED = auto()
    """It never arrives."""
    LOST = auto()
    """It is done, and nobody is told."""
    CUT = auto()
    """It is done, and of the answer half arrives."""
    HANGING = auto()
    """It never arrives, and nothing says so."""


@dataclass(frozen=True)
class Refusal:
    """An answer that the service never gave."""

    status: int
    code: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    at: float

    @property
    def is_write(self) -> bool:
        return self.method not in _READS


Met = Fault | Refusal | None
Rule = Callable[[Asked], Awaitable[Met]]


class StorageProxy:
    """`rule` says what becomes of a request; it may take its time."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self.url = ""
        self.rule: Rule = _all_goes_well
        self.asked: list[Asked] = []
        self.is_over = asyncio.Event()
        self._under_way: set[asyncio.Task[Any] | None] = set()
        self._changed = asyncio.Condition()

    async def is_through(self) -> None:
        """Return when nothing is under way, also of callers that have gone."""
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(lambda: not self._under_way)

    @property
    def writes(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.is_write]

    def connection(self, azurite: Azurite) -> str:
        """The account by way of this proxy, whichever service it is of."""
        is_table = self._target.netloc == urlsplit(azurite.table).netloc
        ways = {"table": self.url} if is_table else {"blob": self.url}
        return azurite._replace(**ways).connection

    def writes_meet(self, *faults: Met) -> None:
        """The next ones, each its fault; then all goes well. Reads always do."""
        waiting = list(faults)

        async def rule(asked: Asked) -> Met:
            return waiting.pop(0) if waiting and asked.is_write else None

        self.rule = rule

    def all_meet(self, fault: Met, is_meant: Callable[[Asked], bool] = lambda _: True) -> None:
        async def rule(asked: Asked) -> Met:
            return fault if is_meant(asked) else None

        self.rule = rule

    def let_pass(self, writes: int) -> None:
        """So many; whatever comes then never arrives, as if the process had died."""
        left = writes

        async def rule(asked: Asked) -> Met:
            nonlocal left
            if left == 0:
                return Fault.DROPPED
            left -= asked.is_write
            return None

        self.rule = rule

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self._under_way.add(task := asyncio.current_task())
        try:
            return await self._serve(request)
        finally:
            self._under_way.discard(task)
            async with self._changed:
                self._changed.notify_all()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        asked = Asked(request.method, request.raw_path, time.monotonic())
        self.asked.append(asked)
        met = await self.rule(asked)
        if isinstance(met, Refusal):
            headers = {"x-ms-error-code": met.code, **met.headers}
            return web.Response(status=met.status, headers=headers)
        if met is Fault.HANGING:
            await self.is_over.wait()
        if met in (Fault.HANGING, Fault.DROPPED):
            return _broken(request)
        answer = await self._forwarded(request, body)
        if met is Fault.LOST:
            return _broken(request)
        if met is Fault.CUT:
            return await _cut(request, answer)
        return answer

    async def _forwarded(self, request: web.BaseRequest, body: bytes) -> web.Response:
        url = URL(f"http://{self._target.netloc}{request.raw_path}", encoded=True)
        headers = _forwarded(request.headers)
        async with (
            aiohttp.ClientSession(auto_decompress=False, skip_auto_headers=_SIGNED) as session,
            session.request(request.method, url, data=body or None, headers=headers) as answer,
        ):
            content = await answer.read()
            return web.Response(
                status=answer.status, headers=_forwarded(answer.headers), body=content
            )


@asynccontextmanager
async def proxy_to(target: str) -> AsyncIterator[StorageProxy]:
    proxy = StorageProxy(target)
    runner = web.ServerRunner(web.Server(proxy.serve), shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port, *_ = runner.addresses[0]
    proxy.url = f"http://{host}:{port}{urlsplit(target).path}"
    try:
        yield proxy
    finally:
        proxy.is_over.set()
        await runner.cleanup()


async def _all_goes_well(asked: Asked) -> Met:
    return None


def _forwarded(headers: Mapping[str, str]) -> dict[str, str]:
    return {n: value for n, value in headers.items() if n.lower() not in _OF_THE_CONNECTION}


def _broken(request: web.BaseRequest) -> web.Response:
    """Nothing of it is sent: there is no connection any more."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def _cut(request: web.BaseRequest, answer: web.Response) -> web.Response:
    """Its beginning, and no more."""
    body = answer.body
    assert isinstance(body, bytes)
    stream = web.StreamResponse(status=answer.status, headers=answer.headers)
    stream.content_length = len(body)
    await stream.prepare(request)
    await stream.write(body[: len(body) // 2])
    return _broken(request)
