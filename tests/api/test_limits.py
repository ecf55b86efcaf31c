"""Bodies that are too large or too slow, and clients that do not read, over a socket."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from starlette.types import Message

from lucius_orchestrator.api import ApiLimits
from lucius_orchestrator.api.bodies import BoundedBody, ClientGone, read_body
from lucius_orchestrator.api.edge import Answering
from tests.api.serving import address, head, served, wire
from tests.api.stage import Stage
from tests.engine.plane import OCR, Plane
from tests.ledger.view import job_ids
from tests.runner.deadlines import DEADLINE

SMALL = ApiLimits(max_body_bytes=1000, request_timeout=timedelta(seconds=DEADLINE))
IMPATIENT = replace(SMALL, request_timeout=timedelta(milliseconds=200))
BODY = json.dumps(OCR).encode()


def problem(raw: bytes) -> tuple[int, str]:
    top, _, body = raw.partition(b"\r\n\r\n")
    assert b"connection: close" in top.lower()
    return int(top.split()[1]), json.loads(body)["code"]


async def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(plane: Plane) -> None:
    async with served(Stage(plane, SMALL).app) as port, wire(port) as client:
        client.send(head("POST", "/v1/orchestrate", content_length="1001"))
        assert problem(await client.rest()) == (413, "TOO_LARGE")


async def test_a_body_that_grows_too_large_is_refused_on_the_way(plane: Plane) -> None:
    async with served(Stage(plane, SMALL).app) as port, wire(port) as client:
        client.send(head("POST", "/v1/orchestrate", transfer_encoding="chunked"))
        client.send(b"1f4\r\n" + b"x" * 500 + b"\r\n")
        client.send(b"1f5\r\n" + b"x" * 501 + b"\r\n")
        assert problem(await client.rest()) == (413, "TOO_LARGE")


async def test_a_body_of_exactly_the_limit_is_read(plane: Plane) -> None:
    stage = Stage(plane, SMALL)
    padded = BODY + b" " * (1000 - len(BODY))
    answer = await stage.post("/v1/orchestrate", content=padded)
    assert answer.status_code == 202
    answer = await stage.post("/v1/orchestrate", content=padded + b" ")
    assert answer.status_code == 413


async def test_a_length_beyond_all_numbers_is_too_large(plane: Plane) -> None:
    headers = {"Content-Length": "9" * 5000}
    answer = await Stage(plane).post("/v1/orchestrate", content=b"", headers=headers)
    assert answer.status_code == 413


@pytest.mark.parametrize("path", ["/v1/orchestrate", "/v1/callbacks/ack"])
async def test_a_body_that_does_not_arrive_is_not_waited_for(plane: Plane, path: str) -> None:
    async with served(Stage(plane, IMPATIENT).app) as port, wire(port) as client:
        client.send(head("POST", path, content_length="100"))
        client.send(b"{")
        assert problem(await client.rest()) == (408, "REQUEST_TIMEOUT")
    assert await job_ids(plane.ledger) == []


async def test_slow_clients_keep_nobody_from_being_served(plane: Plane) -> None:
    stage = Stage(plane, ApiLimits(request_timeout=timedelta(hours=1)))
    gone = asyncio.Event()

    async def linger(port: int) -> None:
        async with wire(port) as client:
            client.send(head("POST", "/v1/orchestrate", content_length="100") + b"{")
            await gone.wait()

    async with served(stage.app) as port, asyncio.TaskGroup() as tasks:
        for _ in range(50):
            tasks.create_task(linger(port))
        async with asyncio.timeout(DEADLINE), stage.client(base_url=address(port)) as client:
            answer = await client.post("/v1/orchestrate", json=OCR)
        gone.set()
    assert answer.status_code == 202


async def test_strangers_are_refused_before_their_body_is_read(plane: Plane) -> None:
    async with served(Stage(plane).app) as port, wire(port) as client:
        client.send(head("POST", "/v1/orchestrate", "stranger", content_length="100"))
        assert b" 401 " in await client.until(b"\r\n")


async def test_a_connection_serves_one_request_after_another(plane: Plane) -> None:
    async with served(Stage(plane).app) as port, wire(port) as client:
        for _ in range(2):
            length = str(len(BODY))
            client.send(head("POST", "/v1/orchestrate", content_length=length) + BODY)
            top = await client.until(b"\r\n\r\n")
            assert b" 202 " in top
            await client.until(b"}}")


async def test_a_client_that_leaves_in_the_middle_creates_nothing(plane: Plane) -> None:
    arrived: list[Message] = [
        {"type": "http.request", "body": BODY[:10], "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return arrived.pop(0)

    with pytest.raises(ClientGone):
        await read_body(BoundedBody(receive, 1000, 1))


async def test_a_client_that_leaves_at_once_creates_nothing(plane: Plane) -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientGone):
        await read_body(BoundedBody(receive, 1000, 1))


async def test_a_client_that_does_not_read_is_given_up() -> None:
    async def never(_: Message) -> None:
        await asyncio.Event().wait()

    answering = Answering(never, "c-1", seconds=0.01)
    with pytest.raises(ClientGone):
        await answering({"type": "http.response.body", "body": b"x"})
