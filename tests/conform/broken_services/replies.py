"""The sending end: replies over HTTP, or on the reply topic of a lane."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusSender
from azure.servicebus.exceptions import ServiceBusError

from tests.conform.broken_services.directives import Directive

_FINAL = frozenset({400, 404, 409, 413, 422})
_REFUSED = frozenset({401, 403})


class NotDelivered(Exception):
    """Nobody took it, as far as is known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The bus says nothing: what it took is accepted."""

    status: int = 200
    body: Mapping[str, Any] = field(default_factory=dict)
    retry_after: float = 0.0

    @property
    def is_final(self) -> bool:
        return self.status // 100 == 2 or self.status in _FINAL

    @property
    def is_refused(self) -> bool:
        """The token is not taken; it may be, as soon as keys are in step again."""
        return self.status in _REFUSED

    @property
    def is_stale(self) -> bool:
        return self.status == 409


class Replies:
    """The directive says where a reply goes."""

    def __init__(self, client: ServiceBusClient, http: aiohttp.ClientSession) -> None:
        self._client = client
        self._http = http
        self._senders: dict[int, ServiceBusSender] = {}
        self._turns: dict[int, asyncio.Lock] = {}

    async def send(self, directive: Directive, type: str, raw: bytes) -> Answer:
        """`NotDelivered`."""
        headers = self.headers(raw)
        url = self.url(directive, type)
        if url is None:
            return await self.publish(self.lane(directive), raw, headers)
        token = self.token(directive, type)
        return await self.post(url, raw, {**headers, "Authorization": f"Bearer {token}"})

    def url(self, directive: Directive, type: str) -> str | None:
        urls = directive.callback_urls
        return None if urls is None else urls[type.lower()]

    def token(self, directive: Directive, _type: str) -> str:
        return directive.callback_token

    def lane(self, directive: Directive) -> int:
        return directive.lane

    def headers(self, raw: bytes) -> dict[str, str]:
        """A reply says itself which trace it belongs to."""
        return {"traceparent": json.loads(raw)["traceparent"]}

    async def post(self, url: str, raw: bytes, headers: Mapping[str, str]) -> Answer:
        sent = {**headers, "Content-Type": "application/json"}
        try:
            async with self._http.post(url, data=raw, headers=sent) as response:
                said = await response.json(content_type=None)
                pause = float(response.headers.get("Retry-After", 0))
                return Answer(response.status, said if isinstance(said, dict) else {}, pause)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise NotDelivered(str(error)) from error

    async def publish(self, lane: int, raw: bytes, properties: dict[str, str]) -> Answer:
        async with self._turns.setdefault(lane, asyncio.Lock()):
            try:
                sender = await self._sender(lane)
                message = ServiceBusMessage(raw, application_properties=cast(Any, properties))
                await sender.send_messages(message)
            except (ServiceBusError, OSError, TimeoutError) as error:
                await self._hang_up(lane)
                raise NotDelivered(str(error)) from error
        return Answer()

    async def close(self) -> None:
        for lane in list(self._senders):
            await self._hang_up(lane)

    async def _sender(self, lane: int) -> ServiceBusSender:
        if lane not in self._senders:
            sender = self._client.get_topic_sender(f"global-bus-replies-p{lane}")
            self._senders[lane] = await sender.__aenter__()
        return self._senders[lane]

    async def _hang_up(self, lane: int) -> None:
        sender = self._senders.pop(lane, None)
        if sender is not None:
            with suppress(ServiceBusError, OSError, TimeoutError):
                await sender.close()
