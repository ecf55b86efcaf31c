"""What happens to a job when nothing happens to it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from lucius_contract.audit import DeadLetterKind, EventType, Verdict
from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import Directive, ResultStatus
from lucius_contract.states import JobState, OutboxState, StepState
from lucius_orchestrator.bootstrap import running
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.domain.decision import NOTHING, Decision, OutboxKind, OutboxMark
from lucius_orchestrator.domain.timers import Due, TimerKind
from lucius_orchestrator.engine.telemetry import CONFLICTS, SWEEPER_ACTIONS, SWEEPER_FAILURES
from lucius_orchestrator.outbox.dispatcher import DispatcherSettings
from lucius_orchestrator.ports.ledger import DirectiveStatus, LedgerUnavailable, Repair
from lucius_orchestrator.sweepers.ack_timeout import AckTimeout
from lucius_orchestrator.sweepers.cancelling import Cancelling
from lucius_orchestrator.sweepers.due_retries import DueRetries
from lucius_orchestrator.sweepers.expired_lease import ExpiredLease
from lucius_orchestrator.sweepers.index_repair import IndexRepair
from lucius_orchestrator.sweepers.job_sla import JobSla
from lucius_orchestrator.sweepers.retention import Retention
from lucius_orchestrator.sweepers.runner import SweeperRunner, all_sweepers
from lucius_orchestrator.sweepers.stale_dispatch import StaleDispatch
from lucius_orchestrator.sweepers.sweeper import Sweeper, SweepSettings
from tests.engine.plane import (
    MOMENT,
    PIPELINE,
    SKEW,
    Plane,
    ack,
    heartbeat,
    once,
    one_step,
    request,
    result,
    turns,
)
from tests.ledger.backends import SqliteBackend
from tests.ledger.view import LATER
from tests.runner.deadlines import DEADLINE

RETRY = ResultStatus.FAILED_RETRY
LEASE = timedelta(minutes=15)
SLA = timedelta(hours=24)


async def unpublished(plane: Plane) -> str:
    return await plane.submit()


async def unacknowledged(plane: Plane) -> str:
    await plane.submit()
    return (await plane.directive()).job_id


async def silent(plane: Plane) -> str:
    return (await plane.working()).job_id


async def endless(plane: Plane) -> str:
    """One that sends heartbeats, and has a ceiling."""
    directive = await plane.working(request(one_step(ceiling=timedelta(minutes=20))))
    plane.later(minutes=10)
    await plane.reply(heartbeat(directive))
    return directive.job_id


async def failed_for_now(plane: Plane) -> str:
    directive = await plane.working()
    await plane.reply(result(directive, RETRY))
    return directive.job_id


async def paused(plane: Plane) -> str:
    directive = await plane.working(request(**PIPELINE))
    await plane.engine.pause(directive.job_id)
    await plane.reply(result(directive))
    return directive.job_id


class Case(NamedTuple):
    """A job with a deadline that `after` names, counted from its submission."""

    sweeper: type[Sweeper]
    arrange: Callable[[Plane], Awaitable[str]]
    after: timedelta
    before: tuple[JobState, StepState]
    ends: tuple[JobState, StepState]


CASES = {
    "stale dispatch": Case(
        StaleDispatch,
        unpublished,
        timedelta(seconds=60),
        (JobState.DISPATCHING, StepState.DISPATCHING),
        (JobState.DISPATCHING, StepState.DISPATCHING),
    ),
    "ack timeout": Case(
        AckTimeout,
        unacknowledged,
        timedelta(seconds=30),
        (JobState.DISPATCHING, StepState.AWAITING_ACK),
        (JobState.DISPATCHING, StepState.FAILED_RETRY),
    ),
    "expired lease": Case(
        ExpiredLease,
        silent,
        LEASE,
        (JobState.IN_PROGRESS, StepState.IN_PROGRESS),
        (JobState.IN_PROGRESS, StepState.FAILED_RETRY),
    ),
    "ceiling": Case(
        ExpiredLease,
        endless,
        timedelta(minutes=20),
        (JobState.IN_PROGRESS, StepState.IN_PROGRESS),
        (JobState.IN_PROGRESS, StepState.FAILED_RETRY),
    ),
    "due retry": Case(
        DueRetries,
        failed_for_now,
        timedelta(minutes=1),
        (JobState.IN_PROGRESS, StepState.FAILED_RETRY),
        (JobState.IN_PROGRESS, StepState.DISPATCHING),
    ),
    "sla": Case(
        JobSla,
        paused,
        SLA,
        (JobState.PAUSED, StepState.PENDING),
        (JobState.FAILED_FINAL, StepState.CANCELLED),
    ),
}
of_silence = pytest.mark.parametrize("name", ["ack timeout", "expired lease", "ceiling"])
of_timers = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


async def arranged(plane: Plane, case: Case) -> str:
    """Until the last moment before the deadline and the skew have passed."""
    begin = plane.clock.now
    job_id = await case.arrange(plane)
    plane.later(begin + case.after + SKEW - MOMENT - plane.clock.now)
    assert await plane.sweep_all() == {}
    assert await plane.states(job_id) == case.before
    return job_id


async def indexed(plane: Plane) -> list[Due]:
    """What the index of timers says."""
    return [due for _, due in await plane.ledger.due(list(TimerKind), LATER, 100)]


async def changed_by_hand(plane: Plane, job_id: str, **parts: Any) -> None:
    """What no decision does: damage that a sweeper is there for."""
    await plane.ledger.commit(await plane.stored(job_id), NOTHING._replace(**parts))


@of_timers
async def test_a_timer_fires_when_deadline_and_skew_have_passed(plane: Plane, case: Case) -> None:
    job_id = await arranged(plane, case)
    plane.later(MOMENT)
    assert await plane.sweep(case.sweeper) == 1
    assert await plane.states(job_id) == case.ends
    assert plane.metrics.count(SWEEPER_ACTIONS, sweeper=case.sweeper.name) == 1


@of_timers
async def test_a_repair_is_an_event_with_the_sweepers_name(plane: Plane, case: Case) -> None:
    job_id = await arranged(plane, case)
    known = len(await plane.events(job_id))
    plane.later(MOMENT)
    await plane.sweep(case.sweeper)
    events = (await plane.events(job_id))[known:]
    assert events
    assert {event.by for event in events} == {case.sweeper.name}
    for event in events:
        if event.type is not EventType.DISPATCH_WOKEN:
            assert event.source != event.target


@of_timers
async def test_of_two_replicas_that_sweep_at_once_one_acts(plane: Plane, case: Case) -> None:
    job_id = await arranged(plane, case)
    other = await plane.replica()
    plane.later(MOMENT)
    acted = await asyncio.gather(plane.sweep(case.sweeper), other.sweep(case.sweeper))
    assert sum(acted) == 1
    events = [event for event in await plane.events(job_id) if event.by == case.sweeper.name]
    assert len({(event.type, event.step_id, event.target) for event in events}) == len(events)


@of_silence
async def test_a_job_that_is_removed_meanwhile_is_no_failure(plane: Plane, name: str) -> None:
    case = CASES[name]
    job_id = await arranged(plane, case)
    other = await plane.replica()
    plane.later(MOMENT)

    async def finish_and_remove(*_: Any) -> None:
        await other.reply(result(await other.attempt(job_id)))
        await other.ledger.remove(await other.stored(job_id))

    plane.detour.after["due"] = once(finish_and_remove)
    assert await plane.sweep(case.sweeper) == 0
    assert plane.metrics.count(SWEEPER_FAILURES) == 0


@of_silence
async def test_a_step_that_finished_meanwhile_is_not_overwritten(plane: Plane, name: str) -> None:
    case = CASES[name]
    job_id = await arranged(plane, case)
    plane.later(MOMENT)
    sweeper = case.sweeper(plane.engine)
    (candidate,) = await sweeper.candidates()
    other = await plane.replica()
    await other.reply(result(await other.attempt(job_id)))
    assert candidate == job_id
    assert not await sweeper.repair(candidate)
    assert await plane.states(job_id) == (JobState.SUCCEEDED, StepState.SUCCEEDED)


@of_silence
async def test_a_step_that_finishes_while_a_sweeper_decides_is_not_overwritten(
    plane: Plane, name: str
) -> None:
    case = CASES[name]
    job_id = await arranged(plane, case)
    other = await plane.replica()
    plane.later(MOMENT)

    async def finish(*_: Any) -> None:
        await other.reply(result(await other.attempt(job_id)))

    plane.detour.before["commit"] = once(finish)
    assert await plane.sweep(case.sweeper) == 0
    assert await plane.states(job_id) == (JobState.SUCCEEDED, StepState.SUCCEEDED)


async def test_a_reply_after_the_lease_counts_until_the_expiry_is_committed(plane: Plane) -> None:
    directive = await plane.working()
    plane.later(LEASE + SKEW)
    assert (await plane.reply(heartbeat(directive))).verdict is Verdict.APPLIED
    assert await plane.sweep_all() == {}
    plane.later(LEASE + SKEW)
    assert await plane.sweep_all() == {"expired_lease": 1}
    assert (await plane.reply(heartbeat(directive))).verdict is Verdict.STALE_ATTEMPT


async def test_an_ack_that_is_late_but_not_lost_still_counts(plane: Plane) -> None:
    await plane.submit()
    directive = await plane.directive()
    plane.later(seconds=32)
    assert await plane.sweep_all() == {"ack_timeout": 1}
    assert (await plane.reply(ack(directive))).verdict is Verdict.APPLIED
    plane.later(minutes=5)
    assert await plane.sweep_all() == {}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ack timeout", ErrorCode.ACK_TIMEOUT),
        ("expired lease", ErrorCode.LEASE_EXPIRED),
        ("ceiling", ErrorCode.ATTEMPT_TIMEOUT),
    ],
)
async def test_an_attempt_that_ran_out_of_time_says_how(
    plane: Plane, name: str, code: ErrorCode
) -> None:
    job_id = await arranged(plane, CASES[name])
    plane.later(MOMENT)
    await plane.sweep_all()
    step = await plane.step(job_id)
    assert step.last_error_code == step.attempts[0].error_code == code
    assert step.next_attempt_at == plane.clock.now + timedelta(minutes=1)


PATIENT = one_step(lease=timedelta(hours=9))


async def test_timeouts_use_up_the_attempts(plane: Plane) -> None:
    other = await plane.working(
        request(one_step(lease=timedelta(hours=9)), idempotency_key="other")
    )
    job_id = await plane.submit()
    for attempt_no in (1, 2, 3):
        assert (await plane.directive()).attempt_no == attempt_no
        await plane.reply(heartbeat(other))
        plane.later(seconds=32)
        assert await plane.sweep_all() == {"ack_timeout": 1}
        plane.later(minutes=5, seconds=2)
        await plane.sweep_all()
    job = await plane.job(job_id)
    assert (job.state, job.error_code) == (JobState.FAILED_FINAL, ErrorCode.ACK_TIMEOUT)
    (letter,) = await plane.letters()
    assert (letter.kind, letter.attempt_no) == (DeadLetterKind.STEP, 3)


async def test_timeouts_of_a_service_that_nothing_is_heard_from_use_up_none(
    plane: Plane,
) -> None:
    job_id = await plane.submit()
    for attempt_no in range(1, 8):
        assert (await plane.directive()).attempt_no == attempt_no
        plane.later(seconds=32)
        assert await plane.sweep_all() == {"ack_timeout": 1}
        plane.later(minutes=17)
        await plane.sweep_all()
    step = await plane.step(job_id)
    assert (step.attempt_no, step.unanswered) == (8, 7)
    assert await plane.letters() == []
    directive = await plane.directive()
    await plane.reply(ack(directive))
    await plane.reply(result(directive))
    assert (await plane.job(job_id)).state is JobState.SUCCEEDED


async def test_a_sign_of_life_before_the_directive_was_sent_says_nothing(plane: Plane) -> None:
    other = await plane.working(
        request(one_step(lease=timedelta(hours=9)), idempotency_key="other")
    )
    await plane.reply(heartbeat(other))
    plane.later(seconds=1)
    job_id = await plane.submit()
    await plane.directive()
    plane.later(seconds=32)
    await plane.sweep_all()
    assert (await plane.step(job_id)).unanswered == 1


async def test_a_job_that_exceeds_its_sla_fails_with_a_dead_letter(plane: Plane) -> None:
    directive = await plane.working(request(one_step(lease=2 * SLA, ceiling=3 * SLA)))
    plane.later(SLA + SKEW)
    assert await plane.sweep_all() == {"job_sla": 1}
    job = await plane.job(directive.job_id)
    assert (job.state, job.error_code) == (JobState.FAILED_FINAL, ErrorCode.SLA_EXCEEDED)
    (letter,) = await plane.letters()
    assert (letter.kind, letter.code) == (DeadLetterKind.STEP, ErrorCode.SLA_EXCEEDED)
    assert (await plane.reply(result(directive))).verdict is Verdict.STALE_ATTEMPT


async def test_a_job_that_exceeds_its_sla_between_two_steps_has_a_letter_of_its_own(
    plane: Plane,
) -> None:
    job_id = await paused(plane)
    plane.later(SLA + SKEW)
    await plane.sweep_all()
    (letter,) = await plane.letters()
    assert (letter.kind, letter.job_id, letter.step_id) == (DeadLetterKind.JOB, job_id, None)
    assert letter.code == ErrorCode.SLA_EXCEEDED


async def test_a_directive_that_never_goes_out_fails_with_the_sla(plane: Plane) -> None:
    job_id = await plane.submit()
    plane.bus.go_away()
    for _ in range(25):
        await plane.dispatch()
        plane.later(hours=1)
        await plane.sweep_all()
    job = await plane.job(job_id)
    assert (job.state, job.error_code) == (JobState.FAILED_FINAL, ErrorCode.SLA_EXCEEDED)
    assert job.completed_at == job.created_at + timedelta(hours=25)


async def test_the_retry_of_a_paused_job_waits_for_the_resume(plane: Plane) -> None:
    directive = await plane.working()
    await plane.engine.pause(directive.job_id)
    await plane.reply(result(directive, RETRY))
    assert await plane.states(directive.job_id) == (JobState.PAUSED, StepState.FAILED_RETRY)
    plane.later(hours=2)
    assert await plane.sweep_all() == {}
    await plane.engine.resume(directive.job_id)
    assert await plane.sweep_all() == {"due_retries": 1}
    assert (await plane.directive()).attempt_no == 2


async def test_an_index_that_names_a_job_too_early_is_moved_on(plane: Plane) -> None:
    directive = await plane.working()
    plane.later(minutes=14)
    await plane.reply(heartbeat(directive))
    before, trail = await plane.stored(directive.job_id), await plane.events(directive.job_id)
    assert [due.at for due in await indexed(plane)] < [plane.clock.now]
    plane.later(minutes=1, seconds=2)
    assert await plane.sweep_all() == {}
    expires_at = before.aggregate.active.lease_expires_at
    assert expires_at is not None
    assert await indexed(plane) == [Due(expires_at, TimerKind.LEASE)]
    assert (await plane.stored(directive.job_id)).aggregate == before.aggregate
    assert await plane.events(directive.job_id) == trail


async def test_the_next_event_of_a_job_whose_index_was_moved_on_meets_no_conflict(
    plane: Plane,
) -> None:
    directive = await plane.working()
    plane.later(minutes=14)
    await plane.reply(heartbeat(directive))
    plane.later(minutes=1, seconds=2)
    assert await plane.sweep_all() == {}
    assert plane.detour.calls["reschedule"] == 1
    assert (await plane.reply(heartbeat(directive))).verdict is Verdict.APPLIED
    assert plane.metrics.count(CONFLICTS) == 0


async def test_a_job_that_moves_while_its_index_is_moved_on_keeps_its_own_timer(
    plane: Plane,
) -> None:
    directive = await plane.working()
    other = await plane.replica()
    plane.later(seconds=32)

    async def move(*_: Any) -> None:
        await other.reply(heartbeat(directive))

    plane.detour.before["reschedule"] = once(move)
    assert await plane.sweep(AckTimeout) == 0
    assert await plane.sweep(AckTimeout) == 0
    assert await indexed(plane) == [Due(plane.clock.now + LEASE, TimerKind.LEASE)]


async def test_a_job_that_cannot_be_read_does_not_stop_the_others(plane: Plane) -> None:
    jobs = [await plane.submit(request(idempotency_key=f"k-{n}")) for n in range(3)]
    await plane.dispatch()
    plane.later(seconds=32)

    async def fail_one(job_id: str) -> None:
        if job_id == jobs[1]:
            raise LedgerUnavailable("this one cannot be read")

    plane.detour.before["load"] = fail_one
    assert await plane.sweep(AckTimeout) == 2
    assert plane.metrics.count(SWEEPER_FAILURES, sweeper="ack_timeout") == 1
    states = [(await plane.step(job_id)).state for job_id in jobs]
    assert states == [StepState.FAILED_RETRY, StepState.AWAITING_ACK, StepState.FAILED_RETRY]
    del plane.detour.before["load"]
    assert await plane.sweep(AckTimeout) == 1


async def test_a_round_takes_no_more_jobs_than_its_batch(plane: Plane) -> None:
    for number in range(5):
        await plane.submit(request(idempotency_key=f"k-{number}"))
    await plane.dispatch()
    plane.later(seconds=32)
    rounds = [await plane.sweep(AckTimeout, SweepSettings(batch_size=2)) for _ in range(6)]
    assert (max(rounds), sum(rounds)) == (2, 5)


async def test_a_directive_that_lies_idle_wakes_the_dispatcher(plane: Plane) -> None:
    """Another process committed it, and this one's poll would come in an hour."""
    other = await plane.replica()
    settings = DispatcherSettings(poll_interval=timedelta(hours=1))
    async with running([plane.another_dispatcher(settings)]):
        await plane.detour.called("claim")
        await turns()
        job_id = await other.submit()
        plane.later(seconds=62)
        assert await plane.sweep(StaleDispatch) == 1
        assert (await plane.directive_on_the_way()).job_id == job_id
    (event,) = await plane.events(job_id, EventType.DISPATCH_WOKEN)
    assert event.by == "stale_dispatch"


