"""Requests by way of a proxy: through httpx and its transport over aiohttp, which know how."""

import ssl
from collections.abc import Sequence

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from lucius_sdk.replies.exchange import ANSWER_LIMIT, Answered, ExchangeFailed, Header
from lucius_sdk.replies.targets import Target

# The transport lets some errors of aiohttp through as they are.
_FAULTS = (httpx.TransportError, aiohttp.ClientError, OSError, ValueError)


class ProxiedExchange:
    """With all hosts beyond one proxy."""

    def __init__(self, proxy: str, tls: ssl.SSLContext | None, connect: float, idle: float) -> None:
        verify = tls or False

        def session() -> aiohttp.ClientSession:
            return aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=verify, limit=0, keepalive_timeout=idle),
                cookie_jar=aiohttp.DummyCookieJar(),
            )

        try:
            known = httpx.Proxy(proxy)
        except ValueError:
            raise ExchangeFailed("the proxy of the environment cannot be used") from None
        self._transport = AiohttpTransport(verify=verify, proxy=known, client=session)
        self._extensions = {"timeout": {"connect": connect}}

    async def post(self, target: Target, headers: Sequence[Header], body: bytes) -> Answered:
        request = httpx.Request(
            "POST", target.url, headers=headers, content=body, extensions=self._extensions
        )
        try:
            response = await self._transport.handle_async_request(request)
            stream = response.stream
            assert isinstance(stream, httpx.AsyncByteStream)
            try:
                read = await _read(stream)
            finally:
                await stream.aclose()
        except TimeoutError:
            raise
        except _FAULTS as fault:
            reason = _reason(fault)
        else:
            return Answered(response.status_code, read, response.headers.get("retry-after"))
        # Raised out here, without the fault: some of aiohttp's carry the request and its token.
        raise ExchangeFailed(reason)

    async def close(self) -> None:
        await self._transport.aclose()


async def _read(stream: httpx.AsyncByteStream) -> bytes:
    parts, size = [], 0
    async for part in stream:
        parts.append(part)
        size += len(part)
        if size > ANSWER_LIMIT:
            return b""
    return b"".join(parts)


def _reason(fault: Exception) -> str:
    """Without the address, which most of these errors quote."""
    mapped = isinstance(fault, httpx.TransportError)
    cause = fault.__cause__ if mapped and fault.__cause__ is not None else fault
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        return str(cause.certificate_error)
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return type(cause).__name__
