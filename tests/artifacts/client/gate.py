"""What stands between a client and the real application: it counts, holds, refuses and damages."""

import asyncio
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.runner.deadlines import DEADLINE

_PART = re.compile(r"/parts/([0-9]+)\Z")


class Asked(NamedTuple):
    method: str
    path: str
    range: str
    authorization: str


@dataclass(slots=True)
class Trouble:
    """For the next `times` requests that fit: refused, or served with an answer that breaks after
    some bytes, or has another one than it had; or as if no range had been asked for."""

    method: str
    path: str
    times: int = 1
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    damage_at: int | None = None
    ignore_range: bool = False

    def fits(self, asked: Asked) -> bool:
        return self.method == asked.method and self.path in asked.path


class _Barrier:
    """One for each time that requests are held: what is left of the last one opens no other."""

    def __init__(self, passing: Callable[[Asked], bool]) -> None:
        self.passing = passing
        self.held = threading.Semaphore(0)
        self.opened = asyncio.Event()


class Gate:
    def __init__(self, app: ASGIApp) -> None:
        self.asked: list[Asked] = []
        self.troubles: list[Trouble] = []
        self._app = app
        self._barrier: _Barrier | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle = threading.Condition()
        self._active = 0

    def trouble(self, method: str, path: str, times: int = 1, **how: object) -> None:
        self.troubles.append(Trouble(method, path, times, **how))  # type: ignore[arg-type]

    def hold(self, passing: Callable[[Asked], bool]) -> None:
        """From now on, all requests for which this is not true wait until `open`."""
        self._barrier = _Barrier(passing)

    def wait_for_held(self, count: int) -> None:
        assert self._barrier is not None, "nothing is to be held"
        for _ in range(count):
            assert self._barrier.held.acquire(timeout=DEADLINE), "nothing was held"

    def open(self) -> None:
        barrier, self._barrier = self._barrier, None
        if barrier is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(barrier.opened.set)

    def wait_until_idle(self) -> None:
        with self._idle:
            assert self._idle.wait_for(lambda: self._active == 0, DEADLINE), "still under way"

    def count(self, method: str, path: str) -> int:
        return sum(each.method == method and path in each.path for each in self.asked)

    def parts(self, since: int = 0, besides: str | None = None) -> list[int]:
        """Return the numbers of parts that a client began to bring, in order; not those of the
        upload `besides`."""
        found = (
            _PART.search(each.path)
            for each in self.asked[since:]
            if each.method == "PUT" and (besides is None or besides not in each.path)
        )
        return [int(part[1]) for part in found if part]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._loop = asyncio.get_running_loop()
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        asked = Asked(
            scope["method"],
            scope["path"],
            headers.get("range", ""),
            headers.get("authorization", ""),
        )
        self.asked.append(asked)
        self._count(1)
        try:
            await self._wait(asked)
            await self._serve(asked, scope, receive, send)
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._idle:
            self._active += more
            self._idle.notify_all()

    async def _wait(self, asked: Asked) -> None:
        barrier = self._barrier
        if barrier is not None and not barrier.passing(asked):
            barrier.held.release()
            await barrier.opened.wait()

    async def _serve(self, asked: Asked, scope: Scope, receive: Receive, send: Send) -> None:
        trouble = next((each for each in self.troubles if each.fits(asked)), None)
        if trouble is None:
            await self._app(scope, receive, send)
            return
        trouble.times -= 1
        if trouble.times == 0:
            self.troubles.remove(trouble)
        if trouble.ignore_range:
            kept = [(name, value) for name, value in scope["headers"] if name != b"range"]
            scope = {**scope, "headers": kept}
        if trouble.status is not None:
            await _refuse(trouble, receive, send)
        else:
            await self._app(scope, receive, _Troubled(send, trouble))


async def _refuse(trouble: Trouble, receive: Receive, send: Send) -> None:
    """After the whole request: a connection that is closed before loses the answer, too."""
    while (await receive()).get("more_body", False):
        pass
    headers = [(name.encode(), value.encode()) for name, value in trouble.headers.items()]
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": trouble.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"no"})


class _Broken(Exception):
    """The server closes the connection."""


class _Troubled:
    def __init__(self, send: Send, trouble: Trouble) -> None:
        self._send = send
        self._trouble = trouble
        self._sent = 0

    async def __call__(self, message: Message) -> None:
        body = message.get("body", b"")
        cut, damage = self._trouble.cut_after, self._trouble.damage_at
        if cut is not None and self._sent + len(body) > cut:
            await self._send({**message, "body": body[: cut - self._sent], "more_body": True})
            await asyncio.sleep(0)
            raise _Broken
        if damage is not None and self._sent <= damage < self._sent + len(body):
            at = damage - self._sent
            body = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
            message = {**message, "body": body}
        self._sent += len(body)
        await self._send(message)
