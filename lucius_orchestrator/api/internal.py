"""The internal API: what workflows ask of the invoker, and the API on behalf of callers.

Plain ASGI, on addresses that are no part of the public API and of its description. It has a
credential of its own: who may submit jobs may not pose as a worker.
"""

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from lucius_contract.canonical import read_json
from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_orchestrator.api.answers import send_json, send_refusal
from lucius_orchestrator.api.bodies import read_body
from lucius_orchestrator.api.edge import Edge
from lucius_orchestrator.api.headers import authorization
from lucius_orchestrator.api.internal_shapes import (
    AttemptAsked,
    CommandAsked,
    DeadlinePassed,
    PublishAsked,
)
from lucius_orchestrator.api.parameters import read_query
from lucius_orchestrator.api.parts import HealthParts
from lucius_orchestrator.api.problems import not_found, refusal_of
from lucius_orchestrator.invoker.desk import COMMANDS, InvokerDesk
from lucius_orchestrator.ports.invoker import InvokerRefused
from lucius_orchestrator.security.bearer import bearer_token, unauthenticated

PREFIX = "/v1/internal/"
ATTEMPT = f"{PREFIX}steps/attempt"
PUBLISH = f"{PREFIX}publish"
EVENTS = f"{PREFIX}jobs/{{jobId}}/events"
COMMAND = f"{PREFIX}jobs/{{jobId}}:{{command}}"

_JOB = r"/v1/internal/jobs/(?P<job_id>[A-Za-z0-9_-]{1,128})"
_EVENTS = re.compile(f"{_JOB}/events")
_COMMAND = re.compile(f"{_JOB}:(?P<verb>{'|'.join(COMMANDS)})")

Body = Mapping[str, Any]
Answer = dict[str, Any]


class InternalCredential:
    """The first key is sent, all are accepted, so that keys can be changed."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = [key.encode() for key in keys]

    def check(self, scope: Scope) -> None:
        token = bearer_token(authorization(scope)).encode()
        # All of them are compared, so that the time does not say which key it was.
        if True not in [hmac.compare_digest(token, key) for key in self._keys]:
            raise unauthenticated("the internal API has a credential of its own")


class _Call(NamedTuple):
    """Has what a route has, for those who look at the scope."""

    path: str
    handle: Callable[..., Awaitable[Answer]]
    arguments: dict[str, str]


class InternalApi:
    def __init__(
        self, desk: InvokerDesk, credential: InternalCredential, retry_after: timedelta
    ) -> None:
        self._desk = desk
        self._credential = credential
        self._retry_after = retry_after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._credential.check(scope)
        call = scope["route"] = self._call(scope)
        read_query(scope)
        body = _object(await read_body(receive))
        try:
            answer = await call.handle(body, **call.arguments)
        except InvokerRefused as refused:
            await self._refuse(refused, send)
        else:
            await send_json(send, HTTPStatus.OK, {"status": "ok", **answer})

    def _call(self, scope: Scope) -> _Call:
        path = scope["path"]
        if scope["method"] != "POST":
            raise not_found(f"there is nothing to {scope['method']} here")
        if path == ATTEMPT:
            return _Call(ATTEMPT, self._open_attempt, {})
        if path == PUBLISH:
            return _Call(PUBLISH, self._publish, {})
        if matched := _EVENTS.fullmatch(path):
            return _Call(EVENTS, self._report, matched.groupdict())
        if matched := _COMMAND.fullmatch(path):
            return _Call(COMMAND, self._tell, matched.groupdict())
        raise not_found(f"there is no {path}")

    async def _open_attempt(self, body: Body) -> Answer:
        asked = AttemptAsked.read(body)
        opened = await self._desk.open_attempt(asked.name, asked.lease_expires_at)
        return {"opened": opened.is_open, "result": opened.result, "next": opened.following}

    async def _publish(self, body: Body) -> Answer:
        published = await self._desk.publish(PublishAsked.read(body).directive.name)
        return {"published": published.has_sent, "next": published.following}

    async def _report(self, body: Body, job_id: str) -> Answer:
        passed = DeadlinePassed.read(body)
        reported = await self._desk.report(passed.name(job_id), passed.event, passed.deadline)
        return {"not_before": reported.not_before, "next": reported.following}

    async def _tell(self, body: Body, job_id: str, verb: str) -> Answer:
        following = await self._desk.command(job_id, verb, CommandAsked.read(body).by)
        return {"state": following["state"], "next": following}

    async def _refuse(self, refused: InvokerRefused, send: Send) -> None:
        refusal = refusal_of(ContractError(refused.code, refused.message), self._retry_after)
        assert refusal is not None, "the code has a status"
        if refused.following is not None:
            refusal = refusal._replace(extra={"next": refused.following})
        await send_refusal(refusal, send)


class WithInternalApi:
    """An application with the internal API beside its own addresses."""

    def __init__(self, app: ASGIApp, internal: InternalApi, parts: HealthParts) -> None:
        self._app = app
        self._internal = Edge(internal, parts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_internal = scope["type"] == "http" and scope["path"].startswith(PREFIX)
        await (self._internal if is_internal else self._app)(scope, receive, send)


def _object(raw: bytes) -> Body:
    value = read_json(raw)
    if isinstance(value, dict):
        return value
    raise ContractError(
        ErrorCode.ENVELOPE_INVALID, "not a JSON object", [Problem("", "must be an object")]
    )