async def test_a_directive_under_a_live_claim_is_in_good_hands(plane: Plane) -> None:
    job_id = await plane.submit()
    plane.later(seconds=61)
    await plane.ledger.claim(OutboxKind.DIRECTIVE, 1, timedelta(seconds=30))
    plane.later(seconds=1)
    assert await plane.sweep(StaleDispatch) == 0
    assert await plane.events(job_id, EventType.DISPATCH_WOKEN) == []


async def test_a_directive_that_waits_for_the_bus_is_in_good_hands(plane: Plane) -> None:
    job_id = await plane.submit()
    plane.bus.go_away()
    await plane.dispatch()
    plane.later(seconds=30)
    await plane.dispatch()
    plane.later(seconds=32)
    assert await plane.sweep(StaleDispatch) == 0
    assert await plane.events(job_id, EventType.DISPATCH_WOKEN) == []


async def test_a_claim_whose_dispatcher_died_wakes_another(plane: Plane) -> None:
    await plane.submit()
    await plane.ledger.claim(OutboxKind.DIRECTIVE, 1, timedelta(seconds=30))
    plane.later(seconds=62)
    assert await plane.sweep(StaleDispatch) == 1


async def test_an_idle_directive_is_looked_at_again_after_a_while_and_not_in_every_round(
    plane: Plane,
) -> None:
    await plane.submit()
    plane.later(seconds=62)
    acted = []
    for _ in range(5):
        acted.append(await plane.sweep(StaleDispatch))
        plane.later(seconds=31)
    assert acted == [1, 0, 1, 0, 1]


