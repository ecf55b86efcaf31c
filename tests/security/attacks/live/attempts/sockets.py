"""HTTP that no client would send, and the bus without its key."""

import socket
from collections.abc import Callable, Iterator

import httpx
from azure.servicebus import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusError

from lucius_contract.routing import directive_topic, lane_of
from tests.runner.deadlines import seconds
from tests.security.attacks.live.attempts.attempt import Attempt, asked, got_through
from tests.security.attacks.live.target import VICTIM, Target

_HANGS_UP = seconds(10)


def _raw(name: str, text: str, body: bytes = b"") -> Attempt:
    """Sent as it stands. One answer at the most may come, and that refuses."""

    def run(target: Target) -> str | None:
        url = httpx.URL(target.plane.url)
        head = (
            text.replace("{host}", f"{url.host}:{url.port}").replace("\n", "\r\n").encode("latin-1")
        )
        with socket.create_connection((url.host, url.port or 80), _HANGS_UP) as connection:
            connection.settimeout(_HANGS_UP)
            answer = b""
            try:
                connection.sendall(head + body)
                while part := connection.recv(65536):
                    answer += part
            except (ConnectionError, TimeoutError) as error:
                if isinstance(error, TimeoutError):
                    return "the connection stays open"
        statuses = [
            line.split()[1] for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.")
        ]
        if len(statuses) > 1:
            return f"{len(statuses)} answers to one request"
        if statuses and not statuses[0].startswith(b"4"):
            return answer[:300].decode("latin-1")
        return None

    return Attempt(name, run)


def http() -> Iterator[Attempt]:
    close = "Host: {host}\nConnection: close\n"
    smuggled = b"0\r\n\r\nGET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n"
    yield _raw("no HTTP", "HELLO\n\n")
    yield _raw("another version", f"GET / HTTP/9.9\n{close}\n")
    yield _raw("no host", "GET /v1/jobs HTTP/1.1\nConnection: close\n\n")
    yield _raw("a foreign host", "GET /v1/jobs HTTP/1.1\nHost: evil.example\nConnection: close\n\n")
    yield _raw("two hosts", f"GET /v1/jobs HTTP/1.1\nHost: evil.example\n{close}\n")
    yield _raw(
        "two lengths",
        f"POST /v1/orchestrate HTTP/1.1\n{close}Content-Length: 4\nContent-Length: 5\n\n",
        b"{}  ",
    )
    yield _raw(
        "a length and chunks",
        f"POST /v1/orchestrate HTTP/1.1\n{close}Content-Length: 4\nTransfer-Encoding: chunked\n\n",
        smuggled,
    )
    yield _raw(
        "an unknown coding",
        f"POST /v1/orchestrate HTTP/1.1\n{close}Transfer-Encoding: xchunked\n\n",
        smuggled,
    )
    yield _raw("a negative length", f"POST /v1/orchestrate HTTP/1.1\n{close}Content-Length: -1\n\n")
    yield _raw(
        "a chunk without a size",
        f"POST /v1/orchestrate HTTP/1.1\n{close}Transfer-Encoding: chunked\n\n",
        b"zz\r\n{}\r\n0\r\n\r\n",
    )
    yield _raw("a folded header", f"GET /v1/jobs HTTP/1.1\n{close}X-A: b\n c\n\n")
    yield _raw("a header without a name", f"GET /v1/jobs HTTP/1.1\n{close}: b\n\n")
    yield _raw("a nul in a header", f"GET /v1/jobs HTTP/1.1\n{close}X-A: b\x00c\n\n")
    yield _raw("a space before a colon", f"GET /v1/jobs HTTP/1.1\n{close}X-A : b\n\n")
    yield _raw("a header of 100 KB", f"GET /v1/jobs HTTP/1.1\n{close}X-A: {'b' * 100_000}\n\n")
    yield _raw("10,000 headers", f"GET /v1/jobs HTTP/1.1\n{close}" + "X-A: b\n" * 10_000 + "\n")
    yield _raw("a path of 100 KB", f"GET /{'a' * 100_000} HTTP/1.1\n{close}\n")
    yield _raw("a whole address", f"GET http://evil.example/v1/jobs HTTP/1.1\n{close}\n")
    yield _raw("a tunnel", f"CONNECT evil.example:443 HTTP/1.1\n{close}\n")
    for path in (
        "/v1/jobs/../../healthz/../v1/jobs",
        "//v1/jobs",
        "/v1//jobs",
        "/v1/jobs/",
        "/V1/JOBS",
        "/v1/%6aobs/..%2fjobs",
        "/..%2f..%2fetc/passwd",
        "/static/../../etc/passwd",
        "/v1/jobs%00",
        "/.git/config",
        "/docs",
        "/redoc",
        "/debug/pprof",
        "/admin",
        "/server-status",
    ):
        yield _raw(f"the path {path}", f"GET {path} HTTP/1.1\n{close}\n")
    origin = {"Origin": "https://evil.example"}
    yield asked("a foreign page submits", "POST", "/v1/orchestrate", None, headers=origin)
    simple = {**origin, "Content-Type": "text/plain"}
    yield asked("a form submits", "POST", "/v1/orchestrate", None, headers=simple, content="{}")


def bus() -> Iterator[Attempt]:
    """A local process that knows the port."""
    topic = directive_topic(lane_of(VICTIM))

    def with_key(policy: str, key: str) -> Callable[[Target], str | None]:
        def run(target: Target) -> str | None:
            connection = (
                f"Endpoint={target.plane.bus};SharedAccessKeyName={policy};"
                f"SharedAccessKey={key};UseDevelopmentEmulator=true;"
            )
            try:
                with (
                    ServiceBusClient.from_connection_string(connection, retry_total=0) as client,
                    client.get_subscription_receiver(topic, "ocr") as receiver,
                ):
                    receiver.peek_messages(1)
            except ServiceBusError:
                return None
            return "the subscription can be read"

        return run

    for policy, key in (
        ("local", "local"),
        ("RootManageSharedAccessKey", "SAS_KEY_VALUE"),
        ("RootManageSharedAccessKey", ""),
        ("", "local"),
        ("lucius", "lucius"),
    ):
        if policy and key:
            yield Attempt(f"the bus with the key {key} of {policy}", with_key(policy, key))

    def managed(method: str, path: str) -> Callable[[Target], str | None]:
        def run(target: Target) -> str | None:
            base = target.plane.bus.replace("sb://", "http://")
            return got_through(target, httpx.request(method, f"{base}{path}", timeout=_HANGS_UP))

        return run

    for method, path in (
        ("GET", f"/{topic}"),
        ("GET", f"/{topic}/subscriptions/ocr"),
        ("GET", "/$Resources/topics"),
        ("PUT", "/mine"),
        ("DELETE", f"/{topic}"),
    ):
        yield Attempt(f"the bus's management: {method} {path}", managed(method, path))
