"""Each fault of the callbacks does what its meaning says."""

import asyncio

import aiohttp
import pytest

from lucius_contract.states import StepState
from orchestrator_mock import FAULTS, Fault, Issued, Mock, What
from orchestrator_mock.faults import Faults, Place, UnknownFault
from tests.mock.scene import HttpService, directive_of, order, struck, until
from tests.runner.deadlines import DEADLINE

APPLIED, DUPLICATE = (200, "APPLIED"), (200, "DUPLICATE")


def sent(mock: Mock) -> Issued:
    """A directive of which the ledger believes that it is out."""
    issued = mock.send(order(), publish=False)
    mock.mark_sent(issued)
    return issued


def state(mock: Mock, issued: Issued) -> StepState:
    return mock.job(issued.job_id).active.state


def answers(mock: Mock, issued: Issued) -> list[str]:
    return [entry.answer for entry in mock.recording.of(issued.job_id, What.ACK)]


def port_of(issued: Issued) -> int:
    url: str = issued.body["callback_urls"]["ack"]
    return int(url.split(":")[2].split("/")[0])


async def test_down_refuses_connections_and_comes_back_on_the_same_port(
    mock: Mock, http_service: HttpService
) -> None:
    issued = sent(mock)
    await mock.add_fault(Fault("callback-down", count=None))
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port_of(issued))
    with pytest.raises(aiohttp.ClientConnectorError):
        await http_service(issued, "ACK")
    assert state(mock, issued) is StepState.AWAITING_ACK
    await mock.clear_faults("callback-down")
    assert await http_service(issued, "ACK") == APPLIED
    assert port_of(sent(mock)) == port_of(issued)


async def test_down_cuts_connections_that_are_kept(mock: Mock) -> None:
    issued = sent(mock)
    async with HttpService(kept=True) as service:
        await service(issued, "ACK")
        await mock.add_fault(Fault("callback-down", count=None))
        with pytest.raises(aiohttp.ClientError):
            await service(issued, "ACK")
    assert answers(mock, issued) == ["APPLIED"]


async def test_down_twice_is_down(mock: Mock, http_service: HttpService) -> None:
    issued = sent(mock)
    for _ in range(2):
        await mock.add_fault(Fault("callback-down", count=None))
    await mock.clear_faults()
    assert await http_service(issued, "ACK") == APPLIED


async def test_cut_ends_the_connection_before_anything_is_done(
    mock: Mock, http_service: HttpService
) -> None:
    issued = sent(mock)
    await mock.add_fault(Fault("callback-cut"))
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await http_service(issued, "ACK")
    assert answers(mock, issued) == ["callback-cut"]
    assert state(mock, issued) is StepState.AWAITING_ACK
    assert await http_service(issued, "ACK") == APPLIED


@pytest.mark.parametrize(
    ("name", "answer"),
    [("callback-500", (500, "INTERNAL")), ("callback-503", (503, "UNAVAILABLE"))],
)
async def test_a_refusal_is_answered_and_nothing_is_done(
    mock: Mock, http_service: HttpService, name: str, answer: tuple[int, str]
) -> None:
    issued = sent(mock)
    await mock.add_fault(Fault(name))
    assert await http_service(issued, "ACK") == answer
    (entry,) = mock.recording.of(issued.job_id, What.ACK)
    assert (entry.status, entry.answer) == (answer[0], name)
    assert state(mock, issued) is StepState.AWAITING_ACK
    assert await http_service(issued, "ACK") == APPLIED


async def test_503_asks_to_come_again(mock: Mock, http_service: HttpService) -> None:
    url = directive_of(sent(mock)).callback_urls
    assert url is not None
    await mock.add_fault(Fault("callback-503"))
    async with http_service.http.post(url.ack, data=b"{}") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert answer.content_type == "application/problem+json"


async def test_slow_does_at_once_what_it_answers_later(
    mock: Mock, http_service: HttpService
) -> None:
    issued = sent(mock)
    await mock.add_fault(Fault("callback-slow", seconds=600))
    asking = asyncio.ensure_future(http_service(issued, "ACK"))
    await until(mock, lambda: answers(mock, issued)[:1] if any(answers(mock, issued)) else None)
    assert answers(mock, issued) == ["APPLIED, after 600 s"]
    assert state(mock, issued) is StepState.IN_PROGRESS
    assert not asking.done()
    assert await http_service(issued, "ACK") == DUPLICATE
    asking.cancel()


async def test_slow_answers_after_its_time(mock: Mock, http_service: HttpService) -> None:
    issued = sent(mock)
    began = asyncio.get_running_loop().time()
    await mock.add_fault(Fault("callback-slow", seconds=0.2))
    assert await http_service(issued, "ACK") == APPLIED
    assert asyncio.get_running_loop().time() - began >= 0.2