async def test_a_directive_in_good_hands_is_looked_at_again_after_a_while(plane: Plane) -> None:
    await plane.submit()
    plane.later(seconds=62)
    await plane.ledger.claim(OutboxKind.DIRECTIVE, 1, timedelta(seconds=30))
    assert await plane.sweep(StaleDispatch) == 0
    plane.later(seconds=61)
    assert await plane.sweep(StaleDispatch) == 0
    plane.later(seconds=1)
    assert await plane.sweep(StaleDispatch) == 1


async def test_a_step_that_did_not_learn_that_its_directive_was_sent_moves_on(
    plane: Plane,
) -> None:
    job_id = await plane.submit()
    (claim,) = await plane.ledger.claim(OutboxKind.DIRECTIVE, 1, timedelta(seconds=30))
    stored = await plane.stored(job_id)
    attempt = stored.aggregate.active.attempts[0]._replace(sent_at=plane.clock.now)
    damage: Decision = NOTHING._replace(
        steps={0: {"attempts": (attempt,)}},
        marks=(OutboxMark(claim.row.outbox_id, OutboxState.SENT),),
    )
    await plane.ledger.commit(stored, damage, claim)
    plane.later(seconds=62)
    assert await plane.sweep(StaleDispatch) == 1
    assert await plane.states(job_id) == (JobState.DISPATCHING, StepState.AWAITING_ACK)


