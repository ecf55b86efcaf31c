"""Servers of https refs that mean harm: tenants choose them, and services read from them."""

import gzip
import itertools
import socket
import ssl
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import httpcore
import pytest

from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io import Input, Storages, open_storages
from lucius_sdk.workspace_io.remote import HttpLimits, HttpReader
from lucius_sdk.workspace_io.storages import JobStorages
from tests.runner.deadlines import DEADLINE
from tests.sdk.workspace_io.stage import raises
from tests.webhooks.receiver import Certificate, new_certificate

HOST = "files.example"
PUBLIC = "93.184.215.14"
URI = f"https://{HOST}/document"
MIB = 2**20
BOMB = 16 * MIB
SIZE_LIMIT = 8 * MIB

Send = Callable[[bytes], None]
Answer = Callable[[Send], None]


class Server(ThreadingTCPServer):
    """Speaks TLS and says what a test lets it say, byte by byte."""

    daemon_threads = True

    def __init__(self, certificate: Certificate) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.certificate = certificate
        self.tls = certificate.server_context()
        self.answer: Answer = whole(b"document")
        self.requests: list[bytes] = []
        self.release = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @contextmanager
    def running(self) -> Iterator["Server"]:
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self.release.set()
            self.shutdown()
            thread.join(DEADLINE)
            self.server_close()


class Handler(BaseRequestHandler):
    server: Server

    def handle(self) -> None:
        with suppress(OSError), self.server.tls.wrap_socket(self.request, server_side=True) as tls:
            received = b""
            while b"\r\n\r\n" not in received:
                received += tls.recv(65536)
            self.server.requests.append(received)
            self.server.answer(tls.sendall)


