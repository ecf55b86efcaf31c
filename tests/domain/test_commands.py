"""Cancel, pause and resume."""

import pytest

from lucius_contract.audit import EventType
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Outcome
from lucius_contract.states import JobState, StepState
from lucius_orchestrator.domain.aggregate import Aggregate, evolve
from lucius_orchestrator.domain.decision import NOTHING
from lucius_orchestrator.domain.draft import RECORDED_SINGLY
from lucius_orchestrator.domain.events import CancelRequested
from tests.domain.scenario import Scenario


def working(steps: int = 3) -> Scenario:
    return Scenario.new(steps).submitted().sent().acked()


class TestCancel:
    def test_the_active_step_may_finish_but_no_other_begins(self) -> None:
        job = working().cancel().result()
        assert job.aggregate.job.state is JobState.CANCELLED
        assert [step.state for step in job.aggregate.steps] == [
            StepState.SUCCEEDED,
            StepState.CANCELLED,
            StepState.CANCELLED,
        ]
        assert job.last.outbox == ()

    def test_a_last_step_that_succeeds_does_not_undo_it(self) -> None:
        job = working(1).cancel().result()
        assert job.aggregate.job.state is JobState.CANCELLED
        assert job.aggregate.job.final_output is None

    @pytest.mark.parametrize("end", ["lease_expired", "ceiling", "sla_exceeded"])
    def test_whatever_ends_the_work_cancels_the_step(self, end: str) -> None:
        job = working().cancel()
        getattr(job, end)()
        assert job.states == (JobState.CANCELLED, StepState.CANCELLED)

    def test_a_retryable_failure_is_not_retried(self) -> None:
        job = working().cancel().result(Outcome.FAILED_RETRY)
        assert job.states == (JobState.CANCELLED, StepState.CANCELLED)
        assert job.active.next_attempt_at is None

    def test_a_waiting_retry_is_cancelled_at_once(self) -> None:
        job = working().result(Outcome.FAILED_RETRY).cancel()
        assert job.states == (JobState.CANCELLED, StepState.CANCELLED)
        assert [e.implied for e in job.last.events if e.target == "CANCELLING"] == [True]

    def test_a_paused_job_is_cancelled_at_once(self) -> None:
        job = working().pause().result().cancel()
        assert job.aggregate.job.state is JobState.CANCELLED

    def test_asking_again_changes_nothing(self) -> None:
        assert working().cancel().cancel().last is NOTHING
        assert Scenario.new().cancel().cancel().last is NOTHING

    def test_a_cancelling_job_with_nothing_in_flight_is_ended_by_asking_again(self) -> None:
        job = working().cancel()
        stuck = evolve(job.active, {"state": StepState.SUCCEEDED})
        job.aggregate = Aggregate(job.aggregate.job, (stuck, *job.aggregate.steps[1:]))
        assert job.cancel().aggregate.job.state is JobState.CANCELLED

    def test_a_finished_job_refuses_with_the_reason(self) -> None:
        job = working(1).result().cancel()
        assert job.last.refusal is not None
        assert job.last.refusal.code is ErrorCode.STATE_CONFLICT
        assert "SUCCEEDED" in job.last.refusal.reason
        (event,) = job.last.events
        assert (event.type, event.cause) == (EventType.REFUSED, "CancelRequested")


class TestPause:
    def test_it_never_interrupts_a_step(self) -> None:
        job = working().pause()
        assert job.states == (JobState.PAUSING, StepState.IN_PROGRESS)
        job.heartbeat().result()
        assert job.states == (JobState.PAUSED, StepState.PENDING)
        assert job.active.step_id == "step_02"

    def test_a_last_step_that_succeeds_ends_the_job(self) -> None:
        assert working(1).pause().result().aggregate.job.state is JobState.SUCCEEDED

    def test_a_step_that_fails_for_good_ends_the_job(self) -> None:
        job = working().pause().result(Outcome.FAILED_FINAL)
        assert job.aggregate.job.state is JobState.FAILED_FINAL

    def test_a_step_to_be_retried_counts_as_not_in_flight(self) -> None:
        job = working().pause().result(Outcome.FAILED_RETRY)
        assert job.states == (JobState.PAUSED, StepState.FAILED_RETRY)

    def test_asking_again_changes_nothing(self) -> None:
        assert working().pause().pause().last is NOTHING
        assert Scenario.new().pause().pause().last is NOTHING

    def test_a_cancelling_job_refuses(self) -> None:
        refusal = working().cancel().pause().last.refusal
        assert refusal is not None
        assert refusal.code is ErrorCode.STATE_CONFLICT


class TestResume:
    def test_before_the_first_ack_the_job_is_dispatching_again(self) -> None:
        job = Scenario.new().submitted().sent().pause().resume()
        assert job.states == (JobState.DISPATCHING, StepState.AWAITING_ACK)

    def test_a_job_paused_before_its_start_begins(self) -> None:
        job = Scenario.new().pause().resume()
        assert job.states == (JobState.DISPATCHING, StepState.DISPATCHING)
        assert len(job.last.outbox) == 1

    def test_after_the_first_ack_the_job_is_in_progress_again(self) -> None:
        assert working().pause().resume().states == (JobState.IN_PROGRESS, StepState.IN_PROGRESS)

    def test_an_ack_that_came_while_pausing_counts(self) -> None:
        job = Scenario.new().submitted().sent().pause().acked().resume()
        assert job.states == (JobState.IN_PROGRESS, StepState.IN_PROGRESS)

    def test_the_next_step_is_dispatched(self) -> None:
        job = working().pause().result().resume()
        assert job.states == (JobState.IN_PROGRESS, StepState.DISPATCHING)
        assert job.enqueued().step_id == "step_02"

    def test_a_job_that_runs_is_left_alone(self) -> None:
        assert working().resume().last is NOTHING


class TestRefusals:
    def test_after_fifty_they_are_counted(self) -> None:
        job = working(1).result()
        for _ in range(RECORDED_SINGLY):
            assert len(job.pause().last.events) == 1
        job.pause()
        assert job.last.events == ()
        assert job.last.refusal is not None
        assert job.aggregate.job.refusals == RECORDED_SINGLY + 1

    def test_who_asked_is_recorded(self) -> None:
        job = working().happens(CancelRequested(by="operator"))
        assert {event.by for event in job.last.events} == {"operator"}
