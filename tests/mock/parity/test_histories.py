"""Whatever happens to a job, in any order: the mock says and sees what the orchestrator does."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import aiohttp
import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from lucius_contract.messages import Directive
from tests.mock.parity.mock_target import mock_target
from tests.mock.parity.orchestrator_target import orchestrator_target
from tests.mock.parity.service import BusService, Said, Service, failed
from tests.mock.parity.target import Target
from tests.runner.tiers import examples

pytestmark = pytest.mark.asyncio(loop_scope="module")
CONTENTS: dict[str, dict[str, Any]] = {
    "succeeded": {},
    "succeeded otherwise": {"x_pages": 7},
    "retryable": failed("FAILED_RETRY"),
    "final": failed("FAILED_FINAL"),
    "stopped": failed("FAILED_FINAL", "CANCELLED"),
    "older": failed("FAILED"),
}
TWISTS: dict[str, dict[str, Any]] = {
    "none": {},
    "lease": {"lease_id": "0" * 32},
    "tenant": {"tenant_id": "globex"},
    "step": {"stepId": "step_02"},
    "attempt": {"attempt_no": 9},
}


class Replied(NamedTuple):
    """`ago`: of which attempt, counted back from the last one that a service has heard of."""

    type: str
    content: str
    twist: str
    ago: int
    over_bus: bool


REPLIED = st.builds(
    Replied,
    st.sampled_from(["ACK", "HEARTBEAT", "RESULT"]),
    st.sampled_from(list(CONTENTS)),
    st.sampled_from(["none", "none", "none", *TWISTS]),
    st.sampled_from([0, 0, 0, 1]),
    st.booleans(),
)
ACTS = st.lists(st.one_of(REPLIED, REPLIED, st.sampled_from(["expire", "next", "cancel"])))


class Played:
    """One side, with a job of its own."""

    def __init__(self, target: Target, service: Service, bus_service: BusService) -> None:
        self._target = target
        self._service = service
        self._bus_service = bus_service
        self._attempts: list[Directive] = []

    async def play(self, acts: list[Replied | str]) -> list[object]:
        """What was said to each act, and what the ledger had after it."""
        self._attempts = [await self._target.submit()]
        job_id = self._attempts[0].job_id
        told: list[object] = []
        for act in acts:
            said = await self._do(act)
            told.append((act, said, await self._target.seen(job_id)))
        return told

    async def _do(self, act: Replied | str) -> object:
        job_id = self._attempts[0].job_id
        if isinstance(act, Replied):
            return await self._reply(act)
        if act == "expire":
            return await self._target.expire(job_id)
        if act == "cancel":
            return await self._target.cancel(job_id)
        following = await self._target.next_attempt(job_id)
        if following is not None:
            self._attempts.append(following)
        return following is not None

    async def _reply(self, act: Replied) -> Said | str:
        attempt = self._attempts[max(0, len(self._attempts) - 1 - act.ago)]
        members = {**(CONTENTS[act.content] if act.type == "RESULT" else {}), **TWISTS[act.twist]}
        if act.over_bus:
            return await self._bus_service.send(attempt, act.type, **members)
        return await self._service.send(attempt, act.type, **members)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sides(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[Played]]:
    """The mock, and the orchestrator."""
    async with AsyncExitStack() as stack:
        found = []
        for opened in (mock_target, orchestrator_target):
            target: Target = await stack.enter_async_context(
                opened(tmp_path_factory.mktemp("side"))
            )
            http = await stack.enter_async_context(aiohttp.ClientSession())
            bus_service = await stack.enter_async_context(BusService(target))
            found.append(Played(target, Service(target, http), bus_service))
        yield found


@settings(max_examples=examples(60))
@given(acts=ACTS)
async def test_both_sides_tell_the_same_history(
    sides: list[Played], acts: list[Replied | str]
) -> None:
    by_mock, by_orchestrator = [await side.play(acts) for side in sides]
    assert by_mock == by_orchestrator
