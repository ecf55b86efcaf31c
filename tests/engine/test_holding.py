"""Whatever becomes of a request, what it reads is held for the job that exists and no other."""

from collections.abc import Awaitable, Callable

import pytest

from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.states import JobState
from lucius_orchestrator.domain.aggregate import Job
from lucius_orchestrator.domain.creation import new_job
from lucius_orchestrator.engine.holding import HoldingCreation, is_held
from lucius_orchestrator.ports.ledger import LedgerUnavailable, Stored
from tests.engine.plane import Plane, request, result

URI = "artifact://letters/v1/a.txt"
ASKED = request(input_ref={"uri": URI})


class MemoryInputs:
    """Holds by job."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, str]] = {}
        self.is_gone = False
        self.calls: list[str] = []

    async def hold(self, job_id: str, tenant_id: str, uri: str) -> None:
        self.calls.append(f"hold {job_id}")
        if self.is_gone:
            raise ContractError(ErrorCode.REF_INVALID, "it is gone")
        self.held[job_id] = tenant_id, uri

    async def release(self, job_id: str) -> None:
        self.calls.append(f"release {job_id}")
        self.held.pop(job_id, None)


async def planned(plane: Plane) -> Job:
    """A job as it would be, had somebody submitted it."""
    return new_job(ASKED.job_plan("job_planned"), plane.clock()).job


async def create(
    plane: Plane, inputs: MemoryInputs, making: Callable[[], Awaitable[Stored | None]]
) -> Stored | None:
    holding = HoldingCreation(inputs, plane.ledger)
    return await holding.create(await planned(plane), ASKED, making)


async def written(plane: Plane) -> Stored:
    return await plane.stored(await plane.submit(ASKED))


async def test_only_artifacts_are_held(plane: Plane) -> None:
    assert is_held(await planned(plane))
    assert not is_held((await plane.stored(await plane.submit())).aggregate.job)


async def test_a_submission_holds_before_there_is_a_job(plane: Plane) -> None:
    inputs = plane.engine.inputs = MemoryInputs()
    before: list[int] = []

    async def look(*_: object) -> None:
        before.append(len(inputs.held))

    plane.detour.before["create"] = look
    job_id = await plane.submit(ASKED)
    assert before == [1]
    assert inputs.held == {job_id: (ASKED.tenant_id, URI)}


async def test_a_job_with_another_id_than_was_planned_gets_the_hold(plane: Plane) -> None:
    """An earlier creator of the same request had left its job unwritten."""
    inputs = MemoryInputs()
    made = await create(plane, inputs, lambda: written(plane))
    assert made is not None
    job_id = made.aggregate.job.job_id
    assert inputs.held.keys() == {job_id}
    assert inputs.calls == ["hold job_planned", f"hold {job_id}", "release job_planned"]


async def test_a_job_that_exists_is_not_refused_when_its_input_cannot_be_held(
    plane: Plane,
) -> None:
    inputs = MemoryInputs()

    async def lost() -> Stored:
        inputs.is_gone = True
        return await written(plane)

    assert await create(plane, inputs, lost) is not None
    assert inputs.held == {}


async def test_a_duplicate_of_a_job_that_goes_on_makes_sure_of_its_hold(plane: Plane) -> None:
    job_id = await plane.submit(ASKED)
    inputs = plane.engine.inputs = MemoryInputs()
    assert await plane.submit(ASKED) == job_id
    assert inputs.held.keys() == {job_id}
    assert inputs.calls == [f"hold {job_id}"]


async def test_a_duplicate_of_a_job_that_has_ended_holds_nothing(plane: Plane) -> None:
    directive = await plane.working(ASKED)
    await plane.reply(result(directive))
    assert (await plane.stored(directive.job_id)).aggregate.job.state is JobState.SUCCEEDED
    inputs = plane.engine.inputs = MemoryInputs()
    inputs.is_gone = True
    assert await plane.submit(ASKED) == directive.job_id
    assert inputs.calls == []


async def test_a_refusal_releases_and_an_unknown_outcome_does_not(plane: Plane) -> None:
    inputs = MemoryInputs()

    async def refused() -> Stored:
        raise ContractError(ErrorCode.TENANT_SATURATED, "full")

    async def unknown() -> Stored:
        raise LedgerUnavailable("away")

    with pytest.raises(ContractError):
        await create(plane, inputs, refused)
    assert inputs.held == {}
    with pytest.raises(LedgerUnavailable):
        await create(plane, inputs, unknown)
    assert inputs.held.keys() == {"job_planned"}


async def test_a_refusal_takes_no_hold_from_a_job_that_somebody_else_has_made(plane: Plane) -> None:
    """On a store where a creation has several steps, another request may go on with it."""
    inputs, made = MemoryInputs(), []

    async def refused_while_another_goes_on() -> Stored:
        made.append(await plane.submit(ASKED))
        raise ContractError(ErrorCode.TENANT_SATURATED, "full")

    with pytest.raises(ContractError):
        await create(plane, inputs, refused_while_another_goes_on)
    assert [*inputs.held] == made


async def test_an_input_that_cannot_be_read_makes_no_job(plane: Plane) -> None:
    inputs = plane.engine.inputs = MemoryInputs()
    inputs.is_gone = True
    with pytest.raises(ContractError, match="gone"):
        await plane.submit(ASKED)
    assert plane.detour.calls["create"] == 0
