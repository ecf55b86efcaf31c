"""Refs over HTTP, from a real server that answers, refuses, cuts and hangs."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpcore
import pytest

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import StepError
from lucius_sdk.workspace_io import Input, PriorArtifact
from lucius_sdk.workspace_io.remote import HttpLimits, HttpReader, Resolve
from tests.runner.deadlines import DEADLINE
from tests.sdk.workspace_io.stage import artifact_of, raises

CONTENT = bytes(range(256)) * 4096


class Handler(BaseHTTPRequestHandler):
    """`/status/N` answers with that status; other paths are named after what they do."""

    server: "Server"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append((path, dict(self.headers)))
        if path.startswith("/status/"):
            self._begin(int(path.rpartition("/")[2]), 0)
        elif path == "/hang":
            self.server.release.wait(DEADLINE)
        elif path != "/drop":
            self._begin(200, len(CONTENT))
            self.wfile.write(CONTENT[:1000] if path == "/cut" else CONTENT)
        self.close_connection = True

    def _begin(self, status: int, size: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        if 300 <= status < 400:
            self.send_header("Location", "/document")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.release = threading.Event()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.release.set()
        server.shutdown()
        thread.join(DEADLINE)


@pytest.fixture
def url(server: Server) -> Callable[[str], str]:
    return lambda path: f"http://127.0.0.1:{server.server_port}/{path}"


@pytest.fixture
def reader() -> Iterator[HttpReader]:
    reader = HttpReader(allow_private=True, limits=HttpLimits(DEADLINE, DEADLINE, DEADLINE))
    yield reader
    reader.close()


def test_a_document_is_read_as_a_stream(reader: HttpReader, url: Callable[[str], str]) -> None:
    assert Input(reader, url("document")).read() == CONTENT
    with Input(reader, url("document?v=1")).open() as stream:
        assert not stream.seekable()
        assert b"".join(iter(lambda: stream.read(1000), b"")) == CONTENT
    with raises(ErrorCode.INPUT_TOO_LARGE):
        Input(reader, url("document")).read(limit=10)


def test_the_bytes_are_asked_for_as_they_are_stored(
    reader: HttpReader, url: Callable[[str], str], server: Server
) -> None:
    artifact = artifact_of(CONTENT, url("document"))
    assert PriorArtifact(reader, artifact).read() == CONTENT
    assert server.asked[0][1]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, ErrorCode.INPUT_NOT_FOUND),
        (410, ErrorCode.INPUT_NOT_FOUND),
        (400, ErrorCode.INPUT_INVALID),
        (401, ErrorCode.INPUT_INVALID),
        (403, ErrorCode.INPUT_INVALID),
        (204, ErrorCode.INPUT_INVALID),
        (302, ErrorCode.INPUT_INVALID),
        (408, ErrorCode.TIMEOUT),
        (429, ErrorCode.RATE_LIMITED),
        (500, ErrorCode.STORAGE_UNAVAILABLE),
        (503, ErrorCode.STORAGE_UNAVAILABLE),
    ],
)
def test_a_status_says_whether_another_attempt_can_help(
    reader: HttpReader, url: Callable[[str], str], server: Server, status: int, code: ErrorCode
) -> None:
    with raises(code, str(status)):
        Input(reader, url(f"status/{status}")).open()
    assert [path for path, _ in server.asked] == [f"/status/{status}"]


@pytest.mark.parametrize("path", ["cut", "drop"])
def test_a_connection_that_breaks_is_a_passing_fault(
    reader: HttpReader, url: Callable[[str], str], path: str
) -> None:
    with raises(ErrorCode.STORAGE_UNAVAILABLE):
        Input(reader, url(path)).read()


def test_a_server_that_hangs_is_a_passing_fault(url: Callable[[str], str]) -> None:
    limits = HttpLimits(connect=DEADLINE, silence=0.05)
    reader = HttpReader(allow_private=True, limits=limits)
    with raises(ErrorCode.TIMEOUT):
        Input(reader, url("hang")).open()
    reader.close()


def test_a_server_that_is_away_is_a_passing_fault(reader: HttpReader) -> None:
    with Server() as server:
        port = server.server_port
    with raises(ErrorCode.STORAGE_UNAVAILABLE, "ConnectError"):
        Input(reader, f"http://127.0.0.1:{port}/a").open()


@pytest.mark.parametrize(
    "uri",
    [
        *("http://example.com/a", "http://10.0.0.1/a", "https://user:hidden@host/a", "https:///a"),
        *("https://host:x/a", "https://host/a b", "http://127.0.0.1.example.com/a"),
    ],
)
def test_uris_that_must_not_be_asked_for_are_refused(reader: HttpReader, uri: str) -> None:
    with raises(ErrorCode.INPUT_INVALID, "^(?!.*hidden)"):
        reader.open_read(uri)


def test_errors_do_not_tell_what_a_query_holds(
    reader: HttpReader, url: Callable[[str], str]
) -> None:
    with raises(ErrorCode.INPUT_NOT_FOUND, r"status/404 was answered 404$"):
        Input(reader, url("status/404?secret")).open()


def test_loopback_is_reached_without_a_proxy(
    reader: HttpReader, url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert Input(reader, url("document")).read() == CONTENT


class Proxies(httpcore.NetworkBackend):
    """Takes what is said to a proxy, which then refuses."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.stream = httpcore.MockStream([b"HTTP/1.1 403 Forbidden\r\n\r\n"])

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.NetworkStream:
        self.asked.append((host, port))
        return self.stream


