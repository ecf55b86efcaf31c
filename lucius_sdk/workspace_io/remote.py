"""Refs that are served over HTTPS: read-only, streamed."""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, BinaryIO

import httpx

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError, RetryableError, StepError
from lucius_sdk.workspace_io.streams import CHUNK
from lucius_sdk.workspace_io.uris import refused, shown, split_uri

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_SCHEMES = frozenset({"http", "https"})
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
_ABSENT = frozenset({404, 410})
_PASSING: dict[int, ErrorCode] = {408: ErrorCode.TIMEOUT, 429: ErrorCode.RATE_LIMITED}


class HttpReader:
    """Follows no redirect: where a ref may lead was decided when the job was submitted. Plain http
    is for loopback alone, and goes there without a proxy."""

    def __init__(self, timeout: httpx.Timeout = _TIMEOUT) -> None:
        self._timeout = timeout
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    @property
    def schemes(self) -> frozenset[str]:
        return _SCHEMES

    def open_read(self, uri: str) -> BinaryIO:
        _check(uri)
        client = self._opened()
        with _faults(uri):
            request = client.build_request("GET", uri, headers={"Accept-Encoding": "identity"})
            response = client.send(request, stream=True)
        if response.status_code != httpx.codes.OK:
            response.close()
            raise _meaning(response.status_code, uri)
        return io.BufferedReader(_ResponseStream(response, uri), CHUNK)

    def close(self) -> None:
        """A later read opens anew."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _opened(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                self._client = httpx.Client(timeout=self._timeout, mounts={"http://": None})
            return self._client


class _ResponseStream(io.RawIOBase):
    def __init__(self, response: httpx.Response, uri: str) -> None:
        self._response = response
        self._chunks = response.iter_bytes(CHUNK)
        self._rest = b""
        self._uri = uri

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        with memoryview(buffer).cast("B") as view:
            chunk = self._next()[: len(view)]
            self._rest = self._rest[len(chunk) :]
            view[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        self._response.close()
        super().close()

    def _next(self) -> bytes:
        if not self._rest:
            with _faults(self._uri):
                self._rest = next(self._chunks, b"")
        return self._rest


def _check(uri: str) -> None:
    parts = split_uri(uri)
    if not parts.hostname:
        raise refused(uri, "names no host")
    if parts.username is not None or parts.password is not None:
        raise refused(uri, "carries a credential")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise refused(uri, "is plain http, which is for this machine alone; use https")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _meaning(status: int, uri: str) -> StepError:
    told = f"{shown(uri)} was answered {status}"
    if status in _ABSENT:
        return NonRetryableError(ErrorCode.INPUT_NOT_FOUND, told)
    if status in _PASSING:
        return RetryableError(_PASSING[status], told)
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return RetryableError(ErrorCode.STORAGE_UNAVAILABLE, told)
    return NonRetryableError(ErrorCode.INPUT_INVALID, told)


@contextmanager
def _faults(uri: str) -> Iterator[None]:
    try:
        yield
    except httpx.TimeoutException as error:
        raise RetryableError(ErrorCode.TIMEOUT, f"{shown(uri)} took too long") from error
    except (httpx.UnsupportedProtocol, httpx.DecodingError, httpx.InvalidURL) as error:
        raise refused(uri, f"cannot be read: {type(error).__name__}") from error
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise RetryableError(
            ErrorCode.STORAGE_UNAVAILABLE, f"{shown(uri)}: {type(error).__name__}"
        ) from error