async def test_a_cancelling_job_with_nothing_in_flight_is_cancelled(plane: Plane) -> None:
    job_id = await paused(plane)
    await changed_by_hand(plane, job_id, job={"state": JobState.CANCELLING})
    assert await plane.sweep(Cancelling) == 1
    assert await plane.states(job_id) == (JobState.CANCELLED, StepState.CANCELLED)
    event = (await plane.events(job_id))[-1]
    assert event.by == "cancelling"
    assert await plane.sweep(Cancelling) == 0


async def test_a_cancelling_job_with_a_step_in_flight_is_left_alone(plane: Plane) -> None:
    directive = await plane.working()
    await plane.engine.cancel(directive.job_id)
    assert await plane.sweep(Cancelling) == 0
    assert (await plane.job(directive.job_id)).state is JobState.CANCELLING


async def test_a_cancelling_job_of_another_engine_is_left_alone(plane: Plane) -> None:
    job_id = await plane.submit(request(engine=Engine.TEMPORAL))
    damage = {"job": {"state": JobState.CANCELLING}, "steps": {0: {"state": StepState.PENDING}}}
    await changed_by_hand(plane, job_id, **damage)
    assert await plane.sweep(Cancelling) == 0


async def test_of_two_replicas_one_cancels(plane: Plane) -> None:
    job_id = await paused(plane)
    await changed_by_hand(plane, job_id, job={"state": JobState.CANCELLING})
    other = await plane.replica()
    assert sum(await asyncio.gather(plane.sweep(Cancelling), other.sweep(Cancelling))) == 1
    assert (await plane.job(job_id)).state is JobState.CANCELLED


