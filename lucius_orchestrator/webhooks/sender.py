"""Posts one webhook, to an address that the policy allows and to nobody else.

A name that is allowed may still resolve to an address inside our own network, today or at the next
look. So the connection goes to the very addresses that were checked, and no redirect is followed.

Errors name the host alone: path and query of an address may be a secret of the receiver.
"""

import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from os import PathLike
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from lucius_orchestrator.ports.webhooks import Webhook, host_of
from lucius_orchestrator.webhooks.policy import WebhookPolicy
from lucius_orchestrator.webhooks.signature import HEADER, signature_header
from lucius_outbox.errors import Undeliverable

ANSWER_LIMIT = 64 * 1024
"""Bytes of an answer that are read, for the sake of the connection; nobody looks at them."""

_TRY_AGAIN = frozenset({408, 425, 429})


class WebhookFailed(Exception):
    """This try did not succeed; a later one may."""


class AddressForbidden(OSError):
    """The name resolves, but to no address that may be connected to."""


class CheckedResolver(AbstractResolver):
    """Answers only with addresses that the policy allows."""

    def __init__(self, resolver: AbstractResolver, policy: WebhookPolicy) -> None:
        self._resolver = resolver
        self._policy = policy

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        allowed = [result for result in found if self._policy.allows_address(result["host"])]
        if not allowed:
            raise AddressForbidden("it has private addresses only")
        return allowed

    async def close(self) -> None:
        await self._resolver.close()


class WebhookSender:
    """Use it as `async with`. `keys` are those of a tenant, each of which signs. Receivers are
    trusted as the system says, and those of `ca_file`."""

    _session: aiohttp.ClientSession

    def __init__(
        self,
        keys: Callable[[str], Sequence[bytes]],
        policy: WebhookPolicy,
        clock: Callable[[], datetime],
        *,
        ca_file: str | PathLike[str] | None = None,
        timeout: timedelta = timedelta(seconds=10),
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._keys = keys
        self._policy = policy
        self._clock = clock
        self._tls = ssl.create_default_context()
        if ca_file is not None:
            self._tls.load_verify_locations(ca_file)
        self._timeout = timeout
        self._resolver = resolver

    async def __aenter__(self) -> Self:
        resolver = CheckedResolver(self._resolver or aiohttp.DefaultResolver(), self._policy)
        self._session = aiohttp.ClientSession(
            # Whoever calls `send` limits how many are under way.
            connector=aiohttp.TCPConnector(resolver=resolver, ssl=self._tls, limit=0),
            timeout=aiohttp.ClientTimeout(total=self._timeout.total_seconds()),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # a small answer could become a large one
            trust_env=False,  # a proxy would resolve the name again, unchecked
            headers={"User-Agent": "lucius", "Accept-Encoding": "identity"},
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def send(self, webhook: Webhook) -> None:
        """Returns when the receiver has answered with a status of success. WebhookFailed: try
        again; Undeliverable: the receiver wants no other try."""
        host = host_of(webhook.url)
        problem = self._policy.problem(webhook.url)
        if problem is not None:
            raise WebhookFailed(f"{host}: the address is against policy: {problem}")
        try:
            status = await self._post(webhook)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise WebhookFailed(f"{host}: {_reason(error)}") from error
        if 200 <= status < 300:
            return
        if 400 <= status < 500 and status not in _TRY_AGAIN:
            raise Undeliverable(f"{host} answered {status}")
        raise WebhookFailed(f"{host} answered {status}")

    async def _post(self, webhook: Webhook) -> int:
        headers = {
            "Content-Type": "application/json",
            "Lucius-Event-Id": webhook.event_id,
            HEADER: signature_header(webhook.body, self._clock(), self._keys(webhook.tenant_id)),
        }
        posting = self._session.post(
            webhook.url, data=webhook.body, headers=headers, allow_redirects=False
        )
        async with posting as response:
            await _drop_body(response)
            return response.status


async def _drop_body(response: aiohttp.ClientResponse) -> None:
    """The status is the answer, even if the rest of it is cut off."""
    left = ANSWER_LIMIT
    with suppress(aiohttp.ClientError, OSError):
        while left > 0 and (part := await response.content.read(left)):
            left -= len(part)
    if not response.content.at_eof():
        response.close()


def _reason(error: Exception) -> str:
    """Without the address, which most errors of the client quote."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return str(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or str(error.os_error)
    return type(error).__name__
