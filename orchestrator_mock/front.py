"""The HTTP edge for replies, with faults: what it lets through is answered by whoever judges.

It knows nothing of jobs, so that it can stand before the mock's ledger or before an orchestrator.
"""

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Protocol

from aiohttp import web

from lucius_contract.errors import ErrorCode
from orchestrator_mock.answers import PROBLEM_JSON, Answer, problem
from orchestrator_mock.bodies import json_object
from orchestrator_mock.faults import Fault, Faults, Place
from orchestrator_mock.recording import Entry, Recording, What

__all__ = ["CALLBACK_TYPES", "Answer", "Front", "Judge"]

CALLBACK_TYPES = {"ack": What.ACK, "result": What.RESULT, "heartbeat": What.HEARTBEAT}
_LIMIT = 8 * 1024 * 1024
_SECRET = frozenset({"authorization", "cookie", "proxy-authorization"})
_CORRELATION = "X-Correlation-Id"
_VISIBLE = re.compile(r"[\x21-\x7e]{1,128}")
_FAULT_ANSWERS = {
    "callback-500": problem(ErrorCode.INTERNAL, "something went wrong here"),
    "callback-503": problem(ErrorCode.UNAVAILABLE, "the ledger cannot be reached; try again"),
    "callback-409": problem(
        ErrorCode.STALE_ATTEMPT, "the attempt or its lease is no longer current: stop working"
    ),
}
_TOO_LARGE = problem(ErrorCode.TOO_LARGE, f"the body has more than {_LIMIT} bytes")


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
        self._closed = asyncio.Event()
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
        self._closed = asyncio.Event()
        app = web.Application(client_max_size=_LIMIT)
        app.router.add_post("/v1/callbacks/{name:ack|result|heartbeat}", self._serve)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port, reuse_address=True).start()
        self._runner, self.port = runner, runner.addresses[0][1]

    async def close(self) -> None:
        """Connections are cut, requests that wait are forgotten."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        for connection in list(runner.server.connections if runner.server else ()):
            if connection.transport is not None:
                connection.transport.abort()
        self._closed.set()
        self.release()
        await runner.cleanup()

    def release(self) -> None:
        """Let go on what `callback-hold` holds."""
        held, self._released = self._released, asyncio.Event()
        held.set()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        type = CALLBACK_TYPES[request.match_info["name"]]
        try:
            raw = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._answered(self._note(type, request, b""), request, _TOO_LARGE)
        try:
            return await self._struck_or_judged(type, request, raw)
        except Exception as error:
            self.defects.append(f"{type} could not be judged: {error!r}")
            raise

    async def _struck_or_judged(
        self, type: What, request: web.Request, raw: bytes
    ) -> web.StreamResponse:
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
        answer = await self._judge(entry.what, _bearer(request), request.headers, raw)
        return self._answered(entry, request, answer, note)

    def _answered(
        self, entry: Entry, request: web.Request, answer: Answer, note: str = ""
    ) -> web.StreamResponse:
        said = f"{answer.said}, {note}" if note else answer.said
        self._recording.amend(entry, status=answer.status, answer=said)
        return _response(request, answer)

    async def _cut(
        self, fault: Fault, entry: Entry, request: web.Request, _raw: bytes
    ) -> web.StreamResponse:
        self._struck(entry, fault)
        return _aborted(request)

    async def _refuse(
        self, fault: Fault, entry: Entry, request: web.Request, _raw: bytes
    ) -> web.StreamResponse:
        answer = _FAULT_ANSWERS[fault.name]
        self._struck(entry, fault, answer.status)
        return _response(request, answer)

    async def _slow(
        self, fault: Fault, entry: Entry, request: web.Request, raw: bytes
    ) -> web.StreamResponse:
        answered = await self._judged(entry, request, raw, f"after {fault.seconds:g} s")
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), fault.seconds)
        return answered

    async def _lose_answer(
        self, fault: Fault, entry: Entry, request: web.Request, raw: bytes
    ) -> web.StreamResponse:
        await self._judged(entry, request, raw, fault.name)
        return _aborted(request)

    async def _stale(
        self, fault: Fault, entry: Entry, request: web.Request, _raw: bytes
    ) -> web.StreamResponse:
        return self._answered(entry, request, _FAULT_ANSWERS[fault.name], fault.name)

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


def _response(request: web.Request, answer: Answer) -> web.Response:
    """With the correlation id of the request, or a new one, as on all answers."""
    given = request.headers.get(_CORRELATION, "")
    correlation = given if _VISIBLE.fullmatch(given) else os.urandom(16).hex()
    body = dict(answer.body)
    if answer.media_type == PROBLEM_JSON:
        body.setdefault("correlation_id", correlation)
    return web.Response(
        body=json.dumps(body).encode(),
        status=answer.status,
        headers={_CORRELATION: correlation, **answer.headers},
        content_type=answer.media_type,
    )


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