async def test_a_directive_in_good_hands_does_not_delay_the_sla(plane: Plane) -> None:
    await plane.submit()
    plane.later(SLA - timedelta(seconds=30))
    await plane.ledger.claim(OutboxKind.DIRECTIVE, 1, timedelta(seconds=30))
    assert await plane.sweep(StaleDispatch) == 0
    plane.later(timedelta(seconds=30) + SKEW)
    assert await plane.sweep(JobSla) == 1


KEPT = SweepSettings().retention


async def kept_long_enough(plane: Plane) -> Directive:
    directive = await plane.working()
    await plane.reply(result(directive, ResultStatus.FAILED_FINAL))
    plane.later(KEPT)
    assert await plane.sweep(Retention) == 0
    plane.later(MOMENT)
    return directive


async def test_a_job_that_ended_lately_is_not_even_read(plane: Plane) -> None:
    await plane.succeeded()
    reads = plane.detour.calls["load"]
    assert await plane.sweep(Retention) == 0
    assert plane.detour.calls["load"] == reads


async def test_a_job_that_was_kept_long_enough_is_removed(plane: Plane) -> None:
    directive = await kept_long_enough(plane)
    assert await plane.sweep(Retention) == 1
    assert await plane.ledger.load(directive.job_id) is None
    assert await plane.events(directive.job_id) == []
    with pytest.raises(ContractError) as refusal:
        await plane.reply(result(directive))
    assert refusal.value.code is ErrorCode.JOB_NOT_FOUND


