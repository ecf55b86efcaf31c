"""`due` and `reschedule`: the timer index names each job at or before its next deadline."""

from datetime import datetime, timedelta

import pytest

from lucius_contract.messages import Outcome
from lucius_orchestrator.domain.aggregate import Engine, StepPolicy
from lucius_orchestrator.domain.events import AckReceived, HeartbeatReceived, OutboxSent, RetryDue
from lucius_orchestrator.domain.timers import Due, TimerKind, next_due
from lucius_orchestrator.ports.ledger import Conflict, Ledger, timer_after
from tests.ledger.jobs import MANY, TENANT, Pair, Story, World, ids, together
from tests.ledger.view import LATER, assert_unchanged, view

EVERY_KIND = list(TimerKind)
TICK = timedelta(microseconds=1)


def timer_of(job: Story) -> Due:
    assert job.stored.timer is not None
    return job.stored.timer


async def due_ids(ledger: Ledger, before: datetime, *kinds: TimerKind) -> list[str]:
    return [job_id for job_id, _ in await ledger.due(kinds or EVERY_KIND, before, MANY)]


async def test_a_timer_is_due_at_its_moment_and_not_before(ledger: Ledger, world: World) -> None:
    job = await world.create()
    due = timer_of(job)
    assert await ledger.due(EVERY_KIND, due.at - TICK, MANY) == []
    assert await ledger.due(EVERY_KIND, due.at, MANY) == [(job.job_id, due)]
    assert await ledger.due(EVERY_KIND, LATER, MANY) == [(job.job_id, due)]


async def test_timers_are_told_apart_by_kind(ledger: Ledger, world: World) -> None:
    dispatching, working, waiting = await world.create_many(3)
    await working.acked()
    await waiting.fails_for_now()
    working.stored = await ledger.reschedule(working.stored)
    waiting.stored = await ledger.reschedule(waiting.stored)
    assert await due_ids(ledger, LATER, TimerKind.DISPATCH) == [dispatching.job_id]
    assert await due_ids(ledger, LATER, TimerKind.LEASE) == [working.job_id]
    assert await due_ids(ledger, LATER, TimerKind.RETRY) == [waiting.job_id]
    both = await due_ids(ledger, LATER, TimerKind.RETRY, TimerKind.LEASE)
    assert set(both) == {waiting.job_id, working.job_id}
    assert await due_ids(ledger, LATER, TimerKind.SLA, TimerKind.ACK) == []
    assert await ledger.due([], LATER, MANY) == []
    ((_, due),) = await ledger.due([TimerKind.RETRY], LATER, MANY)
    assert due.kind is TimerKind.RETRY


async def test_the_oldest_timers_come_first(ledger: Ledger, world: World) -> None:
    jobs = await world.create_many(6)
    late, early = jobs[0], jobs[5]
    await late.acked()
    late.stored = await ledger.reschedule(late.stored)
    await early.happens(OutboxSent(*early.identity), (await world.claim())[5])
    assert timer_of(early).kind is TimerKind.ACK
    order = [early, *jobs[1:5], late]
    assert await due_ids(ledger, LATER) == ids(order)
    for limit in range(1, 7):
        found = await ledger.due(EVERY_KIND, LATER, limit)
        assert found == [(job.job_id, timer_of(job)) for job in order[:limit]]


async def test_an_earlier_deadline_is_written_with_the_commit(ledger: Ledger, world: World) -> None:
    job = await world.create()
    await job.happens(OutboxSent(*job.identity), await world.claim_one())
    deadline = next_due(job.aggregate)
    assert deadline is not None
    assert deadline.kind is TimerKind.ACK
    assert timer_of(job) == deadline
    assert await ledger.due([TimerKind.ACK], deadline.at, MANY) == [(job.job_id, deadline)]


async def test_a_later_deadline_waits_for_a_reschedule(ledger: Ledger, world: World) -> None:
    job = await world.create()
    on_record = timer_of(job)
    await job.acked()
    assert timer_of(job) == timer_after(on_record, job.aggregate) == on_record
    job.stored = await ledger.reschedule(job.stored)
    deadline = next_due(job.aggregate)
    assert deadline is not None
    assert timer_of(job) == deadline > on_record
    assert await ledger.load(job.job_id) == job.stored
    assert await ledger.due(EVERY_KIND, deadline.at - TICK, MANY) == []
    assert await ledger.due(EVERY_KIND, LATER, MANY) == [(job.job_id, deadline)]
    await job.succeeds()


async def test_a_reschedule_that_changes_nothing_is_harmless(ledger: Ledger, world: World) -> None:
    job = await world.create()
    due = timer_of(job)
    job.stored = await ledger.reschedule(job.stored)
    assert timer_of(job) == due
    await job.succeeds()
    job.stored = await ledger.reschedule(job.stored)
    assert job.stored.timer is None
    assert await ledger.due(EVERY_KIND, LATER, MANY) == []


async def test_a_reschedule_of_a_job_that_moved_is_a_conflict(ledger: Ledger, world: World) -> None:
    job = await world.create()
    stale = job.stored
    await job.acked()
    before = await view(ledger)
    with pytest.raises(Conflict) as refusal:
        await ledger.reschedule(stale)
    assert refusal.value.job_id == job.job_id
    assert_unchanged(before, await view(ledger))


