"""Decisions that build on each other, merged and committed as one."""

import pytest

from lucius_contract.audit import DeadLetterKind
from lucius_contract.messages import Outcome
from lucius_contract.states import JobState, OutboxState, StepState
from lucius_orchestrator.domain.creation import StepPlan
from lucius_orchestrator.domain.draft import RECORDED_SINGLY
from lucius_orchestrator.domain.events import (
    AckReceived,
    CancelRequested,
    Event,
    HeartbeatReceived,
    OutboxFailed,
    OutboxSent,
    RetryDue,
)
from lucius_orchestrator.ports.ledger import Conflict, Ledger
from tests.ledger.backends import Backend
from tests.ledger.jobs import TENANT, World
from tests.ledger.view import assert_unchanged, letters, on_the_wire, view

AT_ONCE = 16
"""As many as the engine puts together."""
STRAY = AckReceived("step_01", 1, "stray", TENANT)


async def test_what_was_merged_is_read_back_as_if_it_had_come_in_turn(
    backend: Backend, world: World
) -> None:
    job = await world.create(steps=2)
    identity = (*job.identity, TENANT)
    events: list[Event] = [
        OutboxSent(*job.identity),
        AckReceived(*identity),
        HeartbeatReceived(*identity, {"fraction": 0.5}),
        STRAY,
        job.result(),
    ]
    await job.commit(job.decide(*events), await world.claim_one())
    assert job.aggregate.steps[0].state is StepState.SUCCEEDED
    other = await backend.reopen()
    assert await other.load(job.job_id) == job.stored
    assert await other.events(job.job_id) == job.trail
    status = await other.directive(job.job_id, "step_01", 1)
    assert status is not None
    assert status.state is OutboxState.SENT
    assert on_the_wire((await world.claim_one()).row) == on_the_wire(job.directives[-1])


async def test_a_failure_that_is_reported_twice_in_one_commit_is_kept_once(
    ledger: Ledger, world: World
) -> None:
    job = await world.create()
    claim = await world.claim_one()
    await job.acked()
    failed = OutboxFailed(*job.identity, message="refused")
    decision = job.decide(failed, STRAY, failed)
    assert len(decision.dead_letters) == 2
    await job.commit(decision, claim)
    (letter,) = await letters(ledger)
    assert letter.kind is DeadLetterKind.OUTBOX
    assert letter.first_at == letter.last_at == decision.dead_letters[0].at


async def test_a_job_that_ends_amid_other_events_gives_back_its_slots_once(
    ledger: Ledger, world: World
) -> None:
    job = await world.create()
    await job.commit(job.decide(STRAY, job.result(Outcome.FAILED_FINAL), STRAY))
    assert job.job.state is JobState.FAILED_FINAL
    assert job.stored.timer is None
    assert (await view(ledger)).in_flight == {}


async def test_a_merged_commit_on_an_older_version_writes_nothing(
    ledger: Ledger, world: World
) -> None:
    job = await world.create(steps=2)
    stale, merged = job.stored, job.decide(STRAY, job.result(), STRAY)
    await job.acked()
    before = await view(ledger)
    with pytest.raises(Conflict):
        await ledger.commit(stale, merged)
    assert_unchanged(before, await view(ledger))


async def test_the_longest_protocol_fits_into_one_commit_with_as_many_events_as_come(
    backend: Backend, world: World
) -> None:
    """Thirty steps end together while replies that nobody wants are recorded."""
    plans = tuple(StepPlan(f"STEP_{n}", "service", {"number": n}) for n in range(30))
    job = await world.create(plans=plans)
    await job.happens(CancelRequested())
    assert len(job.aggregate.steps) == 30
    strays = [STRAY] * (AT_ONCE - 1)
    await job.commit(job.decide(*strays, job.result(Outcome.FAILED_FINAL)))
    assert {step.state for step in job.aggregate.steps[1:]} == {StepState.CANCELLED}
    other = await backend.reopen()
    assert await other.load(job.job_id) == job.stored
    assert await other.events(job.job_id, limit=1000) == job.trail


async def test_a_burst_of_replies_fits_into_one_commit(backend: Backend, world: World) -> None:
    """Fifty of each attempt are recorded singly, and a service may send them all at once."""
    job = await (await world.create(steps=2)).fails_for_now()
    await job.fires(RetryDue)
    burst = [AckReceived("step_01", n, "stray", TENANT) for n in (1, 2, 3)] * RECORDED_SINGLY
    await job.commit(job.decide(*burst, job.result()))
    assert len(job.trail) > 3 * RECORDED_SINGLY
    other = await backend.reopen()
    assert await other.load(job.job_id) == job.stored
    assert await other.events(job.job_id, limit=1000) == job.trail
