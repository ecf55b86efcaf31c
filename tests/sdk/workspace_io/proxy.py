"""The blob service as a network shows it: what comes between is a fault that a test asks for."""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.azure_proxy import Refusal

DEADLINE = 20.0


class Fault(Enum):
    DROPPED = auto()
    """It never arrives."""
    LOST = auto()
    """It is done, and nobody is told."""
    CUT = auto()
    """Of the answer, half arrives."""
    SPOILED = auto()
    """One byte of what is sent arrives as another."""
    HANGING = auto()
    """It never arrives, and the connection stays."""


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]

    @property
    def verb(self) -> str:
        """As PUT, PUT block, PUT blocklist, GET, HEAD, GET container."""
        query = parse_qs(urlsplit(self.path).query)
        kind = query.get("comp", query.get("restype", [""]))[0]
        return f"{self.method} {kind}".rstrip()


Rule = Callable[[Asked], Fault | Refusal | None]


class Proxy(ThreadingHTTPServer):
    """Forwards to `target`. `rule` says what becomes of a request; it is asked for each."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = urlsplit(target)
        self.rule: Rule = lambda _: None
        self.asked: list[Asked] = []
        self.release = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{self.target.path}"

    @property
    def verbs(self) -> list[str]:
        return [asked.verb for asked in self.asked]

    def next(self, *faults: Fault | Refusal | None, verb: str | None = None) -> None:
        """These are what the next requests meet, of this verb or of any; then all goes well."""
        waiting = list(faults)

        def rule(asked: Asked) -> Fault | Refusal | None:
            return waiting.pop(0) if waiting and verb in (None, asked.verb) else None

        self.rule = rule


@contextmanager
def proxy_to(target: str) -> Iterator[Proxy]:
    with Proxy(target) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.release.set()
            server.shutdown()
            thread.join(DEADLINE)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = Asked(self.command, self.path, {k.lower(): v for k, v in self.headers.items()})
        self.server.asked.append(asked)
        fault = self.server.rule(asked)
        if isinstance(fault, Refusal):
            self._answer(fault.status, {"x-ms-error-code": fault.code, **fault.headers}, b"")
            return
        if fault is Fault.HANGING:
            self.server.release.wait(DEADLINE)
        if fault in (Fault.DROPPED, Fault.HANGING):
            self._break()
            return
        if fault is Fault.SPOILED:
            body = bytes([body[0] ^ 1]) + body[1:]
        status, headers, content = self._forward(body)
        if fault is Fault.LOST:
            self._break()
        else:
            self._answer(status, headers, content, is_cut=fault is Fault.CUT)

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        target = self.server.target
        assert target.hostname is not None
        connection = http.client.HTTPConnection(target.hostname, target.port, timeout=DEADLINE)
        try:
            connection.request(self.command, self.path, body, dict(self.headers.items()))
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def _answer(
        self, status: int, headers: dict[str, str], content: bytes, *, is_cut: bool = False
    ) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("connection", "keep-alive", "transfer-encoding"):
                self.send_header(name, value)
        if "content-length" not in {name.lower() for name in headers}:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if is_cut else content)
        if is_cut:
            self._break()

    def _break(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""