async def test_after_the_removal_the_same_request_makes_a_new_job(plane: Plane) -> None:
    directive = await kept_long_enough(plane)
    await plane.sweep(Retention)
    submission = await plane.engine.submit(request())
    assert not submission.duplicate
    assert submission.job_id != directive.job_id


async def test_dead_letters_are_kept_longer_than_their_jobs(plane: Plane) -> None:
    directive = await kept_long_enough(plane)
    await plane.sweep(Retention)
    assert [letter.job_id for letter in await plane.letters()] == [directive.job_id]


async def test_a_job_that_has_not_ended_is_never_removed(plane: Plane) -> None:
    directive = await plane.working()
    await plane.engine.pause(directive.job_id)
    plane.later(2 * KEPT)
    assert await plane.sweep(Retention) == 0
    assert (await plane.job(directive.job_id)).state is JobState.PAUSING


async def just_ended(plane: Plane) -> str:
    return (await plane.succeeded()).job_id


async def reopened_by_damage(plane: Plane) -> str:
    """A job that works, though it says when it ended."""
    job_id = await silent(plane)
    await changed_by_hand(plane, job_id, job={"completed_at": plane.clock.now})
    plane.later(2 * KEPT)
    return job_id


@pytest.mark.parametrize("arrange", [silent, just_ended, reopened_by_damage])
async def test_a_job_that_the_index_names_by_mistake_is_kept(
    plane: Plane, arrange: Callable[[Plane], Awaitable[str]]
) -> None:
    job_id = await arrange(plane)
    before = await plane.stored(job_id)
    plane.detour.answers["ended"] = [job_id]
    assert await plane.sweep(Retention) == 0
    assert await plane.stored(job_id) == before