async def test_a_reschedule_of_a_job_that_is_gone_is_a_conflict(
    ledger: Ledger, world: World
) -> None:
    job = await (await world.create()).succeeds()
    await ledger.remove(job.stored)
    with pytest.raises(Conflict):
        await ledger.reschedule(job.stored)
    assert await ledger.due(EVERY_KIND, LATER, MANY) == []


async def test_jobs_that_have_ended_have_no_timer(ledger: Ledger, world: World) -> None:
    jobs = await world.create_many(3)
    await jobs[0].succeeds()
    await jobs[1].fails()
    assert jobs[0].stored.timer is jobs[1].stored.timer is None
    assert await due_ids(ledger, LATER) == [jobs[2].job_id]


async def test_a_paused_job_waits_for_its_sla_alone(ledger: Ledger, world: World) -> None:
    job = await world.create()
    await job.paused()
    await job.fails_for_now()
    job.stored = await ledger.reschedule(job.stored)
    assert timer_of(job) == Due(job.job.sla_deadline, TimerKind.SLA)
    await job.resumed()
    assert timer_of(job) == next_due(job.aggregate)
    assert timer_of(job).kind is TimerKind.RETRY


async def test_a_reschedule_may_name_a_moment_of_its_own(ledger: Ledger, world: World) -> None:
    """For who looked after a deadline that stays and wants to look again later."""
    job = await world.create()
    again = Due(timer_of(job).at + timedelta(minutes=5), TimerKind.DISPATCH)
    job.stored = await ledger.reschedule(job.stored, again)
    assert timer_of(job) == again
    assert await ledger.load(job.job_id) == job.stored
    assert await ledger.due(EVERY_KIND, again.at - TICK, MANY) == []
    assert await ledger.due(EVERY_KIND, again.at, MANY) == [(job.job_id, again)]
    await job.succeeds()


async def test_a_job_of_a_workflow_has_a_timer_of_that_kind_alone(
    ledger: Ledger, world: World
) -> None:
    job = await world.create(engine=Engine.TEMPORAL)
    for life in (job.opened, job.acked, job.fails_for_now):
        await life()
        job.stored = await ledger.reschedule(job.stored)
        due = timer_of(job)
        assert due == next_due(job.aggregate)
        assert due.kind is TimerKind.WORKFLOW
        assert await ledger.load(job.job_id) == job.stored
        assert await ledger.due(EVERY_KIND, due.at, MANY) == [(job.job_id, due)]
        assert await ledger.due([TimerKind.WORKFLOW], due.at - TICK, MANY) == []
        assert await due_ids(ledger, LATER, *(set(TimerKind) - {TimerKind.WORKFLOW})) == []
    await job.exceeds_its_sla()
    assert job.stored.timer is None
    assert await due_ids(ledger, LATER) == []


@pytest.mark.parametrize("reschedule", [True, False])
async def test_the_index_is_never_later_than_a_deadline_in_the_life_of_a_job(
    ledgers: Pair, world: World, reschedule: bool
) -> None:
    job = await world.create(policy=StepPolicy(max_attempts=4))
    while job.aggregate.active.attempt_no < 4:
        for life in (job.acked, job.heartbeat, job.fails_for_now, job.paused, job.resumed):
            await life()
            if reschedule:
                job.stored = await ledgers[1].reschedule(job.stored)
            deadline = next_due(job.aggregate)
            assert deadline is not None
            assert timer_of(job).at <= deadline.at
            assert await due_ids(ledgers[1], deadline.at) == [job.job_id]
        await job.fires(RetryDue)


async def test_a_reschedule_that_meets_a_commit_leaves_no_timer_too_late(
    ledgers: Pair, world: World
) -> None:
    """Else the job would be found by nobody until the later moment."""
    for round_no in range(8):
        job = await world.create()
        await job.acked()
        sooner = job.decide(job.result(Outcome.FAILED_RETRY))
        calls = [ledgers[0].commit(job.stored, sooner), ledgers[1].reschedule(job.stored)]
        await together(*(calls if round_no % 2 else reversed(calls)))
        stored = await ledgers[0].load(job.job_id)
        assert stored is not None
        deadline = next_due(stored.aggregate)
        assert deadline is not None
        assert stored.timer is not None
        assert stored.timer.at <= deadline.at
        assert job.job_id in await due_ids(ledgers[1], deadline.at)


async def test_of_many_reschedules_at_once_none_is_lost(ledgers: Pair, world: World) -> None:
    """They want the same: each is done, or finds that the job moved."""
    job = await world.create()
    await job.acked()
    answers = await together(*(ledgers[n % 2].reschedule(job.stored) for n in range(6)))
    errors = [answer for answer in answers if isinstance(answer, BaseException)]
    assert len(errors) < len(answers)
    assert {type(error) for error in errors} <= {Conflict}
    stored = await ledgers[0].load(job.job_id)
    assert stored is not None
    assert stored.timer == next_due(job.aggregate)
    story = Story(ledgers[1], job.clock, stored)
    await story.happens(HeartbeatReceived(*story.identity, TENANT))
    await story.happens(AckReceived("step_01", 7, "stray", TENANT))
