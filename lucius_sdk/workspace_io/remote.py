"""Refs that are served over HTTPS: read-only, streamed, raw bytes.

Whoever submits a job chooses the server, so nothing that it says is trusted: where the connection
goes, how much is read and how long that may take is decided here. A read has a connection of its
own; what a server sends beyond its answer is never taken for the next one.
"""

import io
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.parse import quote

import httpcore
import httpx

from lucius_contract.errors import ErrorCode
from lucius_contract.hosts import host_in, host_problem, is_public
from lucius_sdk.error_model import NonRetryableError, RetryableError, StepError
from lucius_sdk.replies.targets import proxy_for
from lucius_sdk.workspace_io.access import forbidden
from lucius_sdk.workspace_io.streams import CHUNK
from lucius_sdk.workspace_io.uris import refused, shown, split_uri

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PORTS = {"http": 80, "https": 443}
_MOST_ADDRESSES = 4
"""Of a name that are tried: each may cost the time that a connection is waited for."""
_OK = 200
_SERVER_ERROR = 500
_ABSENT = frozenset({404, 410})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PASSING: dict[int, ErrorCode] = {408: ErrorCode.TIMEOUT, 429: ErrorCode.RATE_LIMITED}
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))

Connection = httpcore.HTTPConnection | httpcore.HTTPProxy
Resolve = Callable[[str, int], Iterable[str]]


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Seconds to connect, of silence, and of all waiting for one document; and its most bytes."""

    connect: float = 10.0
    silence: float = 30.0
    total: float = 600.0
    size: int = 2**30


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host. Raise OSError if it has none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class HttpReader:
    """Follows no redirect: where a ref may lead was decided when the job was submitted.

    With `allow_private` a ref may also name private addresses, and this machine over plain http,
    and the proxies of the environment are used. Without it they are not: a proxy would resolve the
    name again, and nobody would check the address.
    """

    def __init__(
        self,
        *,
        allow_private: bool = False,
        limits: HttpLimits | None = None,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve = resolve,
        network: httpcore.NetworkBackend | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._allow_private = allow_private
        self._limits = limits or HttpLimits()
        self._given_tls = tls
        self._resolve = resolve
        self._network = network or httpcore.SyncBackend()
        self._now = now

    @property
    def schemes(self) -> frozenset[str]:
        return frozenset(_PORTS)

    def open_read(self, uri: str) -> BinaryIO:
        target = _target(uri, self._allow_private)
        waiting = _Waiting(self._limits.total, self._now)
        connection = self._connection(target, waiting)
        try:
            with _faults(uri), waiting.counted():
                response = connection.handle_request(self._request(target))
            _check_answer(response, uri, self._limits.size)
        except BaseException:
            connection.close()
            raise
        content = _Content(connection, response, waiting, uri, self._limits.size)
        return io.BufferedReader(content, CHUNK)

    def close(self) -> None:
        """Streams that are open have connections of their own."""

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or httpx.create_ssl_context()

    def _connection(self, target: "_Target", waiting: "_Waiting") -> Connection:
        is_allowed = None if self._allow_private else is_public
        network = _CheckedNetwork(target.uri, is_allowed, self._resolve, self._network, waiting)
        proxy = _proxy(target) if self._allow_private else None
        if proxy is None:
            return httpcore.HTTPConnection(
                target.url.origin, ssl_context=self._tls, network_backend=network
            )
        return httpcore.HTTPProxy(
            str(proxy.url), proxy.raw_auth, ssl_context=self._tls, network_backend=network
        )

    def _request(self, target: "_Target") -> httpcore.Request:
        silence = self._limits.silence
        timeouts = {"connect": self._limits.connect, "read": silence, "write": silence}
        headers = [
            ("Host", target.authority),
            ("Accept", "*/*"),
            ("Accept-Encoding", "identity"),
            ("User-Agent", "lucius-sdk"),
            ("Connection", "close"),
        ]
        return httpcore.Request(
            "GET", target.url, headers=headers, extensions={"timeout": timeouts}
        )


class _Target(NamedTuple):
    uri: str
    scheme: str
    host: str
    port: int
    path: str

    @property
    def url(self) -> httpcore.URL:
        return httpcore.URL(
            scheme=self.scheme, host=self.host, port=self.port, target=self.path.encode()
        )

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class _Waiting:
    """Bounds the time that one read spends here; what a handler does between does not count."""

    def __init__(self, limit: float, now: Callable[[], float]) -> None:
        self._left = limit
        self._now = now
        self._began = now()

    @contextmanager
    def counted(self) -> Iterator[None]:
        self._began = self._now()
        try:
            yield
        finally:
            self._left -= self._now() - self._began

    def cut(self, timeout: float | None) -> float:
        """Return how long a wait that begins now may be. Raise ReadTimeout if it may not be."""
        left = self._left - (self._now() - self._began)
        if left <= 0:
            raise httpcore.ReadTimeout("in total")
        return left if timeout is None else min(timeout, left)


class _CheckedNetwork(httpcore.NetworkBackend):
    """Connects to the very addresses that were checked: nothing resolves the name again. TLS still
    verifies the name of the url."""

    def __init__(
        self,
        uri: str,
        is_allowed: Callable[[str], bool] | None,
        resolve: Resolve,
        network: httpcore.NetworkBackend,
        waiting: _Waiting,
    ) -> None:
        self._uri = uri
        self._is_allowed = is_allowed
        self._resolve = resolve
        self._network = network
        self._waiting = waiting

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *options: Any, **named: Any
    ) -> httpcore.NetworkStream:
        failed: Exception | None = None
        for address in self._addresses(host, port)[:_MOST_ADDRESSES]:
            try:
                left = self._waiting.cut(timeout)
                stream = self._network.connect_tcp(address, port, left, *options, **named)
                return _TimedStream(stream, self._waiting)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore.ConnectError("the name has no address")

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = list(self._resolve(host, port))
        except OSError as error:
            raise httpcore.ConnectError("the name cannot be resolved") from error
        allowed = found if self._is_allowed is None else list(filter(self._is_allowed, found))
        if found and not allowed:
            raise forbidden(
                ErrorCode.INPUT_FORBIDDEN,
                self._uri,
                "leads to a private address, which LUCIUS_ALLOW_PRIVATE_ADDRESSES=on would allow",
            )
        return allowed


class _TimedStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, waiting: _Waiting) -> None:
        self._stream = stream
        self._waiting = waiting

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._waiting.cut(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._waiting.cut(timeout))

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = self._waiting.cut(timeout)
        return _TimedStream(
            self._stream.start_tls(ssl_context, server_hostname, left), self._waiting
        )

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Content(io.RawIOBase):
    def __init__(
        self,
        connection: Connection,
        response: httpcore.Response,
        waiting: _Waiting,
        uri: str,
        limit: int,
    ) -> None:
        self._connection = connection
        self._chunks = response.iter_stream()
        self._waiting = waiting
        self._uri = uri
        self._limit = limit
        self._received = 0
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        with memoryview(buffer).cast("B") as view:
            chunk = self._next()[: len(view)]
            self._rest = self._rest[len(chunk) :]
            view[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        self._connection.close()
        super().close()

    def _next(self) -> bytes:
        if not self._rest:
            with _faults(self._uri), self._waiting.counted():
                self._rest = next(self._chunks, b"")
            self._received += len(self._rest)
            if self._received > self._limit:
                raise _too_large(self._uri, self._limit)
        return self._rest


def _target(uri: str, allow_private: bool) -> _Target:
    parts = split_uri(uri)
    if parts.username is not None or parts.password is not None:
        raise refused(uri, "carries a credential")
    host = host_in(uri)
    if host is None:
        raise refused(uri, "names no host that is written in letters, digits, dots and dashes")
    misspelt = host_problem(host, allow_private=True)
    if misspelt is not None:
        raise refused(uri, f"has a host that {misspelt}")
    problem = host_problem(host, allow_private=allow_private)
    if problem is not None:
        raise forbidden(ErrorCode.INPUT_FORBIDDEN, uri, f"has a host that {problem}")
    if parts.scheme == "http" and not _is_loopback(host):
        raise refused(uri, "is plain http, which is for this machine alone; use https")
    query = f"?{parts.query}" if parts.query else ""
    path = quote(f"{parts.path or '/'}{query}", safe=_VISIBLE)
    return _Target(uri, parts.scheme, host, parts.port or _PORTS[parts.scheme], path)


def _proxy(target: _Target) -> httpx.Proxy | None:
    named = proxy_for(target.scheme, target.host, target.port)
    if named is None:
        return None
    try:
        proxy = httpx.Proxy(named)
    except ValueError:
        proxy = None
    if proxy is None or proxy.url.scheme not in _PORTS:
        raise RetryableError(
            ErrorCode.STORAGE_UNAVAILABLE, "the proxy of the environment cannot be used"
        )
    return proxy


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_answer(response: httpcore.Response, uri: str, limit: int) -> None:
    if response.status != _OK:
        raise _meaning(response.status, uri)
    headers = [(name.lower(), value.strip().lower()) for name, value in response.headers]
    encodings = {value for name, value in headers if name == b"content-encoding"}
    if encodings - {b"", b"identity"}:
        raise refused(
            uri,
            "is answered with a Content-Encoding; only raw bytes are read, so let the server send"
            " the document as it is stored",
        )
    lengths = [int(value) for name, value in headers if name == b"content-length"]
    if any(length > limit for length in lengths):
        raise _too_large(uri, limit)


def _too_large(uri: str, limit: int) -> NonRetryableError:
    return NonRetryableError(
        ErrorCode.INPUT_TOO_LARGE,
        f"{shown(uri)} has more than the {limit} bytes that LUCIUS_HTTPS_MAX_BYTES allows",
    )


def _meaning(status: int, uri: str) -> StepError:
    told = f"{shown(uri)} was answered {status}"
    if status in _ABSENT:
        return NonRetryableError(ErrorCode.INPUT_NOT_FOUND, told)
    if status in _PASSING:
        return RetryableError(_PASSING[status], told)
    if status >= _SERVER_ERROR:
        return RetryableError(ErrorCode.STORAGE_UNAVAILABLE, told)
    if status in _REDIRECTS:
        told += "; redirects are not followed, so give the address that it leads to"
    return NonRetryableError(ErrorCode.INPUT_INVALID, told)


@contextmanager
def _faults(uri: str) -> Iterator[None]:
    try:
        yield
    except httpcore.TimeoutException as error:
        raise RetryableError(ErrorCode.TIMEOUT, f"{shown(uri)} took too long") from error
    except (httpcore.UnsupportedProtocol, httpcore.LocalProtocolError) as error:
        raise refused(uri, f"cannot be read: {type(error).__name__}") from error
    except httpcore.ConnectError as error:
        raise RetryableError(
            ErrorCode.STORAGE_UNAVAILABLE, f"{shown(uri)}: ConnectError: {error}"
        ) from error
    except (httpcore.ProtocolError, httpcore.NetworkError, httpcore.ProxyError) as error:
        raise RetryableError(
            ErrorCode.STORAGE_UNAVAILABLE, f"{shown(uri)}: {type(error).__name__}"
        ) from error