async def test_a_job_that_gets_a_reply_while_it_is_removed_is_removed_in_the_next_round(
    plane: Plane,
) -> None:
    directive = await kept_long_enough(plane)
    other = await plane.replica()

    async def come_late(*_: Any) -> None:
        await other.reply(heartbeat(directive))

    plane.detour.before["remove"] = once(come_late)
    assert await plane.sweep(Retention) == 0
    assert await plane.sweep(Retention) == 1
    assert plane.metrics.count(SWEEPER_FAILURES) == 0


async def test_a_directive_that_was_pruned_long_ago_is_not_missed(plane: Plane) -> None:
    directive = await plane.working(request(one_step(lease=timedelta(hours=30))))
    plane.later(SweepSettings().outbox_retention + SKEW)
    await plane.sweep(Retention)
    assert plane.detour.calls["prune"] == 1
    assert (await plane.reply(result(directive))).verdict is Verdict.APPLIED


async def test_a_directive_that_went_out_is_kept_for_a_day(plane: Plane) -> None:
    """Its outbox row; a ledger that has rows of its own for a job keeps it as long as the job."""
    job_id = (await plane.working(request(one_step(lease=timedelta(hours=30))))).job_id
    waiting = await plane.submit(request(idempotency_key="k-1"))
    plane.later(days=1)
    await plane.sweep(Retention)
    assert await plane.row(job_id) == DirectiveStatus(OutboxState.SENT, claimable=False)
    plane.later(MOMENT)
    await plane.sweep(Retention)
    has_an_outbox = isinstance(plane.backend, SqliteBackend)
    assert (await plane.row(job_id) is None) is has_an_outbox
    assert await plane.row(waiting) == DirectiveStatus(OutboxState.PENDING, claimable=True)


