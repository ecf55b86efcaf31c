"""The shipped document, vectors made from a text, and an endpoint that answers as it is told."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from lucius_vectors import DocumentWriter, Header, MatrixFile, MatrixWriter, chunks, load_model

KEY = "sk-harbour-light-4711"
DOCUMENTS = Path(__file__).parents[2] / "documents"


@pytest.fixture(scope="session")
def invoice() -> bytes:
    return (DOCUMENTS / "invoice.txt").read_bytes()


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is set where the tests run."""
    for name in ("URL", "MODEL", "KEY", "TIMEOUT_SECONDS", "TEMPERATURE"):
        monkeypatch.delenv(f"SIS_LLM_{name}", raising=False)


@pytest.fixture(scope="session")
def vectors() -> Callable[..., dict[str, bytes]]:
    """`vectors(text)` is what an EMBEDDING step writes; `apart=True` puts them into a second
    file."""

    def make(text: str, *, apart: bool = False, size: int = 64) -> dict[str, bytes]:
        model, document, matrix = load_model(), BytesIO(), BytesIO()
        cut = list(chunks(text, size, size // 4, model.count_tokens))
        embedded = model.embed([chunk.text for chunk in cut])
        writer = DocumentWriter(
            document, Header(model.name, model.dimension, size, size // 4, len(text))
        )
        if not apart:
            writer.add(cut, embedded)
            writer.finish()
            return {"vectors.json": document.getvalue()}
        writer.add(cut)
        MatrixWriter(matrix, len(cut), model.dimension).add(embedded)
        writer.finish(MatrixFile("vectors.npy", len(cut)))
        return {"vectors.json": document.getvalue(), "vectors.npy": matrix.getvalue()}

    return make


class Reply(NamedTuple):
    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    hangs: bool = False
    drips: bool = False


class Request(NamedTuple):
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is none."""


class EndpointDouble:
    """A real server on loopback. It gives its replies in order, the last one again and again."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.replies: list[Reply] = []
        self._ending = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def says(self, *contents: str | None) -> None:
        self.replies = [Reply(completion(content)) for content in contents]

    def close(self) -> None:
        self._ending.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                double.requests.append(Request(self.path, dict(self.headers.items()), body))
                double.send(self)

            def log_message(self, *_: object) -> None: ...

        return Handler

    def send(self, handler: BaseHTTPRequestHandler) -> None:
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if reply.hangs:
            self._ending.wait(30)
            handler.close_connection = True
            return
        length = 10_000 if reply.drips else len(reply.body)
        headers = {"Content-Type": "application/json", "Content-Length": str(length)}
        handler.send_response(reply.status)
        for name, value in (headers | dict(reply.headers)).items():
            handler.send_header(name, value)
        handler.end_headers()
        try:
            handler.wfile.write(reply.body)
            while reply.drips and not self._ending.wait(0.02):
                handler.wfile.write(b" ")
        except ConnectionError:
            handler.close_connection = True


def completion(content: str | None) -> bytes:
    message = {"role": "assistant", "content": content}
    return json.dumps({"choices": [{"index": 0, "message": message}]}).encode()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[EndpointDouble]:
    """The service is set to use it."""
    double = EndpointDouble()
    monkeypatch.setenv("SIS_LLM_URL", double.url)
    monkeypatch.setenv("SIS_LLM_MODEL", "parrot-1")
    monkeypatch.setenv("SIS_LLM_KEY", KEY)
    yield double
    double.close()


@pytest.fixture
def reply() -> type[Reply]:
    return Reply
