"""HTTP on the wire: what is well said, badly said, and said too much."""

import asyncio
import logging
import re

import pytest

from servicebus_emulator.administration import Request, Response
from tests.emulator.administration.serving import Served, get, speak
from tests.runner.deadlines import DEADLINE


def statuses(answer: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d+) ", answer)]


async def test_health_answers(served: Served) -> None:
    answer = await speak(served.port, get("/$emulator/health"))
    assert statuses(answer) == [200]
    assert answer.endswith(b'{"status": "ok"}')


async def test_requests_on_one_connection_are_answered_in_order(served: Served) -> None:
    heads = (
        b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % p for p in (b"$emulator/health", b"no")
    )
    many = b"".join(heads)
    answer = await speak(served.port, many * 20 + get("/$namespaceinfo"))
    assert statuses(answer) == [200, 404] * 20 + [200]


async def test_a_request_may_come_in_pieces(served: Served) -> None:
    async with asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        for byte in get("/no", method="PUT", body=b"<a/>"):
            writer.write(bytes([byte]))
            await writer.drain()
        assert statuses(await reader.read()) == [400]
        writer.close()
        await writer.wait_closed()


async def test_who_waits_for_leave_to_send_a_body_gets_it(served: Served) -> None:
    async with asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head, _, body = get("/no", method="PUT", body=b"<a/>").partition(b"\r\n\r\n")
        writer.write(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        writer.write(body)
        assert statuses(await reader.read()) == [400]
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_answered_and_left(served: Served, sent: bytes) -> None:
    answer = await speak(served.port, sent)
    assert statuses(answer) == [400]
    assert b"Traceback" not in answer
    assert served.requests == []


async def test_a_head_without_end_is_refused(served: Served) -> None:
    answer = await speak(served.port, b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"b" * 40_000)
    assert statuses(answer) == [431]


@pytest.mark.parametrize("length", [1024 * 1024 + 1, 10**12])
async def test_a_body_that_is_too_large_is_refused(served: Served, length: int) -> None:
    """Whoever is not done with sending can read the answer all the same."""
    head = f"PUT /no HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode()
    answer = await speak(served.port, head + b"x" * (3 * 1024 * 1024))
    assert statuses(answer) == [413]
    assert served.requests == []


async def test_a_body_of_one_mebibyte_is_taken(served: Served) -> None:
    answer = await speak(served.port, get("/no", method="PUT", body=b" " * (1024 * 1024)))
    assert statuses(answer) == [400]
    assert len(served.requests) == 1


async def test_a_failure_is_logged_without_secrets_and_not_told(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_request: Request) -> Response:
        raise RuntimeError("the disk is full")

    served.before = fail
    headers = "Authorization: SharedAccessSignature sig=abc\r\n"
    answer = await speak(served.port, get("/no", headers=headers))
    assert statuses(answer) == [500]
    assert b"disk" not in answer
    assert b"Traceback" not in answer
    assert "the disk is full" in caplog.text
    assert "sig=abc" not in caplog.text


@pytest.mark.parametrize(
    "sent",
    [
        b"CONNECT a:443 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET http://a/no HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /no HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: close\r\n\r\n",
        b"GET /no HTTP/1.0\r\n\r\n",
        b"GET /%ff%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ],
)
async def test_rare_requests_are_refused_in_order(served: Served, sent: bytes) -> None:
    (status,) = statuses(await speak(served.port, sent))
    assert status in (404, 405)


async def test_answers_to_head_have_no_body(served: Served) -> None:
    answer = await speak(served.port, get("/$emulator/health", method="HEAD"))
    assert statuses(answer) == [405]
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/lane", 405),
        ("PUT", "/$Resources/queues", 405),
        ("DELETE", "/lane/subscriptions", 405),
        ("GET", "/$Resources/queues?$skip=x", 400),
        ("GET", "/$Resources/queues?$top=-1", 400),
        ("GET", "/$Resources/relays", 404),
        ("GET", "/lane", 404),
        ("PUT", "/lane", 400),
    ],
)
async def test_errors_have_the_body_that_clients_read(
    served: Served, method: str, path: str, status: int
) -> None:
    answer = await speak(served.port, get(path, method=method))
    assert statuses(answer) == [status]
    assert f"<Error><Code>{status}</Code><Detail>SubCode={status}00. ".encode() in answer


async def test_one_who_does_not_read_answers_is_not_read_from(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """Its requests wait with it, and are answered when it reads."""
    caplog.set_level(logging.WARNING)
    count = 3000
    served.before = lambda _: Response(200, b"x" * 4096)
    one = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=4096)
        writer.write(one * count)
        await _stalls(served)
        assert len(served.requests) < count
        writer.write(get("/last"))
        while await reader.read(65536):
            pass
        writer.close()
        await writer.wait_closed()
    assert len(served.requests) == count + 1


async def _stalls(served: Served) -> None:
    """Many turns of the loop bring nothing more."""
    seen, quiet = -1, 0
    while quiet < 100:
        quiet = quiet + 1 if len(served.requests) == seen else 0
        seen = len(served.requests)
        await asyncio.sleep(0)
