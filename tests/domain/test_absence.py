"""Attempts of a service that nothing is heard from do not count as tries."""

from datetime import timedelta

import pytest

from lucius_contract.audit import Verdict
from lucius_contract.messages import Outcome
from lucius_contract.states import JobState, StepState
from lucius_contract.timeouts import RETRY_BACKOFF
from lucius_orchestrator.domain.aggregate import StepPolicy
from tests.domain.scenario import Scenario

WAITS_FOR_RETRY = (JobState.DISPATCHING, StepState.FAILED_RETRY)


def after(unanswered: int) -> Scenario:
    """A job whose next attempt is sent, after so many that nobody answered."""
    job = Scenario.new().submitted().sent()
    for _ in range(unanswered):
        job.unanswered().retry_due().sent()
    return job


def test_an_unanswered_attempt_is_followed_by_another_however_many_there_were() -> None:
    job = after(20).unanswered()
    assert job.states == WAITS_FOR_RETRY
    assert (job.active.attempt_no, job.active.unanswered) == (21, 21)
    assert job.last.dead_letters == ()


def test_attempts_that_count_are_as_many_as_ever() -> None:
    job = after(5)
    for _ in range(2):
        assert job.ack_timeout().states == WAITS_FOR_RETRY
        job.retry_due().sent()
    job.ack_timeout()
    assert job.states == (JobState.FAILED_FINAL, StepState.FAILED_FINAL)
    assert (job.active.attempt_no, job.active.unanswered) == (8, 5)


def test_the_sla_ends_a_job_of_an_absent_service() -> None:
    job = after(3).sla_exceeded()
    assert job.states == (JobState.FAILED_FINAL, StepState.FAILED_FINAL)
    assert job.active.last_error_code == "SLA_EXCEEDED"


def test_the_waits_grow_with_what_was_not_answered() -> None:
    job = after(0)
    for wait in (*RETRY_BACKOFF, RETRY_BACKOFF[-1]):
        job.unanswered()
        assert job.active.next_attempt_at == job.now + wait
        job.retry_due().sent()


def test_the_first_failure_that_counts_has_the_first_wait() -> None:
    job = after(4).ack_timeout()
    assert job.active.next_attempt_at == job.now + RETRY_BACKOFF[0]


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED_RETRY])
def test_a_service_that_is_back_may_still_take_the_directive(outcome: Outcome) -> None:
    job = after(1).unanswered()
    job.now += timedelta(seconds=20)
    assert job.acked().verdict() is Verdict.APPLIED
    assert job.states == (JobState.IN_PROGRESS, StepState.IN_PROGRESS)
    assert job.active.unanswered == 1
    assert job.result(outcome).verdict() is Verdict.APPLIED
    expected = {
        Outcome.SUCCEEDED: StepState.SUCCEEDED,
        Outcome.FAILED_RETRY: StepState.FAILED_RETRY,
    }
    assert job.aggregate.steps[0].state is expected[outcome]


def test_a_late_answer_makes_the_attempt_count() -> None:
    policy = StepPolicy(max_attempts=1)
    job = Scenario.new(1, policy).submitted().sent().unanswered()
    assert job.states == WAITS_FOR_RETRY
    job.result(Outcome.FAILED_RETRY)
    assert job.states == (JobState.FAILED_FINAL, StepState.FAILED_FINAL)


def test_a_job_that_is_cancelled_waits_for_no_service() -> None:
    job = after(1).cancel().unanswered()
    assert job.states == (JobState.CANCELLED, StepState.CANCELLED)


def test_a_pause_takes_effect() -> None:
    job = after(1).pause().unanswered()
    assert job.states == (JobState.PAUSED, StepState.FAILED_RETRY)
    assert job.resume().retry_due().active.attempt_no == 3
