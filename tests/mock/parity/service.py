"""The service that answers directives, and how it hears what became of its answers."""

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any, NamedTuple, Self

import aiohttp
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusSender
from azure.servicebus.exceptions import ServiceBusError

from lucius_contract.ids import message_id
from lucius_contract.messages import CallbackUrls, Directive
from lucius_contract.routing import lane_of, reply_topic
from tests.mock.links import opened
from tests.mock.parity.target import TENANT, Target
from tests.runner.deadlines import DEADLINE

JSON, PROBLEM = "application/json", "application/problem+json"
ARTIFACT = {
    "name": "output.txt",
    "uri": "az://workspace/acme/output.txt",
    "sha256": "ab" * 32,
    "size": 5,
    "media_type": "text/plain",
}
_PROBLEM_MEMBERS = {"type", "title", "status", "detail", "code", "errors", "correlation_id"}


class Said(NamedTuple):
    """An answer. `said` is the verdict or the code of a problem; `lease` is how long that lasts
    from now, in whole tens of seconds, if it is said; `pointers` are to what is wrong."""

    status: int
    said: str
    lease: int | None = None
    cancel_requested: bool | None = None
    pointers: tuple[str, ...] = ()


def applied(lease: int | None = 60, *, cancel_requested: bool = False) -> Said:
    return Said(200, "APPLIED", lease, cancel_requested)


def duplicate(lease: int | None = 60, *, cancel_requested: bool = False) -> Said:
    return Said(200, "DUPLICATE", lease, cancel_requested)


STALE = Said(409, "STALE_ATTEMPT")
CONFLICT = Said(409, "RESULT_CONFLICT")
NOT_FOUND = Said(404, "JOB_NOT_FOUND")
UNAUTHENTICATED = Said(401, "UNAUTHENTICATED")
FORBIDDEN = Said(403, "FORBIDDEN")
TOO_LARGE = Said(413, "TOO_LARGE")


def invalid(*pointers: str) -> Said:
    return Said(400, "ENVELOPE_INVALID", pointers=pointers)


def reply(directive: Directive, type: str, **members: Any) -> dict[str, Any]:
    """As a service writes it."""
    said = {"ACK": {"status": "ACKED"}, "RESULT": {"status": "SUCCEEDED"}}.get(type, {})
    return {
        "type": type,
        "jobId": directive.job_id,
        "stepId": directive.step_id,
        "tenant_id": directive.tenant_id,
        "attempt_no": directive.attempt_no,
        "lease_id": directive.lease_id,
        "timestamp": "2026-01-27T10:00:00Z",
        "correlation_id": directive.correlation_id,
        "traceparent": directive.traceparent,
        **said,
        **members,
    }


def failed(status: str, code: str = "ocr.BROKEN", **members: Any) -> dict[str, Any]:
    """Members of a RESULT that tells of a failure."""
    return {"status": status, "error": {"code": code, "message": "it broke"}, **members}


class Service:
    """Answers over HTTP."""

    def __init__(self, target: Target, http: aiohttp.ClientSession) -> None:
        self._target = target
        self._http = http

    async def ack(self, directive: Directive) -> Said:
        return await self.send(directive, "ACK")

    async def heartbeat(self, directive: Directive, **members: Any) -> Said:
        return await self.send(directive, "HEARTBEAT", **members)

    async def result(self, directive: Directive, **members: Any) -> Said:
        return await self.send(directive, "RESULT", **members)

    async def send(self, directive: Directive, type: str, **members: Any) -> Said:
        raw = json.dumps(reply(directive, type, **members)).encode()
        return await self.post(url_of(directive, type), raw, directive.callback_token)

    async def post(
        self, url: str, raw: bytes, token: str | None, headers: Mapping[str, str] | None = None
    ) -> Said:
        given = {"Content-Type": JSON, **(headers or {})}
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        async with self._http.post(url, data=raw, headers=given) as answer:
            body = await answer.json(content_type=None)
            return self._said(answer, body)

    def _said(self, answer: aiohttp.ClientResponse, body: Mapping[str, Any]) -> Said:
        if answer.status != 200:
            assert answer.content_type == PROBLEM
            assert body.keys() == _PROBLEM_MEMBERS
            assert body["status"] == answer.status
            assert body["type"] == f"urn:lucius:problem:{body['code']}"
            assert answer.headers["X-Correlation-Id"] == body["correlation_id"]
            pointers = tuple(error["pointer"] for error in body["errors"])
            return Said(answer.status, body["code"], pointers=pointers)
        assert answer.content_type == JSON
        assert body.keys() == {"verdict", "lease_expires_at", "cancel_requested"}
        lease = self._lease(body["lease_expires_at"])
        return Said(answer.status, body["verdict"], lease, body["cancel_requested"])

    def _lease(self, ends: str | None) -> int | None:
        if ends is None:
            return None
        assert ends.endswith("Z")
        left = datetime.fromisoformat(ends) - self._target.now()
        return 10 * round(left.total_seconds() / 10)


def url_of(directive: Directive, type: str = "ACK") -> str:
    assert directive.callback_urls is not None
    return address_in(directive.callback_urls, type)


def address_in(urls: CallbackUrls, type: str) -> str:
    url: str = getattr(urls, type.lower())
    return url


class BusService:
    """Answers over the bus; all directives are of one lane. Use it in `async with`."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._client = ServiceBusClient.from_connection_string(
            target.connection_string, retry_total=0
        )
        self._sender: ServiceBusSender | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        await self._client.close()

    async def send(self, directive: Directive, type: str, **members: Any) -> str:
        """What became of it."""
        written = reply(directive, type, **members)
        identity = [written[name] for name in ("jobId", "stepId", "attempt_no", "lease_id", "type")]
        raw = json.dumps(written).encode()
        return await self.put(raw, message_id(*identity), written["jobId"])

    async def put(self, raw: bytes, message_id: str = "m-1", job_id: str = "") -> str:
        number = await self._target.expect(job_id)
        await self.publish(raw, message_id)
        return await self._target.verdict(number)

    async def publish(self, raw: bytes, message_id: str) -> None:
        """`ServiceBusError`: the next one is tried over a new connection."""
        message = ServiceBusMessage(raw, message_id=message_id)
        sender = await self.connect()
        try:
            await sender.send_messages(message, timeout=DEADLINE)
        except ServiceBusError:
            self._sender = None
            await self._stack.aclose()
            raise

    async def connect(self) -> ServiceBusSender:
        if self._sender is None:
            sender = self._client.get_topic_sender(reply_topic(lane_of(TENANT)))
            self._sender = await self._stack.enter_async_context(opened(sender))
        return self._sender
