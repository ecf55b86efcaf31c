"""A client that takes its time is left behind; the others are served."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from lucius_orchestrator.bootstrap.http_protocol import HEAD_LIMIT
from tests.cli.test_up import Plane, running
from tests.runner.deadlines import PROCESS_DEADLINE

pytestmark = pytest.mark.check

WHOLE = b"GET /healthz/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with waiting(tmp_path_factory, 1) as made:
        yield made


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """For what must be in time."""
    with waiting(tmp_path_factory, PROCESS_DEADLINE) as made:
        yield made


@contextmanager
def waiting(tmp_path_factory: pytest.TempPathFactory, seconds: float) -> Iterator[Plane]:
    """A plane that waits so long for a request."""
    folder: Path = tmp_path_factory.mktemp("plane")
    patience = {"LUCIUS_REQUEST_TIMEOUT_SECONDS": str(seconds)}
    with running(folder, "up", "--port", "0", "--data", "data", **patience) as made:
        yield made


def connect(plane: Plane) -> socket.socket:
    place = urlsplit(plane.url)
    assert place.hostname is not None
    return socket.create_connection((place.hostname, place.port or 0), timeout=PROCESS_DEADLINE)


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    received = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65536):
            received += part
    return received


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /healthz/live HTTP/1.1\r\nHost: 127.0", WHOLE + b"GET / HTTP/1.1\r\nHost"],
    ids=["silent", "half a head", "a request and half a head"],
)
def test_a_head_that_does_not_arrive_ends_the_connection(plane: Plane, sent: bytes) -> None:
    with connect(plane) as slow:
        slow.sendall(sent)
        assert httpx.get(f"{plane.url}/healthz/live", timeout=PROCESS_DEADLINE).status_code == 200
        assert rest(slow).count(b"200 OK") == sent.count(WHOLE)


def test_a_head_without_end_is_refused(patient: Plane) -> None:
    with connect(patient) as endless:
        endless.sendall(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * (HEAD_LIMIT - 5000))
        endless.sendall(b"x" * 5000)  # the last bytes are over the limit, so that none is unread
        assert rest(endless).startswith(b"HTTP/1.1 400")


def test_a_body_that_does_not_arrive_is_told_so(plane: Plane) -> None:
    with connect(plane) as slow:
        head = b"POST /v1/orchestrate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{"
        slow.sendall(head)
        assert rest(slow).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_body_may_come_in_chunks_of_any_size(patient: Plane, size: int) -> None:
    """Read whole: a request of a type that nobody knows is told so, with the name that it gave."""
    name = "".join(f"TYPE_{number}_" for number in range(20))
    refs = {"input_ref": {"uri": "az://in/a"}, "output_ref": {"uri": "az://out/a"}}
    request = {"tenant_id": "acme", "request_type": name, "payload": {}, "schema_version": "1"}
    body = json.dumps(request | refs).encode()
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    with connect(patient) as client:
        head = b"POST /v1/orchestrate HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        answer = rest(client)
    assert b"REQUEST_TYPE_UNKNOWN" in answer
    assert name.encode() in answer


def test_a_client_that_is_quick_keeps_its_connection(patient: Plane) -> None:
    with connect(patient) as quick:
        for _ in range(3):
            quick.sendall(WHOLE)
            answer = b""
            while not answer.endswith(b"}"):
                answer += quick.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")
