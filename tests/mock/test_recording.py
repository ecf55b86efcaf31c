"""Everything that passes between the mock and a service is recorded, in order, with its job."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import (
    Backlog,
    Entry,
    Fault,
    Issued,
    Mock,
    MockSettings,
    Order,
    Recording,
    What,
)
from tests.mock.parity.service import reply
from tests.mock.scene import (
    LANE,
    SERVICE,
    BusService,
    HttpService,
    directive_of,
    order,
    recorded,
    whats,
)
from tests.runner.deadlines import DEADLINE

pytestmark = pytest.mark.asyncio(loop_scope="module")
TOPIC = f"global-bus-p{LANE}"
OVER_BUS: Order = order(reply_via=ReplyVia.BUS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mock(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mock]:
    async with Mock(MockSettings(SERVICE, tmp_path_factory.mktemp("workspace"))) as mock:
        yield mock
        assert mock.defects == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(mock: Mock) -> AsyncIterator[BusService]:
    async with BusService(mock) as service:
        yield service


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http_service() -> AsyncIterator[HttpService]:
    async with HttpService(kept=True) as service:
        yield service


async def settled(mock: Mock, issued: Issued, what: What) -> Entry:
    (entry,) = await recorded(mock, issued.job_id, what)
    assert (entry.attempt_no, entry.message_id) == (1, issued.message_id)
    assert entry.via == TOPIC
    return entry


async def test_a_directive_is_published_delivered_renewed_and_completed(
    mock: Mock, service: BusService
) -> None:
    issued = mock.send(order())
    message = await service.take()
    receiver = await service.receiver()
    await receiver.renew_message_lock(message)
    assert not mock.is_settled(issued)
    await receiver.complete_message(message)
    await settled(mock, issued, What.COMPLETED)
    assert whats(mock, issued.job_id) == [
        What.PUBLISHED,
        What.DELIVERED,
        What.RENEWED,
        What.COMPLETED,
    ]
    assert mock.is_settled(issued)


async def test_a_dead_letter_is_recorded_with_its_reason(mock: Mock, service: BusService) -> None:
    issued = mock.send(order())
    message = await service.take()
    receiver = await service.receiver()
    await receiver.dead_letter_message(message, reason="ENVELOPE_INVALID", error_description="why")
    assert (await settled(mock, issued, What.DEAD_LETTERED)).detail == "ENVELOPE_INVALID"
    assert mock.is_settled(issued)


async def test_what_is_abandoned_is_delivered_again(mock: Mock, service: BusService) -> None:
    issued = mock.send(order())
    message = await service.take()
    await (await service.receiver()).abandon_message(message)
    await recorded(mock, issued.job_id, What.ABANDONED)
    assert not mock.is_settled(issued)
    await service.taken()
    await settled(mock, issued, What.COMPLETED)
    assert whats(mock, issued.job_id)[1:] == [
        What.DELIVERED,
        What.ABANDONED,
        What.DELIVERED,
        What.COMPLETED,
    ]


async def test_what_is_deferred_waits_to_be_asked_for(mock: Mock, service: BusService) -> None:
    issued = mock.send(order())
    receiver, message = await service.receiver(), await service.take()
    await receiver.defer_message(message)
    await settled(mock, issued, What.DEFERRED)
    assert not mock.is_settled(issued)
    assert message.sequence_number is not None
    (again,) = await receiver.receive_deferred_messages(message.sequence_number)
    await receiver.complete_message(again)
    await settled(mock, issued, What.COMPLETED)


async def test_a_lock_that_nobody_renews_is_lost_and_the_directive_delivered_again(
    tmp_path: Path,
) -> None:
    settings = MockSettings(SERVICE, tmp_path, lock_seconds=0.3)
    async with Mock(settings) as mock, BusService(mock) as service:
        await service.receiver()
        issued = mock.send(order())
        await service.take()
        await recorded(mock, issued.job_id, What.LOCK_LOST)
        assert not mock.is_settled(issued)
        again = await service.take()
        assert again.delivery_count == 1
        assert whats(mock, issued.job_id)[1:4] == [
            What.DELIVERED,
            What.LOCK_LOST,
            What.DELIVERED,
        ]


async def test_a_directive_is_settled_when_all_its_copies_are(
    mock: Mock, service: BusService
) -> None:
    issued = mock.send(order(), copies=2)
    for number, is_settled in enumerate((False, True), start=1):
        await service.taken()
        await recorded(mock, issued.job_id, What.COMPLETED, number)
        assert mock.is_settled(issued) is is_settled
    assert [entry.what for entry in mock.settlements(issued)] == [What.COMPLETED] * 2
    mock.publish(issued)
    assert not mock.is_settled(issued)
    await service.taken()


async def test_jobs_that_run_at_the_same_time_are_kept_apart(
    mock: Mock, service: BusService
) -> None:
    first, second = mock.send(order()), mock.send(order())
    one, other = await service.take(), await service.take()
    await service.complete(other)
    await recorded(mock, second.job_id, What.COMPLETED)
    assert What.COMPLETED not in whats(mock, first.job_id)
    await service.complete(one)
    await settled(mock, first, What.COMPLETED)


async def test_the_attempts_of_a_job_are_kept_apart(mock: Mock, service: BusService) -> None:
    asked = order()
    first = mock.send(asked)
    await service.taken()
    second = mock.next_attempt(first, asked)
    await service.taken()
    await recorded(mock, first.job_id, What.COMPLETED, times=2)
    entries = mock.recording.of(first.job_id, What.PUBLISHED, What.COMPLETED)
    assert [(e.attempt_no, e.message_id) for e in entries] == [
        (1, first.message_id),
        (1, first.message_id),
        (2, second.message_id),
        (2, second.message_id),
    ]


async def test_a_reply_over_http_is_recorded_with_its_answer(
    mock: Mock, http_service: HttpService
) -> None:
    issued = mock.send(order(), publish=False)
    await http_service(issued, "ACK", {"X-Trace": "t-1"})
    await http_service(issued, "RESULT", artifacts=[])
    await http_service(issued, "RESULT", x_pages=7)
    ack, result, other = mock.recording.of(issued.job_id, What.ACK, What.RESULT)
    assert (ack.via, ack.attempt_no, ack.status, ack.answer) == ("http", 1, 200, "APPLIED")
    assert ack.headers["x-trace"] == "t-1"
    assert ack.body == reply(directive_of(issued), "ACK")
    assert (result.status, result.answer) == (200, "APPLIED")
    assert (other.status, other.answer) == (409, "RESULT_CONFLICT")
    assert ack.number < result.number < other.number
    assert ack.at <= result.at <= other.at


async def test_a_reply_that_is_refused_is_recorded_with_the_code(
    mock: Mock, http_service: HttpService
) -> None:
    issued = mock.send(order(), publish=False)
    await http_service(issued, "ACK", {"Authorization": "Bearer nonsense"})
    await http_service(issued, "ACK", timestamp="now")
    entries = mock.recording.of(issued.job_id, What.ACK)
    told = [(entry.status, entry.answer) for entry in entries]
    assert told == [(401, "UNAUTHENTICATED"), (400, "ENVELOPE_INVALID")]


async def test_a_reply_over_the_bus_is_recorded_with_its_lane_and_verdict(
    mock: Mock, service: BusService
) -> None:
    issued = mock.send(OVER_BUS, publish=False)
    written = reply(directive_of(issued), "ACK")
    for name in ("m-1", "m-2"):
        await service.answer(json.dumps(written).encode(), name, traceparent="t-1")
    first, second = await recorded(mock, issued.job_id, What.ACK, times=2)
    assert (first.via, first.message_id, first.status) == (f"bus {LANE}", "m-1", None)
    assert first.headers == {"traceparent": "t-1"}
    assert first.body == written
    assert (first.answer, second.answer) == ("APPLIED", "DUPLICATE")


async def test_what_cannot_be_read_is_recorded_with_the_reason(
    mock: Mock, service: BusService
) -> None:
    await service.answer(b"{", "m-unreadable")
    (entry,) = await recorded(mock, "", What.UNREADABLE)
    assert entry.message_id == "m-unreadable"
    assert entry.answer.startswith("ENVELOPE_INVALID: not valid JSON")
    assert entry.body is None


async def test_no_token_and_no_other_credential_is_recorded(
    mock: Mock, http_service: HttpService
) -> None:
    asked = order()
    issued = mock.send(asked)
    secrets = {
        "Cookie": "session=hush-1",
        "Proxy-Authorization": "Basic hush-2",
        "AUTHORIZATION": f"Bearer {issued.body['callback_token']}",
    }
    token = issued.body["callback_token"]
    await http_service(issued, "ACK", secrets)
    await http_service(issued, "ACK", {"Authorization": "Bearer hush-3"})
    await http_service(issued, "RESULT", callback_token=token, x_given={"callback_token": token})
    await mock.add_fault(Fault("callback-cut"))
    await mock.clear_faults()
    following = mock.next_attempt(mock.send(asked), asked)
    mock.purge()
    said = repr(list(mock.recording)) + "".join(entry.shown() for entry in mock.recording)
    assert issued.job_id in said
    for secret in (token, following.body["callback_token"], "hush", "SharedAccessKey"):
        assert secret not in said


async def test_faults_are_noted_when_they_are_switched_on_and_off(mock: Mock) -> None:
    before = len(mock.recording)
    names = ("callback-500", "settlement-lost", "reply-dropped", "storage-503")
    for name in names:
        await mock.add_fault(Fault(name))
    await mock.clear_faults()
    await mock.clear_faults()
    told = [entry.detail for entry in mock.recording.since(before)]
    assert told == [f"{name} is on" for name in names] + [
        f"{name} is off" for name in sorted(names)
    ]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_entries_are_numbered_and_timed_from_the_beginning() -> None:
    clock = Clock()
    recording = Recording(clock)
    recording.add(What.NOTE, detail="one")
    clock.now += 2.5
    recording.add(What.NOTE, job_id="j", detail="two")
    assert [(e.number, e.at) for e in recording] == [(0, 0.0), (1, 2.5)]
    assert (len(recording), recording.now()) == (2, 2.5)
    assert [e.detail for e in recording.since(1)] == ["two"]
    assert [e.detail for e in recording.of("j")] == ["two"]
    assert recording.of("j", What.ACK) == []


async def test_jobs_are_counted_by_how_far_the_service_is_with_them() -> None:
    recording = Recording()
    said = {
        "waits": [What.PUBLISHED],
        "is locked": [What.PUBLISHED, What.DELIVERED],
        "was given back": [What.PUBLISHED, What.DELIVERED, What.ABANDONED],
        "was left lying": [What.PUBLISHED, What.DELIVERED, What.LOCK_LOST],
        "came again": [What.PUBLISHED, What.DELIVERED, What.LOCK_LOST, What.DELIVERED],
        "is acknowledged": [What.PUBLISHED, What.DELIVERED, What.ACK, What.ACK],
        "is reported": [What.PUBLISHED, What.DELIVERED, What.ACK, What.RESULT],
        "is done": [What.PUBLISHED, What.DELIVERED, What.ACK, What.RESULT, What.COMPLETED],
    }
    assert recording.backlog() == Backlog(0, 0, 0, 0)
    for job_id, happened in said.items():
        for what in happened:
            recording.add(what, job_id=job_id)
    assert recording.backlog() == Backlog(sent=8, locked=4, acknowledged=1, finished=2)


async def test_who_waits_is_woken_by_what_is_added_or_amended() -> None:
    recording = Recording()
    entry = recording.add(What.ACK, via="http")
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        added = tasks.create_task(recording.wait(lambda: len(recording) > 1 or None, DEADLINE))
        amended = tasks.create_task(
            recording.wait(lambda: next(iter(recording)).answer or None, DEADLINE)
        )
        await asyncio.sleep(0)
        recording.add(What.NOTE)
        await asyncio.sleep(0)
        recording.amend(entry, answer="APPLIED")
    assert (added.result(), amended.result()) == (True, "APPLIED")


async def test_who_waits_in_vain_is_told_so_in_time() -> None:
    recording = Recording()
    async with asyncio.timeout(DEADLINE):
        assert await recording.wait(lambda: len(recording) or None, 0.01) is None


async def test_what_holds_already_is_not_waited_for() -> None:
    assert await Recording().wait(lambda: "now", 0) == "now"


async def test_who_watches_gets_each_entry_when_all_is_known_of_it() -> None:
    recording, seen = Recording(), list[Entry]()
    recording.watch = seen.append
    waiting = recording.add(What.ACK, via="http")
    recording.add(What.ACK, via="bus 1", answer="APPLIED")
    answered = recording.amend(waiting, status=200, answer="DUPLICATE")
    assert [entry.answer for entry in seen] == ["APPLIED", "DUPLICATE"]
    assert seen[-1] is answered


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (Entry(0, 0, What.PUBLISHED, "j", 1, detail="expired", via="global-bus-p1"),
         "published attempt 1 expired over global-bus-p1"),
        (Entry(0, 0, What.ACK, "j", 1, via="http", status=200, answer="APPLIED"),
         "ACK attempt 1 over http → 200 APPLIED"),
        (Entry(0, 0, What.RESULT, "j", 2, via="bus 3", answer="STALE_ATTEMPT",
               body={"status": "FAILED_FINAL", "error": {"code": "INTERNAL"}}),
         "RESULT attempt 2 FAILED_FINAL INTERNAL over bus 3 → STALE_ATTEMPT"),
        (Entry(0, 0, What.RESULT, "j", 1, body={"status": "SUCCEEDED", "error": "odd"}),
         "RESULT attempt 1 SUCCEEDED"),
        (Entry(0, 0, What.FAULT, detail="bus-away is on"), "fault bus-away is on"),
    ],
)  # fmt: skip
async def test_an_entry_is_one_line_for_people(entry: Entry, shown: str) -> None:
    assert entry.shown() == shown
