"""Faults of the bus before the mock and before the orchestrator: a service that publishes its reply
until the bus has it is heard once by both."""

import json

import pytest
from azure.servicebus.exceptions import ServiceBusError

from lucius_contract.messages import Directive
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import FAULTS, Fault
from orchestrator_mock.faults import Place
from tests.mock.parity.service import BusService, reply
from tests.mock.parity.target import Target

pytestmark = pytest.mark.asyncio(loop_scope="module")
NETWORK, TAKEN = "network", "taken"
TRIES = 3
STRIKING = {
    "reply-dropped": (2, [NETWORK, NETWORK, TAKEN]),
    "bus-dropped": (1, [NETWORK, TAKEN]),
}
"""How often the fault strikes, and what a service meets that publishes until it succeeds."""
OF_DIRECTIVES = {"settlement-lost"}


async def test_no_fault_of_the_bus_is_forgotten() -> None:
    known = {info.name for info in FAULTS if info.place is Place.BUS}
    assert known - OF_DIRECTIVES == STRIKING.keys() | {"bus-away"}


async def published(bus_service: BusService, given: Directive) -> list[str]:
    raw = json.dumps(reply(given, "RESULT")).encode()
    met: list[str] = []
    for _ in range(TRIES):
        try:
            await bus_service.publish(raw, "m-1")
        except ServiceBusError:
            met.append(NETWORK)
        else:
            return [*met, TAKEN]
    return met


@pytest.mark.parametrize("name", STRIKING)
async def test_a_reply_that_the_bus_did_not_take_is_judged_once_when_it_is_sent_again(
    target: Target, bus_service: BusService, name: str
) -> None:
    times, expected = STRIKING[name]
    given = await target.submit(ReplyVia.BUS)
    number = await target.expect(given.job_id)
    await bus_service.connect()
    await target.add_fault(Fault(name, times))
    assert await published(bus_service, given) == expected
    assert await target.verdict(number) == "APPLIED"
    assert target.taken == number + 1


async def test_while_the_bus_is_away_replies_wait(target: Target, bus_service: BusService) -> None:
    given = await target.submit(ReplyVia.BUS)
    number = await target.expect(given.job_id)
    await bus_service.connect()
    await target.add_fault(Fault("bus-away", count=None))
    assert await published(bus_service, given) == [NETWORK] * TRIES
    assert target.taken == number
    await target.clear_faults()
    assert await published(bus_service, given) == [TAKEN]
    assert await target.verdict(number) == "APPLIED"