class Network(httpcore.SyncBackend):
    """Leads to the server, whatever address is connected to, and remembers which it was."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.asked: list[tuple[str, int]] = []

    def connect_tcp(self, host: str, port: int, *args: Any, **named: Any) -> Any:
        self.asked.append((host, port))
        return super().connect_tcp("127.0.0.1", self._port, *args, **named)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return new_certificate(tmp_path_factory.mktemp("certificate"), HOST)


@pytest.fixture
def server(certificate: Certificate) -> Iterator[Server]:
    with Server(certificate) as made, made.running():
        yield made


@pytest.fixture
def network(server: Server) -> Network:
    return Network(server.port)


def reader_of(server: Server, network: Network, **named: Any) -> HttpReader:
    limits = HttpLimits(DEADLINE, DEADLINE, DEADLINE, SIZE_LIMIT)
    trust = ssl.create_default_context(cafile=server.certificate.file)
    given: dict[str, Any] = {
        "limits": limits,
        "tls": trust,
        "resolve": lambda *_: [PUBLIC],
        "network": network,
    }
    return HttpReader(**(given | named))


@pytest.fixture
def document(server: Server, network: Network) -> Input:
    return Input(reader_of(server, network), URI)


def head(*headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode()


def whole(body: bytes, *headers: str, status: str = "200 OK") -> Answer:
    answer = head(f"Content-Length: {len(body)}", *headers, status=status) + body
    return lambda send: send(answer)


def then_endless(start: bytes, piece: bytes) -> Answer:
    def answer(send: Send) -> None:
        send(start)
        while True:
            send(piece)

    return answer


def test_a_document_comes_from_the_address_that_was_checked(
    server: Server, network: Network, document: Input
) -> None:
    assert document.read(limit=1024) == b"document"
    assert network.asked == [(PUBLIC, 443)]
    lines = server.requests[0].lower().split(b"\r\n")
    assert {b"host: files.example", b"accept-encoding: identity"} <= set(lines)


def test_the_name_of_the_ref_is_verified_not_the_address(tmp_path: Path) -> None:
    with Server(new_certificate(tmp_path, "other.example")) as server, server.running():
        document = Input(reader_of(server, Network(server.port)), URI)
        with raises(ErrorCode.STORAGE_UNAVAILABLE, "CERTIFICATE_VERIFY_FAILED"):
            document.read()
        assert server.requests == []


def raw_deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(content) + packer.flush()


BOMBS = {
    "gzip": gzip.compress(bytes(BOMB)),
    "x-gzip": gzip.compress(bytes(BOMB)),
    "deflate": zlib.compress(bytes(BOMB), 9),
    "DEFLATE": raw_deflate(bytes(BOMB)),
    "gzip, gzip": gzip.compress(gzip.compress(bytes(BOMB))),
    "br": b"\x8b\x00\x00",  # refused before a byte of it counts
    "zstd": b"\x28\xb5\x2f\xfd",
    "compress": b"\x1f\x9d",
    "identity, gzip": gzip.compress(bytes(BOMB)),
    "x" * 300: b"",
}


@pytest.mark.parametrize("encoding", BOMBS, ids=lambda encoding: encoding[:20])
def test_a_bomb_is_refused_and_never_unpacked(
    server: Server, document: Input, encoding: str
) -> None:
    server.answer = whole(BOMBS[encoding], f"content-ENCODING: {encoding}")
    with peak_below(2 * MIB), raises(ErrorCode.INPUT_INVALID, "only raw bytes are read"):
        document.read(limit=1024)


def test_an_encoding_in_a_second_header_is_seen(server: Server, document: Input) -> None:
    headers = ("Content-Encoding: identity", "Content-Encoding: gzip")
    server.answer = whole(BOMBS["gzip"], *headers)
    with raises(ErrorCode.INPUT_INVALID, "only raw bytes"):
        document.read()


def test_identity_is_no_encoding(server: Server, document: Input) -> None:
    server.answer = whole(b"raw", "Content-Encoding: Identity")
    assert document.read() == b"raw"


def test_a_bomb_as_transfer_encoding_is_refused(server: Server, document: Input) -> None:
    server.answer = lambda send: send(head("Transfer-Encoding: gzip, chunked") + BOMBS["gzip"])
    with peak_below(2 * MIB), raises(ErrorCode.STORAGE_UNAVAILABLE):
        document.read(limit=1024)


def test_a_bomb_that_does_not_say_so_stays_packed(server: Server, document: Input) -> None:
    server.answer = whole(BOMBS["gzip"])
    assert document.read() == BOMBS["gzip"]


ENDLESS = {
    "until it closes": then_endless(head("Connection: close"), bytes(65536)),
    "chunked": then_endless(
        head("Transfer-Encoding: chunked"), b"10000\r\n" + bytes(65536) + b"\r\n"
    ),
    "one chunk": then_endless(head("Transfer-Encoding: chunked") + b"7fffffffff\r\n", bytes(65536)),
    "small chunks": then_endless(
        head("Transfer-Encoding: chunked"), (b"400\r\n" + bytes(1024) + b"\r\n") * 64
    ),
}


@pytest.mark.parametrize("answer", ENDLESS.values(), ids=list(ENDLESS))
def test_of_an_endless_body_no_more_is_held_than_the_limit_and_a_chunk(
    server: Server, document: Input, answer: Answer
) -> None:
    server.answer = answer
    with peak_below(2 * MIB), raises(ErrorCode.INPUT_TOO_LARGE, "1024 bytes"):
        document.read(limit=1024)


@pytest.mark.parametrize("name", ["until it closes", "chunked", "one chunk"])
def test_an_endless_body_ends_for_a_handler_without_a_limit(
    server: Server, document: Input, name: str
) -> None:
    server.answer = ENDLESS[name]
    with raises(ErrorCode.INPUT_TOO_LARGE, f"{SIZE_LIMIT} bytes that LUCIUS_HTTPS_MAX_BYTES"):
        document.read()
    with document.open() as stream, raises(ErrorCode.INPUT_TOO_LARGE):
        while stream.read(MIB):
            pass


def test_a_document_is_held_once(server: Server, document: Input) -> None:
    server.answer = whole(bytes(SIZE_LIMIT))
    with peak_below(SIZE_LIMIT + SIZE_LIMIT // 4 + 2 * MIB):
        assert len(document.read(limit=SIZE_LIMIT)) == SIZE_LIMIT


def test_a_length_above_the_limit_is_refused_before_a_byte(server: Server, document: Input) -> None:
    server.answer = lambda send: send(head(f"Content-Length: {SIZE_LIMIT + 1}"))
    with raises(ErrorCode.INPUT_TOO_LARGE, "LUCIUS_HTTPS_MAX_BYTES"):
        document.open()


LENGTHS = {
    "longer than it says": (["Content-Length: 3"], b"document", b"doc"),
    "shorter than it says": (["Content-Length: 9"], b"document", None),
    "two lengths": (["Content-Length: 3", "Content-Length: 8"], b"document", None),
    "negative": (["Content-Length: -1"], b"document", None),
    "no number": (["Content-Length: many"], b"document", None),
    "digits without end": (["Content-Length: " + "9" * 6000], b"document", None),
    "beside chunks": (
        ["Content-Length: 3", "Transfer-Encoding: chunked"],
        b"8\r\ndocument\r\n0\r\n\r\n",
        b"document",
    ),
    "a chunk of no size": (["Transfer-Encoding: chunked"], b"\r\n", None),
    "a chunk of a negative size": (["Transfer-Encoding: chunked"], b"-1\r\nx\r\n", None),
    "a chunk larger than memory": (["Transfer-Encoding: chunked"], b"f" * 40 + b"\r\nx", None),
    "chunks without an end": (["Transfer-Encoding: chunked"], b"3\r\ndoc\r\n", None),
    "trailers": (
        ["Transfer-Encoding: chunked"],
        b"8\r\ndocument\r\n0\r\nX-More: yes\r\n\r\n",
        b"document",
    ),
    "large trailers": (
        ["Transfer-Encoding: chunked"],
        b"8\r\ndocument\r\n0\r\nX-More: " + b"x" * MIB + b"\r\n\r\n",
        None,
    ),
    "a large chunk extension": (
        ["Transfer-Encoding: chunked"],
        b"8;" + b"x" * MIB + b"\r\ndocument\r\n0\r\n\r\n",
        None,
    ),
}


@pytest.mark.parametrize(("headers", "body", "read"), LENGTHS.values(), ids=list(LENGTHS))
def test_lengths_that_lie_yield_what_was_framed_or_a_passing_fault(
    server: Server, document: Input, headers: list[str], body: bytes, read: bytes | None
) -> None:
    server.answer = lambda send: send(head(*headers) + body)
    if read is None:
        with peak_below(8 * MIB), raises(ErrorCode.STORAGE_UNAVAILABLE):
            document.read()
    else:
        assert document.read() == read
        assert document.read() == read  # nothing that was left over is taken for an answer


HEADS = {
    "one large header": then_endless(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65536),
    "headers without end": then_endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 5000),
    "a status line without end": then_endless(b"HTTP/1.1 200 ", b"O" * 65536),
    "no HTTP": then_endless(b"", b"SSH-2.0-OpenSSH_9.2\r\n" * 1000),
    "nothing": lambda _: None,
    "an upgrade": whole(b"", "Upgrade: h2c", status="101 Switching Protocols"),
}


@pytest.mark.parametrize("answer", HEADS.values(), ids=list(HEADS))
def test_heads_are_bounded(server: Server, document: Input, answer: Answer) -> None:
    server.answer = answer
    with peak_below(4 * MIB), raises(ErrorCode.STORAGE_UNAVAILABLE):
        document.open()


SLOW = {
    "a body": then_endless(head("Connection: close"), b"x"),
    "a head": then_endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "a chunk extension": then_endless(head("Transfer-Encoding: chunked") + b"1;", b"x"),
    "promises to go on": then_endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.mark.parametrize("answer", SLOW.values(), ids=list(SLOW))
def test_a_server_that_never_stops_is_left_when_the_time_is_up(
    server: Server, network: Network, answer: Answer
) -> None:
    """Each look at this clock is a second later, so that every wait costs one at least."""
    server.answer = answer
    limits = HttpLimits(DEADLINE, DEADLINE, total=12)
    now = itertools.count().__next__
    reader = reader_of(server, network, limits=limits, now=now)
    with raises(ErrorCode.TIMEOUT, "took too long"):
        Input(reader, URI).read()


def test_the_time_that_a_handler_takes_does_not_count(server: Server, network: Network) -> None:
    server.answer = whole(bytes(MIB))
    moment = 0.0
    limits = HttpLimits(DEADLINE, DEADLINE, total=DEADLINE)
    reader = reader_of(server, network, limits=limits, now=lambda: moment)
    with Input(reader, URI).open() as stream:
        for _ in range(4):
            moment += 10 * DEADLINE
            assert len(stream.read(MIB // 4)) == MIB // 4


def test_silence_is_a_passing_fault(server: Server, network: Network) -> None:
    def silent(_: Send) -> None:
        server.release.wait(DEADLINE)

    server.answer = silent
    limits = HttpLimits(DEADLINE, silence=0.05)
    with raises(ErrorCode.TIMEOUT):
        Input(reader_of(server, network, limits=limits), URI).open()


@pytest.mark.parametrize(
    ("status", "location"),
    [
        (301, "https://127.0.0.1/"),
        (302, "https://169.254.169.254/latest"),
        (303, "http://files.example/"),
        (307, "https://other.example/"),
        (308, "/other"),
        (302, "file:///etc/passwd"),
        (302, "gopher://10.0.0.1:6379/_FLUSHALL"),
    ],
)
def test_no_redirect_is_followed(
    server: Server, network: Network, document: Input, status: int, location: str
) -> None:
    server.answer = whole(b"", f"Location: {location}", status=f"{status} Found")
    with raises(ErrorCode.INPUT_INVALID, "redirects are not followed"):
        document.read()
    assert len(network.asked) == len(server.requests) == 1


@pytest.mark.parametrize("name", ["Location", "Refresh", "Link", "Alt-Svc", "Content-Location"])
def test_no_header_leads_elsewhere(
    server: Server, network: Network, document: Input, name: str
) -> None:
    server.answer = whole(b"document", f'{name}: 0; url=https://127.0.0.1/; h2="127.0.0.1:1"')
    assert document.read() == b"document"
    assert document.read() == b"document"
    assert network.asked == [(PUBLIC, 443)] * 2


@pytest.mark.parametrize("status", ["204 None", "206 Partial Content", "401 No"])
def test_other_answers_are_no_document(server: Server, document: Input, status: str) -> None:
    server.answer = whole(BOMBS["gzip"], "Content-Encoding: gzip", status=status)
    with peak_below(2 * MIB), raises(ErrorCode.INPUT_INVALID, status[:3]):
        document.read()


def test_a_ref_cannot_add_headers(server: Server, network: Network) -> None:
    reader = reader_of(server, network)
    with raises(ErrorCode.INPUT_INVALID):
        reader.open_read(f"{URI}\r\nX-Injected: yes")
    Input(reader, f"{URI}/ä%0d%0aX-Injected:%20yes?q=%0aX#fragment").read()
    (request,) = server.requests
    assert b"\nX-Injected" not in request
    assert request.startswith(b"GET /document/%C3%A4%0d%0aX-Injected:%20yes?q=%0aX HTTP/1.1\r\n")


def test_the_settings_of_a_service_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the resolver and the trust of the machine."""
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Server(new_certificate(tmp_path, "localhost")) as server, server.running():
        monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate.file))
        uri = f"https://localhost:{server.port}/document"
        root = str(tmp_path / "work")
        closed = of_a_job(open_storages(root))
        opened = of_a_job(open_storages(root, allow_private_addresses=True))
        short = of_a_job(open_storages(root, allow_private_addresses=True, https_max_bytes=3))
        with raises(ErrorCode.INPUT_FORBIDDEN, "private address"):
            Input(closed, uri).read()
        assert server.requests == []
        assert Input(opened, uri).read() == b"document"
        with raises(ErrorCode.INPUT_TOO_LARGE, "the 3 bytes"):
            Input(short, uri).read()


def of_a_job(storages: Storages) -> JobStorages:
    return storages.of_job("acme", "job_1")


def test_a_name_of_this_machine_is_judged_by_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(*_: Any, **__: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 443))]

    monkeypatch.setattr(socket, "getaddrinfo", named)
    with raises(ErrorCode.INPUT_FORBIDDEN, "leads to a private address"):
        Input(of_a_job(open_storages(str(tmp_path))), "https://127.0.0.1.nip.example/").read()


@contextmanager
def peak_below(limit: int) -> Iterator[None]:
    """Of what Python allocates in the meantime, the server's part included."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < limit