async def test_what_the_ledger_mended_is_reported(
    plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    mended = [Repair("in_flight", "TENANT acme", "7", "1"), Repair("timers", "LEASE", "a", "b")]
    plane.detour.answers["repair"] = mended
    assert await IndexRepair(plane.engine).run_once() == 2
    assert plane.metrics.count(SWEEPER_ACTIONS, sweeper="index_repair") == 2
    told = [vars(record) for record in caplog.records if record.message == "ledger.repaired"]
    assert [Repair(*(one[name] for name in Repair._fields)) for one in told] == mended


async def test_a_ledger_in_order_needs_no_repair(plane: Plane) -> None:
    await plane.working()
    await plane.failed(request(idempotency_key="k-1"))
    assert await IndexRepair(plane.engine).run_once() == 0
    assert plane.metrics.count(SWEEPER_ACTIONS) == 0


async def test_all_eight_sweepers_run_and_those_of_silence_wait_for_recovery(
    plane: Plane,
) -> None:
    waits = {sweeper.name: sweeper.waits_for_recovery for sweeper in all_sweepers(plane.engine)}
    assert waits == {
        "stale_dispatch": False,
        "ack_timeout": True,
        "expired_lease": True,
        "due_retries": False,
        "job_sla": False,
        "cancelling": False,
        "index_repair": False,
        "retention": False,
    }


class Rounds:
    """A sweeper whose rounds are scripted: a number, or an error. Then nothing is left to do."""

    def __init__(
        self, *script: int | Exception, name: str = "scripted", waits_for_recovery: bool = False
    ) -> None:
        self.name = name
        self.interval = timedelta(milliseconds=1)
        self.waits_for_recovery = waits_for_recovery
        self.count = 0
        self._script = list(script)
        self._changed = asyncio.Condition()

    async def run_once(self) -> int:
        async with self._changed:
            self.count += 1
            self._changed.notify_all()
        outcome = self._script.pop(0) if self._script else 0
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def begun(self, count: int) -> None:
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(lambda: self.count >= count)


HOUR = timedelta(hours=1)


async def test_a_sweeper_runs_round_after_round(plane: Plane) -> None:
    sweeper = Rounds()
    async with running([SweeperRunner([sweeper], plane.telemetry)]):
        await sweeper.begun(3)


async def test_a_sweeper_can_be_given_another_rhythm(plane: Plane) -> None:
    sweeper = Rounds(name="slow")
    sweeper.interval = HOUR
    intervals = {"slow": timedelta(milliseconds=1)}
    async with running([SweeperRunner([sweeper], plane.telemetry, intervals=intervals)]):
        await sweeper.begun(3)


async def test_a_round_that_did_something_is_followed_by_another_at_once(plane: Plane) -> None:
    sweeper = Rounds(2, 1, 0)
    sweeper.interval = HOUR
    async with running([SweeperRunner([sweeper], plane.telemetry)]):
        await sweeper.begun(3)
        await turns()
    assert sweeper.count == 3


async def test_a_sweeper_of_silence_waits_for_the_recovery_grace_and_others_do_not(
    plane: Plane,
) -> None:
    patient, eager = Rounds(waits_for_recovery=True), Rounds()
    async with running([SweeperRunner([patient, eager], plane.telemetry, HOUR)]):
        await eager.begun(5)
        assert patient.count == 0


async def test_after_the_recovery_grace_a_sweeper_of_silence_runs(plane: Plane) -> None:
    patient = Rounds(waits_for_recovery=True)
    grace = timedelta(milliseconds=5)
    async with running([SweeperRunner([patient], plane.telemetry, grace)]):
        await patient.begun(2)


async def test_a_stop_during_the_recovery_grace_sweeps_nothing(plane: Plane) -> None:
    patient = Rounds(waits_for_recovery=True)
    async with (
        asyncio.timeout(DEADLINE),
        running([SweeperRunner([patient], plane.telemetry, HOUR)]),
    ):
        await turns()
    assert patient.count == 0


async def test_a_round_that_fails_is_counted_and_the_next_one_comes(plane: Plane) -> None:
    broken, sound = Rounds(ValueError("no"), OSError("no"), name="broken"), Rounds()
    async with running([SweeperRunner([broken, sound], plane.telemetry)]):
        await broken.begun(3)
        await sound.begun(3)
    assert plane.metrics.count(SWEEPER_FAILURES, sweeper="broken") == 2


async def test_a_stop_does_not_wait_for_the_interval(plane: Plane) -> None:
    sweeper = Rounds()
    sweeper.interval = HOUR
    async with asyncio.timeout(DEADLINE):
        async with running([SweeperRunner([sweeper], plane.telemetry)]):
            await sweeper.begun(1)


async def test_a_runner_that_never_ran_stops_at_once(plane: Plane) -> None:
    async with asyncio.timeout(DEADLINE):
        await SweeperRunner([Rounds()], plane.telemetry).stop()


async def test_a_stop_waits_for_the_round_that_runs(plane: Plane) -> None:
    begun, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Slow(Rounds):
        async def run_once(self) -> int:
            begun.set()
            await go_on.wait()
            ended.set()
            return 0

    runner = SweeperRunner([Slow()], plane.telemetry)
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(runner.run())
        await begun.wait()
        stopping = tasks.create_task(runner.stop())
        await turns()
        assert not stopping.done()
        go_on.set()
        await stopping
        assert ended.is_set()