@pytest.mark.parametrize(("allow_private", "asked"), [(False, ("8.8.8.8", 443)), (True, None)])
def test_a_proxy_is_used_where_any_address_is_allowed(
    monkeypatch: pytest.MonkeyPatch, allow_private: bool, asked: tuple[str, int] | None
) -> None:
    monkeypatch.setenv("https_proxy", "http://me:pass@proxy.example:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    network = Proxies()
    reader = HttpReader(
        allow_private=allow_private,
        resolve=lambda host, _: ["10.9.9.9" if host == "proxy.example" else "8.8.8.8"],
        network=network,
    )
    with pytest.raises(StepError):
        reader.open_read("https://files.example/a")
    assert network.asked == [asked or ("10.9.9.9", 3128)]


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "what:hidden@proxy"])
def test_a_proxy_that_cannot_be_used_is_a_passing_fault(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    with raises(ErrorCode.STORAGE_UNAVAILABLE, "^(?!.*hidden).*proxy of the environment"):
        HttpReader(allow_private=True).open_read("https://files.example/a")


def unknown(host: str, port: int) -> list[str]:
    raise OSError(f"{host}:{port} is unknown")


@pytest.mark.parametrize("resolve", [unknown, lambda *_: []])
def test_a_name_without_addresses_is_a_passing_fault(resolve: Resolve) -> None:
    with raises(ErrorCode.STORAGE_UNAVAILABLE, "the name"):
        HttpReader(resolve=resolve).open_read("https://files.example/a")


def test_the_next_address_is_tried_where_one_refuses(server: Server) -> None:
    found = ["127.0.0.2", "127.0.0.1"]  # the server listens at the second
    reader = HttpReader(allow_private=True, resolve=lambda *_: found)
    assert Input(reader, f"http://localhost:{server.server_port}/a").read() == CONTENT


def test_no_more_than_a_few_addresses_are_tried() -> None:
    asked: list[str] = []

    class Refusing(httpcore.NetworkBackend):
        def connect_tcp(self, host: str, *_: Any, **__: Any) -> httpcore.NetworkStream:
            asked.append(host)
            raise httpcore.ConnectTimeout

    found = [f"8.8.8.{number}" for number in range(100)]
    with raises(ErrorCode.TIMEOUT):
        HttpReader(resolve=lambda *_: found, network=Refusing()).open_read("https://files.example/")
    assert asked == found[:4]


def test_a_reader_that_was_closed_opens_anew(reader: HttpReader, url: Callable[[str], str]) -> None:
    reader.close()
    assert Input(reader, url("document")).read() == CONTENT
    reader.close()
    assert Input(reader, url("document")).read() == CONTENT
