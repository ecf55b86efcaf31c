"""Each fault of the bus does what its meaning says."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from azure.servicebus.exceptions import (
    MessageLockLostError,
    ServiceBusConnectionError,
    ServiceBusError,
)

from lucius_contract.routing import lane_of
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import Fault, Issued, Mock, MockSettings, What
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


@pytest.fixture
async def service(mock: Mock) -> AsyncIterator[BusService]:
    async with BusService(mock) as service:
        yield service


async def answer(service: BusService, issued: Issued) -> None:
    written = reply(directive_of(issued), "RESULT")
    await service.answer(json.dumps(written).encode())


def tenants_of_other_lanes() -> Iterator[str]:
    lanes = {LANE}
    for number in range(100):
        lane = lane_of(f"tenant-{number}")
        if lane not in lanes:
            lanes.add(lane)
            yield f"tenant-{number}"


async def test_while_the_bus_is_away_nobody_gets_in_and_then_on_the_same_port(
    mock: Mock, service: BusService
) -> None:
    port = int(mock.bus_address.split(":")[2])
    connection = mock.connection_string
    await mock.add_fault(Fault("bus-away", count=None))
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    with pytest.raises(ServiceBusConnectionError):
        await service.take()
    issued = mock.send(order())
    assert mock.waiting() == 1
    await mock.clear_faults("bus-away")
    assert mock.connection_string == connection
    assert (await service.taken()).message_id == issued.message_id


async def test_a_bus_that_goes_away_cuts_connections_and_keeps_what_it_has(
    mock: Mock, service: BusService
) -> None:
    issued = mock.send(order())
    receiver = await service.receiver()
    await mock.add_fault(Fault("bus-away", count=None))
    with pytest.raises(ServiceBusError):
        await receiver.receive_messages(1, max_wait_time=DEADLINE)
    await service.hang_up()
    await mock.clear_faults()
    assert (await service.taken()).message_id == issued.message_id


async def test_dropped_cuts_every_connection_once(mock: Mock, service: BusService) -> None:
    issued = mock.send(order(reply_via=ReplyVia.BUS))
    await service.sender()
    await mock.add_fault(Fault("bus-dropped"))
    with pytest.raises(ServiceBusConnectionError):
        await answer(service, issued)
    assert mock.faults.active == ()
    await service.hang_up()
    await answer(service, issued)
    (result,) = await recorded(mock, issued.job_id, What.RESULT)
    assert result.answer == "APPLIED"


async def test_a_lost_settlement_is_confirmed_and_the_directive_delivered_again(
    tmp_path: Path,
) -> None:
    lock = 0.4
    while not await is_settled_in_time(tmp_path, lock):
        lock *= 2  # the machine is busy


async def is_settled_in_time(folder: Path, lock: float) -> bool:
    settings = MockSettings(SERVICE, folder, lock_seconds=lock)
    async with Mock(settings) as mock, BusService(mock) as service:
        await service.receiver()
        issued = mock.send(order())
        await mock.add_fault(Fault("settlement-lost"))
        try:
            await service.taken()
            assert not mock.is_settled(issued)
            assert mock.waiting() == 1
            await recorded(mock, issued.job_id, What.LOCK_LOST)
            await service.taken()
        except MessageLockLostError:
            if lock > DEADLINE:
                raise
            return False
        await recorded(mock, issued.job_id, What.COMPLETED)
        assert whats(mock, issued.job_id) == [
            What.PUBLISHED,
            What.DELIVERED,
            What.LOCK_LOST,
            What.DELIVERED,
            What.COMPLETED,
        ]
        return True


async def test_settlements_are_lost_so_often_and_no_more_on_all_lanes_together(
    mock: Mock, service: BusService
) -> None:
    tenants = ["acme", next(tenants_of_other_lanes())]
    sent = [mock.send(order(tenant_id=tenant)) for tenant in tenants]
    await mock.add_fault(Fault("settlement-lost"))
    for issued in sent:
        message = await service.take(issued.lane)
        await service.complete(message, issued.lane)
    await recorded(mock, sent[1].job_id, What.COMPLETED)
    assert [mock.is_settled(issued) for issued in sent] == [False, True]


async def test_a_dropped_reply_is_not_taken_and_the_connection_is_cut(
    mock: Mock, service: BusService
) -> None:
    issued = mock.send(order(reply_via=ReplyVia.BUS))
    await service.sender()
    await mock.add_fault(Fault("reply-dropped", count=None))
    assert mock.dropped_replies == 0
    for times in (1, 2):
        with pytest.raises(ServiceBusConnectionError):
            await answer(service, issued)
        await service.hang_up()
        assert mock.dropped_replies == times
    assert mock.recording.of(issued.job_id, What.RESULT) == []
    await mock.clear_faults("reply-dropped")
    await answer(service, issued)
    (result,) = await recorded(mock, issued.job_id, What.RESULT)
    assert result.answer == "APPLIED"


async def test_a_dropped_reply_leaves_directives_alone(mock: Mock, service: BusService) -> None:
    await mock.add_fault(Fault("reply-dropped", count=None))
    issued = mock.send(order())
    await service.taken()
    await recorded(mock, issued.job_id, What.COMPLETED)
    assert mock.dropped_replies == 0


async def test_clearing_one_fault_leaves_the_others_on(mock: Mock, service: BusService) -> None:
    issued = mock.send(order(reply_via=ReplyVia.BUS))
    for name in ("reply-dropped", "settlement-lost", "callback-500"):
        await mock.add_fault(Fault(name, count=None))
    await mock.clear_faults("settlement-lost")
    await service.taken()
    await recorded(mock, issued.job_id, What.COMPLETED)
    with pytest.raises(ServiceBusConnectionError):
        await answer(service, issued)
    assert [fault.name for fault in mock.faults.active] == ["callback-500"]


async def test_over_http_the_bus_does_not_matter(mock: Mock, http_service: HttpService) -> None:
    issued = mock.send(order())
    await mock.add_fault(Fault("bus-away", count=None))
    assert await http_service(issued, "RESULT") == (200, "APPLIED")
