"""A server on loopback that answers as it was told, and remembers what it was asked."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tests.runner.deadlines import PROCESS_DEADLINE


class Answer(NamedTuple):
    """`cut`: the connection breaks before the body is complete; `hold`: the body stays open until
    the event is set."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = {}
    cut: bool = False
    hold: threading.Event | None = None

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Asked(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any


def problem(status: int, code: str, title: str, **members: object) -> Answer:
    body = {"title": title, "status": status, "code": code, **members}
    return Answer(status, body, {"Content-Type": "application/problem+json"})


def events(*messages: tuple[int, str, dict[str, Any]], **how: Any) -> Answer:
    text = "".join(
        f": still here\n\nid: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n"
        for number, name, data in messages
    )
    return Answer(200, text.encode(), {"Content-Type": "text/event-stream"}, **how)


class Double:
    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[Asked] = []
        self._answers: dict[tuple[str, str], list[Answer]] = {}

    def answers(self, method: str, path: str, *answers: Answer) -> None:
        """One after the other; the last one again and again."""
        self._answers[method, path] = list(answers)

    def next_answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        answers = self._answers.get((asked.method, asked.path))
        if not answers:
            return problem(404, "NOT_FOUND", "Not Found", detail=f"{asked.method} {asked.path}")
        return answers.pop(0) if len(answers) > 1 else answers[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    double: Double

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        target = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = self.double.next_answer(
            Asked(
                self.command,
                target.path,
                dict(parse_qsl(target.query)),
                dict(self.headers),
                json.loads(body) if body else None,
            )
        )
        self._send(answer, answer.content() if answer.status != 204 else b"")

    def _send(self, answer: Answer, content: bytes) -> None:
        missing = answer.cut or answer.hold is not None
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(content) + missing))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()
        if answer.hold is not None:
            answer.hold.wait(PROCESS_DEADLINE)
        self.close_connection = missing


@contextmanager
def running_double() -> Iterator[Double]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    double = Double(f"http://127.0.0.1:{server.server_port}")
    server.RequestHandlerClass = type("_Bound", (_Handler,), {"double": double})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        thread.join(PROCESS_DEADLINE)
        server.server_close()
