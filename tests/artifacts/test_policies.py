"""The service that an operator runs to judge versions, as a real one on this machine."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from lucius_artifacts.errors import Unavailable
from lucius_artifacts.model import Entry, Fence, Producer, Version
from lucius_artifacts.policies import AllowAll, PolicyService
from lucius_artifacts.ports.policy import Allow, Quarantine
from lucius_artifacts.states import VersionState
from lucius_orchestrator.api.bodies import read_body
from tests.api.serving import address, served
from tests.runner.deadlines import DEADLINE

SOON = timedelta(seconds=DEADLINE)
VERSION = Version(
    "acme",
    "letters",
    0,
    VersionState.DRAFT,
    (Entry("a.txt", "ab" * 32, 5, "text/plain"),),
    datetime(2026, 1, 27, tzinfo=UTC),
    "ada",
    Producer("job_1", Fence("step_01", 1, 2)),
)


class Service:
    """Answers as it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.body = b""
        self.is_silent = False
        self.asked: list[Any] = []

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        self.asked.append(json.loads(await read_body(receive)))
        if self.is_silent:
            await receive()  # until the client leaves
            return
        headers = [(b"content-length", b"%d" % len(self.body)), (b"location", b"/elsewhere")]
        start = {"type": "http.response.start", "status": self.status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": self.body})


@asynccontextmanager
async def policy(service: Service, timeout: timedelta = SOON) -> AsyncIterator[PolicyService]:
    async with served(service) as port, PolicyService(address(port), timeout) as asked:
        yield asked


async def verdict(answer: Any) -> Allow | Quarantine:
    service = Service()
    service.body = json.dumps(answer).encode()
    async with policy(service) as asked:
        return await asked.judge(VERSION)


async def test_everybody_may_publish_where_there_is_no_policy() -> None:
    assert await AllowAll().judge(VERSION) == Allow()


async def test_the_service_allows_or_keeps_in_quarantine() -> None:
    assert await verdict({"verdict": "allow", "note": "fine"}) == Allow()
    assert await verdict({"verdict": "quarantine", "reason": "a virus"}) == Quarantine("a virus")


async def test_a_reason_can_be_stored_and_read() -> None:
    assert await verdict({"verdict": "quarantine"}) == Quarantine("the policy gives no reason")
    strange = {"verdict": "quarantine", "reason": "a\nvirus\0 \ud800"}
    assert await verdict(strange) == Quarantine("a virus")
    found = await verdict({"verdict": "quarantine", "reason": "x" * 5000})
    assert found == Quarantine("x" * 1000)


async def test_it_is_told_what_would_be_published() -> None:
    service = Service()
    service.body = b'{"verdict": "allow"}'
    async with policy(service) as asked:
        await asked.judge(VERSION)
    assert service.asked == [
        {
            "tenant_id": "acme",
            "name": "letters",
            "version": None,
            "state": "draft",
            "created_by": "ada",
            "jobId": "job_1",
            "entries": [
                {"path": "a.txt", "digest": "ab" * 32, "length": 5, "media_type": "text/plain"}
            ],
        }
    ]


NO_VERDICTS = [{}, {"verdict": "maybe"}, {"verdict": True}, [], "allow", None, {"allow": True}]
NO_ANSWERS = [
    (500, b'{"verdict": "allow"}'),
    (204, b""),
    (302, b'{"verdict": "allow"}'),
    (200, b"allow"),
    (200, b"\xff"),
    (200, b'{"verdict": "allow", "pad": "' + b"x" * 70_000 + b'"}'),
]


async def test_only_a_short_verdict_with_success_counts() -> None:
    service = Service()
    async with policy(service) as asked:
        for answer in NO_VERDICTS:
            service.body = json.dumps(answer).encode()
            with pytest.raises(Unavailable):
                await asked.judge(VERSION)
        for service.status, service.body in NO_ANSWERS:
            with pytest.raises(Unavailable):
                await asked.judge(VERSION)
    assert len(service.asked) == len(NO_VERDICTS) + len(NO_ANSWERS)


async def test_a_service_that_does_not_answer_is_not_waited_for() -> None:
    service = Service()
    service.is_silent = True
    async with policy(service, timedelta(milliseconds=20)) as asked:
        with pytest.raises(Unavailable):
            await asked.judge(VERSION)


async def test_a_service_that_never_comes_to_an_end_is_not_waited_for() -> None:
    async def dribbles(_: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        left = asyncio.ensure_future(receive())
        while not left.done():
            await send({"type": "http.response.body", "body": b" ", "more_body": True})
            await asyncio.wait([left], timeout=0.002)

    timeout = timedelta(milliseconds=50)
    async with served(dribbles) as port, PolicyService(address(port), timeout) as asked:
        with pytest.raises(Unavailable, match=r"Timeout"):
            await asked.judge(VERSION)


async def test_a_service_that_is_not_there_allows_nothing() -> None:
    async with PolicyService("http://127.0.0.1:1/") as asked:
        with pytest.raises(Unavailable, match="ConnectError"):
            await asked.judge(VERSION)
