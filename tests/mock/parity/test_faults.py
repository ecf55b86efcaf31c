"""The mock's faults before the mock and before the orchestrator: a service that tries again as the
contract says hears the same from both."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from lucius_contract.messages import Directive
from orchestrator_mock import FAULTS, Fault
from orchestrator_mock.faults import Place
from tests.mock.parity.service import Said, Service, address_in, reply
from tests.mock.parity.target import Target
from tests.runner.deadlines import DEADLINE

pytestmark = pytest.mark.asyncio(loop_scope="module")
NETWORK = "network"
TRIES = 5
TWICE = {
    "callback-cut": [NETWORK, NETWORK, "200 APPLIED"],
    "callback-500": ["500 INTERNAL", "500 INTERNAL", "200 APPLIED"],
    "callback-503": ["503 UNAVAILABLE", "503 UNAVAILABLE", "200 APPLIED"],
    "callback-slow": ["200 APPLIED"],
    "callback-lost-answer": [NETWORK, NETWORK, "200 DUPLICATE"],
    "callback-409": ["409 STALE_ATTEMPT"],
}
"""What a service hears that sends a reply until it is answered, while the fault strikes twice."""
LASTING = {"callback-down", "callback-hold"}


async def test_no_fault_of_callbacks_is_forgotten() -> None:
    known = {info.name for info in FAULTS if info.place is Place.CALLBACK}
    assert known == TWICE.keys() | LASTING


class Patient:
    """Sends until it is answered for good."""

    def __init__(self, target: Target, service: Service) -> None:
        self._target = target
        self._service = service

    async def once(self, directive: Directive, type: str) -> Said:
        url = address_in(self._target.faulty_urls(directive), type)
        raw = json.dumps(reply(directive, type)).encode()
        return await self._service.post(url, raw, directive.callback_token)

    async def __call__(self, directive: Directive, type: str) -> list[str]:
        heard: list[str] = []
        for _ in range(TRIES):
            try:
                said = await self.once(directive, type)
            except aiohttp.ClientError:
                heard.append(NETWORK)
                continue
            heard.append(f"{said.status} {said.said}")
            if said.status < 500:
                break
        return heard


@pytest_asyncio.fixture(loop_scope="module")
async def patient(target: Target) -> AsyncIterator[Patient]:
    """Every request has a connection of its own, so that none fails for what befell another."""
    timeout = aiohttp.ClientTimeout(total=DEADLINE)
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as http:
        yield Patient(target, Service(target, http))
    await target.clear_faults()


async def struck(target: Target, given: Directive, name: str) -> None:
    """Wait until the fault has struck a reply of the job."""
    found = await target.recording.wait(
        lambda: [e for e in target.recording.of(given.job_id) if e.answer == name] or None, DEADLINE
    )
    assert found is not None, f"{name} has not struck"


@pytest.mark.parametrize("type", ["ACK", "HEARTBEAT", "RESULT"])
@pytest.mark.parametrize("name", TWICE)
async def test_a_fault_that_strikes_twice(
    target: Target, patient: Patient, name: str, type: str
) -> None:
    given = await target.submit()
    await target.add_fault(Fault(name, count=2, seconds=0.01))
    expected = list(TWICE[name])
    if (name, type) == ("callback-lost-answer", "HEARTBEAT"):
        expected[-1] = "200 APPLIED"  # it is never a duplicate
    assert await patient(given, type) == expected
    is_moved = (await target.seen(given.job_id)).attempts[0].is_acknowledged
    assert is_moved is (name != "callback-409")


@pytest.mark.parametrize("name", TWICE)
async def test_a_fault_strikes_the_types_and_the_job_that_it_is_for(
    target: Target, patient: Patient, name: str
) -> None:
    given, other = await target.submit(), await target.submit()
    only = frozenset({"RESULT"})
    await target.add_fault(Fault(name, 2, only, given.job_id, seconds=0.01))
    assert await patient(given, "ACK") == ["200 APPLIED"]
    assert await patient(other, "RESULT") == ["200 APPLIED"]
    assert await patient(given, "RESULT") == TWICE[name]


async def test_faults_strike_in_the_order_in_which_they_were_added(
    target: Target, patient: Patient
) -> None:
    given = await target.submit()
    for name in ("callback-503", "callback-cut", "callback-lost-answer", "callback-500"):
        await target.add_fault(Fault(name))
    heard = ["503 UNAVAILABLE", NETWORK, NETWORK, "500 INTERNAL", "200 DUPLICATE"]
    assert await patient(given, "RESULT") == heard


async def test_while_nothing_listens_nothing_is_judged(target: Target, patient: Patient) -> None:
    given = await target.submit()
    before = await target.seen(given.job_id)
    await target.add_fault(Fault("callback-down", count=None))
    assert await patient(given, "ACK") == [NETWORK] * TRIES
    assert await target.seen(given.job_id) == before
    await target.clear_faults()
    assert await patient(given, "ACK") == ["200 APPLIED"]


async def test_what_is_held_is_judged_when_the_fault_is_cleared(
    target: Target, patient: Patient
) -> None:
    given = await target.submit()
    before = await target.seen(given.job_id)
    await target.add_fault(Fault("callback-hold", count=None))
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(patient(given, "RESULT"))
        await struck(target, given, "callback-hold")
        assert not asking.done()
        assert await target.seen(given.job_id) == before
        await target.clear_faults()
    assert asking.result() == ["200 APPLIED"]
    assert await patient(given, "RESULT") == ["200 DUPLICATE"]


async def test_what_was_given_up_while_it_was_held_is_never_judged(
    target: Target, patient: Patient
) -> None:
    given = await target.submit()
    await target.add_fault(Fault("callback-hold", count=None))
    asking = asyncio.ensure_future(patient.once(given, "ACK"))
    await struck(target, given, "callback-hold")
    await target.add_fault(Fault("callback-down", count=None))
    with pytest.raises(aiohttp.ClientError):
        await asking
    await target.clear_faults()
    assert (await target.seen(given.job_id)).states == ("DISPATCHING", "AWAITING_ACK")
    assert await patient(given, "ACK") == ["200 APPLIED"]
