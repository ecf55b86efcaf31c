"""What goes wrong with the mock itself is told, and what a service does wrong is no such thing."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest

from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import Mock, MockSettings, Recording, What
from orchestrator_mock.faults import Faults
from orchestrator_mock.front import Answer, Front
from orchestrator_mock.lanes import Lanes
from orchestrator_mock.ledger import MockLedger, Refs
from servicebus_emulator.messages import Message
from tests.mock.parity.service import reply
from tests.mock.scene import LANE, SERVICE, HttpService, directive_of, order, whats
from tests.runner.deadlines import DEADLINE


class Breaking:
    """A clock that can be made to fail."""

    def __init__(self) -> None:
        self.is_broken = False

    def __call__(self) -> datetime:
        if self.is_broken:
            raise RuntimeError("the clock has stopped")
        return datetime.now(UTC)


async def break_down(
    _type: What, _token: str | None, _headers: Mapping[str, str], _raw: bytes, /
) -> Answer:
    raise RuntimeError("a defect")


@asynccontextmanager
async def front(recording: Recording) -> AsyncIterator[Front]:
    front = Front(break_down, Faults(), recording)
    await front.open()
    try:
        yield front
    finally:
        await front.close()


async def test_a_judge_that_fails_is_a_defect(http_service: HttpService) -> None:
    recording = Recording()
    async with front(recording) as before:
        async with http_service.http.post(before.urls["ack"], data=b"{}") as answer:
            assert answer.status == 500
        assert before.defects == ["ACK could not be judged: RuntimeError('a defect')"]
    assert [entry.what for entry in recording] == [What.ACK]


async def test_the_defects_of_all_parts_are_those_of_the_mock(
    tmp_path: Path, http_service: HttpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Mock(MockSettings(SERVICE, tmp_path)) as mock:
        issued = mock.send(order(), publish=False)
        ref = mock.serve("a", b"a", job_id=issued.job_id, media_type="text/plain")
        assert mock.defects == []

        def stop(*_: object) -> None:
            raise RuntimeError("a defect")

        monkeypatch.setattr(mock.faults, "take", stop)
        async with http_service.http.post(issued.body["callback_urls"]["ack"]) as answer:
            assert answer.status == 500
        async with http_service.http.get(ref.uri) as answer:
            assert answer.status == 500
        assert mock.defects == [
            "ACK could not be judged: RuntimeError('a defect')",
            "a could not be served: RuntimeError('a defect')",
        ]


async def test_after_a_defect_replies_over_the_bus_are_read_on() -> None:
    recording, clock = Recording(), Breaking()
    ledger = MockLedger(clock, lambda size: b"1" * size)
    lanes = Lanes(SERVICE, 60, ledger, recording)
    refs = Refs({"uri": "az://in"}, {"uri": "az://workspace/"}, {"uri": "az://out"})
    row = ledger.create("job_1", order(reply_via=ReplyVia.BUS), refs)
    written = {
        "type": "ACK",
        "jobId": "job_1",
        "stepId": row.step_id,
        "tenant_id": "acme",
        "attempt_no": 1,
        "lease_id": row.lease_id,
        "timestamp": "2026-01-27T10:00:00Z",
    }
    message = Message.build(json.dumps(written).encode())
    await lanes.open()
    try:
        clock.is_broken = True
        lanes.emulator.broker.send(f"global-bus-replies-p{LANE}", [message])
        assert await recording.wait(lambda: lanes.defects or None, DEADLINE) == [
            f"a reply on lane {LANE} could not be judged: RuntimeError('the clock has stopped')"
        ]
        clock.is_broken = False
        lanes.emulator.broker.send(f"global-bus-replies-p{LANE}", [message])
        assert await recording.wait(lambda: recording.of("job_1", What.ACK) or None, DEADLINE)
    finally:
        await lanes.close()


HOSTILE = {
    "nothing": b"",
    "no JSON": b"{",
    "very deep": b"[" * 30_000,
    "a deep member": b'{"jobId": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "a number of many digits": b'{"attempt_no": ' + b"9" * 10_000 + b"}",
    "no UTF-8": b'{"jobId": "\xff"}',
    "a lone surrogate": b'{"jobId": "\\ud800"}',
    "an object for an id": b'{"jobId": {}, "attempt_no": []}',
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_whatever_a_service_sends_is_no_defect(
    mock: Mock, http_service: HttpService, what: str
) -> None:
    urls = mock.send(order(), publish=False).body["callback_urls"]
    for url in urls.values():
        async with http_service.http.post(url, data=HOSTILE[what]) as answer:
            assert answer.status == 400
            assert answer.content_type == "application/problem+json"
    assert mock.defects == []


async def test_a_huge_reply_is_refused_and_recorded_without_its_body(
    mock: Mock, http_service: HttpService
) -> None:
    url = mock.send(order(), publish=False).body["callback_urls"]["result"]
    huge = BytesIO(b" " * 9 * 1024 * 1024)
    async with http_service.http.post(url, data=huge) as answer:
        assert answer.status == 413
        assert (await answer.json(content_type=None))["code"] == "TOO_LARGE"
    (entry,) = mock.recording.of("", What.RESULT)
    assert (entry.status, entry.answer, entry.body) == (413, "TOO_LARGE", None)


async def test_a_service_that_leaves_in_mid_reply_is_no_defect(mock: Mock) -> None:
    issued = mock.send(order(), publish=False)
    raw = json.dumps(reply(directive_of(issued), "ACK")).encode()

    async def half() -> AsyncIterator[bytes]:
        yield raw[:10]
        raise ConnectionError("the service has died")

    async with HttpService() as service:
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await service.http.post(issued.body["callback_urls"]["ack"], data=half())
    async with HttpService() as service:
        assert await service(issued, "ACK") == (200, "APPLIED")
    assert whats(mock, issued.job_id) == [What.ACK]
