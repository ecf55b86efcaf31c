"""An orchestrator that only takes replies, over HTTP; it can be made to fail."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum, auto
from typing import Any

from aiohttp import web

from lucius_contract.messages import Result, parse_reply


class Mood(Enum):
    """What happens to a request."""

    WELL = auto()
    BUSY = auto()
    CUT = auto()
    """The connection ends before anything was done."""
    MUTE = auto()
    """It is done, and the answer is lost."""


class Recorder:
    """`results` are the bodies of all RESULTs that were taken, by job."""

    def __init__(self, mood: Callable[[], Mood] = lambda: Mood.WELL) -> None:
        self.mood = mood
        self.results: defaultdict[str, list[bytes]] = defaultdict(list)
        self.counts: Counter[str] = Counter()
        self.port = 0
        self._changed = asyncio.Event()

    @property
    def callbacks(self) -> dict[str, Any]:
        """Members of a directive that wants its replies here."""
        base = f"http://127.0.0.1:{self.port}"
        urls = {name: f"{base}/{name}" for name in ("ack", "result", "heartbeat")}
        return {"callback_urls": urls, "callback_token": "token"}

    async def until(self, is_so: Callable[[], bool], deadline: float) -> None:
        async with asyncio.timeout(deadline):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body, mood = await request.read(), self.mood()
        if mood is Mood.BUSY:
            return web.Response(status=503)
        if mood is not Mood.CUT:
            self._take(body)
        if mood is not Mood.WELL and request.transport is not None:
            request.transport.abort()
        return web.json_response({"verdict": "APPLIED"})

    def _take(self, body: bytes) -> None:
        reply = parse_reply(body)
        self.counts[reply.type] += 1
        if isinstance(reply, Result):
            self.results[reply.job_id].append(body)
        self._changed.set()


@asynccontextmanager
async def open_recorder(mood: Callable[[], Mood] = lambda: Mood.WELL) -> AsyncIterator[Recorder]:
    recorder = Recorder(mood)
    app = web.Application()
    app.router.add_post("/{what}", recorder.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        recorder.port = runner.addresses[0][1]
        yield recorder
    finally:
        await runner.cleanup()