async def test_a_lost_answer_was_applied(mock: Mock, http_service: HttpService) -> None:
    issued = sent(mock)
    await mock.add_fault(Fault("callback-lost-answer"))
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await http_service(issued, "ACK")
    assert state(mock, issued) is StepState.IN_PROGRESS
    assert answers(mock, issued) == ["APPLIED, callback-lost-answer"]
    assert await http_service(issued, "ACK") == DUPLICATE


async def test_409_says_stale_whatever_it_is(mock: Mock, http_service: HttpService) -> None:
    issued = sent(mock)
    await mock.add_fault(Fault("callback-409", count=None))
    for type in ("ACK", "HEARTBEAT", "RESULT"):
        assert await http_service(issued, type) == (409, "STALE_ATTEMPT")
    assert answers(mock, issued) == ["STALE_ATTEMPT, callback-409"]
    assert state(mock, issued) is StepState.AWAITING_ACK


async def test_what_is_held_is_neither_done_nor_answered_until_it_is_cleared(
    mock: Mock, http_service: HttpService
) -> None:
    issued = sent(mock)
    await mock.add_fault(Fault("callback-hold", types=frozenset({"ACK"})))
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(http_service(issued, "ACK"))
        await struck(mock, issued.job_id, "callback-hold")
        assert state(mock, issued) is StepState.AWAITING_ACK
        await mock.add_fault(Fault("storage-503"))
        await mock.clear_faults("storage-503", "callback-500")
        assert await http_service(issued, "HEARTBEAT") == APPLIED
        assert not asking.done()
        await mock.clear_faults("callback-hold")
    assert asking.result() == DUPLICATE
    assert answers(mock, issued) == ["DUPLICATE, after it was held"]


async def test_what_was_given_up_while_it_was_held_is_forgotten(
    mock: Mock, http_service: HttpService
) -> None:
    issued, other = sent(mock), sent(mock)
    await mock.add_fault(Fault("callback-hold", count=2))
    asking = asyncio.ensure_future(http_service(issued, "ACK"))
    await struck(mock, issued.job_id, "callback-hold")
    asking.cancel()
    waiting = asyncio.ensure_future(http_service(other, "ACK"))
    await struck(mock, other.job_id, "callback-hold")
    await mock.clear_faults()
    assert await waiting == APPLIED
    assert state(mock, issued) is StepState.AWAITING_ACK
    assert answers(mock, issued) == ["callback-hold"]


async def test_a_fault_strikes_the_types_and_the_job_that_it_is_for(
    mock: Mock, http_service: HttpService
) -> None:
    issued, other = sent(mock), sent(mock)
    fault = Fault("callback-500", None, frozenset({"RESULT"}), issued.job_id)
    await mock.add_fault(fault)
    assert await http_service(issued, "ACK") == APPLIED
    assert await http_service(other, "RESULT") == APPLIED
    for _ in range(3):
        assert await http_service(issued, "RESULT") == (500, "INTERNAL")
    assert mock.faults.active == (fault,)
    await mock.clear_faults("callback-500")
    assert await http_service(issued, "RESULT") == APPLIED


def test_a_fault_that_is_not_known_is_told_with_those_that_are() -> None:
    with pytest.raises(UnknownFault, match=r"no fault 'rain'; there are callback-down, "):
        Fault("rain")


@pytest.mark.parametrize("count", [0, -1])
def test_a_fault_that_would_never_strike_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="count must be at least 1"):
        Fault("callback-500", count)


def test_faults_are_taken_in_their_order_and_counted_down() -> None:
    faults = Faults()
    faults.add(Fault("callback-500", 2))
    faults.add(Fault("callback-cut", None))
    faults.add(Fault("storage-503", job_id="j"))
    taken = [faults.take(Place.CALLBACK, "j", "ACK") for _ in range(4)]
    names = [fault.name for fault in taken if fault is not None]
    assert names == ["callback-500", "callback-500", "callback-cut", "callback-cut"]
    assert faults.take(Place.STORAGE, "other") is None
    assert faults.take(Place.STORAGE, "j") is not None
    assert [fault.name for fault in faults.active] == ["callback-cut"]


def test_clearing_names_those_that_were_on() -> None:
    faults = Faults()
    faults.add(Fault("callback-500"))
    faults.add(Fault("callback-cut"))
    assert [fault.name for fault in faults.clear(["callback-500", "callback-503"])] == [
        "callback-500"
    ]
    assert [fault.name for fault in faults.clear()] == ["callback-cut"]
    assert faults.clear() == []


def test_every_fault_has_a_name_that_says_where_it_strikes() -> None:
    assert len({info.name for info in FAULTS}) == len(FAULTS)
    for info in FAULTS:
        first = info.name.split("-")[0]
        bus = {"bus", "settlement", "reply"}
        assert first in ({info.place.value} if info.place is not Place.BUS else bus)
        assert info.meaning.endswith(".")
