"""Deadlines: they act only on what they were set for, and never early."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lucius_contract.audit import EventType
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Outcome
from lucius_contract.states import JobState, OutboxState, StepState
from lucius_contract.timeouts import RETRY_BACKOFF, delay_after
from lucius_orchestrator.domain.aggregate import Aggregate, StepPolicy, evolve
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import NOTHING
from lucius_orchestrator.domain.draft import Fresh
from lucius_orchestrator.domain.events import (
    AckTimedOut,
    AttemptTimer,
    CeilingReached,
    DispatchStale,
    LeaseExpired,
    RetryDue,
    SlaExceeded,
    Timer,
)
from lucius_orchestrator.domain.timers import Due, TimerKind, armed, next_due
from tests.domain.scenario import START, Scenario


def timer_of(job: Scenario, kind: type[Timer]) -> Timer:
    return next(timer for timer in armed(job.aggregate) if isinstance(timer, kind))


SITUATIONS: list[tuple[type[Timer], Scenario]] = [
    (DispatchStale, Scenario.new().submitted()),
    (AckTimedOut, Scenario.new().submitted().sent()),
    (LeaseExpired, Scenario.new().submitted().sent().acked()),
    (CeilingReached, Scenario.new().submitted().sent().acked()),
    (RetryDue, Scenario.new().submitted().sent().ack_timeout()),
    (SlaExceeded, Scenario.new().submitted()),
]


@pytest.mark.parametrize(("kind", "job"), SITUATIONS, ids=lambda x: getattr(x, "__name__", ""))
class TestEveryTimer:
    def test_acts_at_its_deadline(self, kind: type[Timer], job: Scenario) -> None:
        timer = timer_of(job, kind)
        assert decide(job.aggregate, timer, timer.deadline, Fresh("f")).writes

    def test_does_nothing_before_its_deadline(self, kind: type[Timer], job: Scenario) -> None:
        timer = timer_of(job, kind)
        early = timer.deadline - timedelta(microseconds=1)
        assert decide(job.aggregate, timer, early, Fresh("f")) is NOTHING

    def test_does_nothing_once_the_deadline_moved(self, kind: type[Timer], job: Scenario) -> None:
        timer = timer_of(job, kind)
        earlier = replace(timer, deadline=timer.deadline - timedelta(seconds=1))
        assert decide(job.aggregate, earlier, timer.deadline, Fresh("f")) is NOTHING

    def test_does_nothing_for_another_attempt_or_lease(
        self, kind: type[Timer], job: Scenario
    ) -> None:
        timer = timer_of(job, kind)
        if not isinstance(timer, AttemptTimer):
            return
        for other in (replace(timer, attempt_no=2), replace(timer, lease_id="other")):
            assert decide(job.aggregate, other, timer.deadline, Fresh("f")) is NOTHING


class TestLeases:
    def test_the_lease_of_a_directive_covers_dispatch_ack_and_work(self) -> None:
        policy = StepPolicy()
        job = Scenario.new(1, policy).submitted()
        covered = sum(policy.dispatch_backoff, timedelta()) + policy.ack_timeout + policy.lease
        assert job.active.lease_expires_at == job.now + covered

    def test_the_first_ack_restarts_the_lease_and_starts_the_ceiling(self) -> None:
        job = Scenario.new().submitted().sent().acked()
        assert job.active.lease_expires_at == job.now + job.active.policy.lease
        assert job.active.ceiling_at == job.now + job.active.policy.ceiling

    def test_a_heartbeat_disarms_the_timer_that_was_set_before_it(self) -> None:
        job = Scenario.new().submitted().sent().acked()
        before = timer_of(job, LeaseExpired)
        job.heartbeat()
        assert decide(job.aggregate, before, before.deadline, Fresh("f")) is NOTHING

    def test_heartbeats_do_not_help_past_the_ceiling(self) -> None:
        job = Scenario.new().submitted().sent().acked()
        ceiling = job.active.ceiling_at
        assert ceiling is not None
        while job.now < ceiling:
            job.now += timedelta(minutes=10)
            job.heartbeat()
        job.ceiling()
        assert job.active.state is StepState.FAILED_RETRY
        assert job.active.last_error_code == ErrorCode.ATTEMPT_TIMEOUT

    @pytest.mark.parametrize(
        ("end", "code"),
        [
            ("lease_expired", ErrorCode.LEASE_EXPIRED),
            ("ceiling", ErrorCode.ATTEMPT_TIMEOUT),
        ],
    )
    def test_used_up_attempts_make_it_final(self, end: str, code: ErrorCode) -> None:
        job = Scenario.new(2, StepPolicy(max_attempts=1)).submitted().sent().acked()
        getattr(job, end)()
        assert job.states == (JobState.FAILED_FINAL, StepState.FAILED_FINAL)
        assert job.aggregate.job.error_code == code
        assert job.aggregate.steps[1].state is StepState.CANCELLED


class TestRetries:
    def test_waits_grow_along_the_list_and_the_last_one_repeats(self) -> None:
        job = Scenario.new(1, StepPolicy(max_attempts=5)).submitted()
        waits = []
        for _ in range(4):
            job.sent().acked().result(Outcome.FAILED_RETRY)
            assert job.active.next_attempt_at is not None
            waits.append(job.active.next_attempt_at - job.now)
            job.retry_due()
        assert waits == [*RETRY_BACKOFF, RETRY_BACKOFF[-1]]

    def test_jitter_spreads_a_wait_by_a_tenth(self) -> None:
        first = RETRY_BACKOFF[0]
        assert delay_after(1, RETRY_BACKOFF, 1.0) == first * 1.1
        assert delay_after(1, RETRY_BACKOFF, -1.0) == first * 0.9

    def test_both_tracks_share_the_attempts(self) -> None:
        job = Scenario.new(1).submitted().sent().ack_timeout().retry_due()
        job.sent().acked().result(Outcome.FAILED_RETRY).retry_due()
        job.unpublishable()
        assert job.aggregate.job.state is JobState.FAILED_FINAL
        assert [a.error_code for a in job.active.attempts] == [
            ErrorCode.ACK_TIMEOUT,
            "ocr.BROKEN",
            ErrorCode.DISPATCH_FAILED,
        ]
        assert job.aggregate.job.attempts_total == 3

    def test_a_retry_rests_while_the_job_is_paused(self) -> None:
        job = Scenario.new().submitted().sent().ack_timeout()
        timer = timer_of(job, RetryDue)
        job.pause()
        assert decide(job.aggregate, timer, timer.deadline, Fresh("f")) is NOTHING
        assert [type(t) for t in armed(job.aggregate)] == [SlaExceeded]
        job.resume()
        assert timer_of(job, RetryDue) == timer


class TestStaleDispatch:
    def test_a_pending_row_wakes_the_dispatcher(self) -> None:
        job = Scenario.new().submitted().stale()
        assert job.last.wakes_dispatcher
        (event,) = job.last.events
        assert (event.type, event.by) == (EventType.DISPATCH_WOKEN, "stale_dispatch")
        assert job.active.state is StepState.DISPATCHING

    def test_a_sent_row_makes_up_for_the_missing_mark(self) -> None:
        job = Scenario.new().submitted().stale(OutboxState.SENT)
        assert job.active.state is StepState.AWAITING_ACK
        assert job.active.ack_deadline == job.now + job.active.policy.ack_timeout

    @pytest.mark.parametrize("row", [OutboxState.FAILED_FINAL, OutboxState.SUPERSEDED])
    def test_a_row_that_ended_is_left_alone(self, row: OutboxState) -> None:
        assert Scenario.new().submitted().stale(row).last is NOTHING


class TestSla:
    def test_it_ends_the_step_and_the_job(self) -> None:
        job = Scenario.new().submitted().sent().acked().sla_exceeded()
        assert job.aggregate.job.error_code == ErrorCode.SLA_EXCEEDED
        assert [step.state for step in job.aggregate.steps] == [
            StepState.FAILED_FINAL,
            StepState.CANCELLED,
            StepState.CANCELLED,
        ]

    def test_it_runs_while_the_job_is_paused(self) -> None:
        job = Scenario.new().submitted().succeeds().sent().acked().pause().result().sla_exceeded()
        assert job.aggregate.job.state is JobState.FAILED_FINAL
        (letter,) = job.last.dead_letters
        assert (letter.kind, letter.step_id) == ("JOB", None)

    def test_a_waiting_retry_keeps_the_error_of_its_attempt(self) -> None:
        job = Scenario.new().submitted().sent().acked().result(Outcome.FAILED_RETRY).sla_exceeded()
        assert job.active.last_error_code == ErrorCode.SLA_EXCEEDED
        assert job.active.attempts[0].error_code == "ocr.BROKEN"
        assert job.active.attempts[0].outcome is StepState.FAILED_RETRY


class TestArmed:
    def test_a_new_job_has_its_sla_alone(self) -> None:
        job = Scenario.new()
        assert list(armed(job.aggregate)) == [SlaExceeded(job.aggregate.job.sla_deadline)]

    def test_a_finished_job_has_none(self) -> None:
        job = Scenario.new(1).submitted().succeeds()
        assert list(armed(job.aggregate)) == []
        assert next_due(job.aggregate) is None

    def test_a_row_that_lost_its_deadline_is_still_under_the_sla(self) -> None:
        job = Scenario.new(1).submitted().sent()
        damaged = Aggregate(job.aggregate.job, (evolve(job.active, {"ack_deadline": None}),))
        assert [type(timer) for timer in armed(damaged)] == [SlaExceeded]

    def test_the_next_deadline_is_the_earliest(self) -> None:
        job = Scenario.new().submitted()
        assert next_due(job.aggregate) == Due(START + timedelta(seconds=61), TimerKind.DISPATCH)
        job.sent()
        assert next_due(job.aggregate) == Due(job.active.ack_deadline or START, TimerKind.ACK)
