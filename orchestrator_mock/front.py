"""The HTTP edge for replies, with faults: what it lets through is answered by whoever judges.

It knows nothing of jobs, so that it can stand before the mock's ledger or before an orchestrator.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

from aiohttp import web

from lucius_contract.errors import ErrorCode
from orchestrator_mock.bodies import json_object
from orchestrator_mock.faults import Fault, Faults, Place
from orchestrator_mock.recording import Entry, Recording, What

CALLBACK_TYPES = {"ack": What.ACK, "result": What.RESULT, "heartbeat": What.HEARTBEAT}
_LIMIT = 8 * 1024 * 1024
_SECRET = frozenset({"authorization", "cookie", "proxy-authorization"})


class Answer(NamedTuple):
    status: int
    body: Mapping[str, Any]
    media_type: str = "application/json"

    @property
    def said(self) -> str:
        """The verdict, or the code of a refusal."""
        return str(self.body.get("verdict") or self.body.get("code") or "")


class Judge(Protocol):
    def __call__(
        self, type: What, token: str | None, headers: Mapping[str, str], raw: bytes, /
    ) -> Awaitable[Answer]: ...


class Front:
    """Serves `/v1/callbacks/{ack,result,heartbeat}` on a loopback port, which it keeps while it is
    closed and opened again."""

    def __init__(self, judge: Judge, faults: Faults, recording: Recording) -> None:
        self._judge = judge
        self._faults = faults
        self._recording = recording
        self._released = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.port = 0
        self.defects: list[str] = []
        """What went wrong with the mock itself."""

    @property
    def urls(self) -> dict[str, str]:
        base = f"http://127.0.0.1:{self.port}/v1/callbacks"
        return {name: f"{base}/{name}" for name in CALLBACK_TYPES}

    async def open(self) -> None:
        if self._runner is not None:
            return
        app = web.Application(client_max_size=_LIMIT)
        app.router.add_post("/v1/callbacks/{name:ack|result|heartbeat}", self._serve)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port, reuse_address=True).start()
        self._runner, self.port = runner, runner.addresses[0][1]

    async def close(self) -> None:
        """Connections are cut, requests that are held are forgotten."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        for connection in list(runner.server.connections if runner.server else ()):
            if connection.transport is not None:
                connection.transport.abort()
        self.release()
        await runner.cleanup()

    def release(self) -> None:
        """Let go on what `callback-hold` holds."""
        held, self._released = self._released, asyncio.Event()
        held.set()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        type = CALLBACK_TYPES[request.match_info["name"]]
        raw = await request.read()
        entry = self._note(type, request, raw)
        fault = self._faults.take(Place.CALLBACK, entry.job_id, type)
        if fault is None:
            return await self._judged(entry, request, raw)
        return await _ACTIONS[fault.name](self, fault, entry, request, raw)

    def _note(self, type: What, request: web.Request, raw: bytes) -> Entry:
        body = json_object(raw)
        shown = {k.lower(): v for k, v in request.headers.items() if k.lower() not in _SECRET}
        return self._recording.add(
            type,
            job_id=str(body.get("jobId", "")) if body else "",
            attempt_no=_number(body, "attempt_no"),
            via="http",
            body=body,
            headers=shown,
        )

    async def _judged(
        self, entry: Entry, request: web.Request, raw: bytes, note: str = ""
    ) -> web.StreamResponse:
        try:
            answer = await self._judge(entry.what, _bearer(request), request.headers, raw)
        except Exception as error:
            self.defects.append(f"{entry.what} could not be judged: {error!r}")
            raise
        said = f"{answer.said}, {note}" if note else answer.said
        self._recording.amend(entry, status=answer.status, answer=said)
        return web.json_response(answer.body, status=answer.status, content_type=answer.media_type)

    async def _cut(
        self, fault: Fault, entry: Entry, request: web.Request, _raw: bytes
    ) -> web.StreamResponse:
        self._struck(entry, fault)
        return _aborted(request)

    async def _refuse(
        self, fault: Fault, entry: Entry, _request: web.Request, _raw: bytes
    ) -> web.StreamResponse:
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        headers = {}
        if fault.name == "callback-503":
            status, headers = HTTPStatus.SERVICE_UNAVAILABLE, {"Retry-After": "1"}
        self._struck(entry, fault, status)
        return web.json_response(
            {"code": "INTERNAL", "status": status}, status=status, headers=headers
        )

    async def _slow(
        self, fault: Fault, entry: Entry, request: web.Request, raw: bytes
    ) -> web.StreamResponse:
        answered = await self._judged(entry, request, raw, f"after {fault.seconds:g} s")
        await asyncio.sleep(fault.seconds)
        return answered

    async def _lose_answer(
        self, fault: Fault, entry: Entry, request: web.Request, raw: bytes
    ) -> web.StreamResponse:
        await self._judged(entry, request, raw, fault.name)
        return _aborted(request)

    async def _stale(
        self, fault: Fault, entry: Entry, _request: web.Request, _raw: bytes
    ) -> web.StreamResponse:
        code, status = ErrorCode.STALE_ATTEMPT, HTTPStatus.CONFLICT
        self._recording.amend(entry, status=int(status), answer=f"{code}, {fault.name}")
        return web.json_response(
            {"code": code, "status": status, "detail": "stop working"}, status=status
        )

    async def _hold(
        self, fault: Fault, entry: Entry, request: web.Request, raw: bytes
    ) -> web.StreamResponse:
        self._struck(entry, fault)
        await self._released.wait()
        if request.transport is None or request.transport.is_closing():
            return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE)  # nobody reads it
        return await self._judged(entry, request, raw, "after it was held")

    def _struck(self, entry: Entry, fault: Fault, status: int | None = None) -> None:
        self._recording.amend(entry, status=status, answer=fault.name)


Action = Callable[[Front, Fault, Entry, web.Request, bytes], Awaitable[web.StreamResponse]]
_ACTIONS: Mapping[str, Action] = {
    "callback-cut": Front._cut,
    "callback-down": Front._cut,
    "callback-500": Front._refuse,
    "callback-503": Front._refuse,
    "callback-slow": Front._slow,
    "callback-lost-answer": Front._lose_answer,
    "callback-409": Front._stale,
    "callback-hold": Front._hold,
}


def _aborted(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _bearer(request: web.Request) -> str | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _number(body: Mapping[str, Any] | None, name: str) -> int:
    value = body.get(name) if body else None
    return value if isinstance(value, int) else 0
