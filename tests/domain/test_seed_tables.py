"""Each row of the contract's source tables, as a case of its own."""

from lucius_contract.audit import Verdict
from lucius_contract.messages import Outcome
from lucius_contract.states import (
    JOB_STATUS,
    STEP_STATUS,
    JobState,
    JobStatus,
    OutboxState,
    StepState,
    StepStatus,
)
from lucius_orchestrator.domain.aggregate import StepPolicy
from tests.domain.scenario import Scenario

Job, Step = JobState, StepState


class TestJobTable:
    def test_queued_to_dispatching_when_the_first_outbox_row_is_created(self) -> None:
        job = Scenario.new().submitted()
        assert job.states == (Job.DISPATCHING, Step.DISPATCHING)
        assert job.enqueued().step_id == "step_01"

    def test_dispatching_to_in_progress_when_step_0_is_acknowledged(self) -> None:
        assert Scenario.new().submitted().sent().acked().states[0] is Job.IN_PROGRESS

    def test_in_progress_stays_when_a_step_succeeds_and_the_next_is_activated(self) -> None:
        job = Scenario.new().submitted().succeeds()
        assert job.states == (Job.IN_PROGRESS, Step.DISPATCHING)
        assert job.aggregate.job.current_step_id == "step_02"

    def test_in_progress_to_succeeded_when_the_final_step_succeeds(self) -> None:
        job = Scenario.new(2).submitted().succeeds().succeeds()
        assert job.states[0] is Job.SUCCEEDED

    def test_in_progress_to_failed_final_when_a_step_fails_for_good(self) -> None:
        job = Scenario.new().submitted().sent().acked().result(Outcome.FAILED_FINAL)
        assert job.states[0] is Job.FAILED_FINAL

    def test_queued_to_cancelling_and_at_once_on_when_cancelled(self) -> None:
        job = Scenario.new().cancel()
        assert [e.target for e in job.last.events][:2] == [Job.CANCELLING, Job.CANCELLED]

    def test_dispatching_to_cancelling_when_cancelled(self) -> None:
        assert Scenario.new().submitted().cancel().states[0] is Job.CANCELLING

    def test_in_progress_to_cancelling_when_cancelled(self) -> None:
        assert Scenario.new().submitted().sent().acked().cancel().states[0] is Job.CANCELLING

    def test_cancelling_to_cancelled_when_the_active_step_is_terminal(self) -> None:
        job = Scenario.new().submitted().sent().acked().cancel().result()
        assert job.states == (Job.CANCELLED, Step.SUCCEEDED)


class TestStepTable:
    def test_pending_to_dispatching_sets_attempt_lease_and_expiry(self) -> None:
        step = Scenario.new().submitted().active
        assert (step.state, step.attempt_no) == (Step.DISPATCHING, 1)
        assert step.lease_id is not None
        assert step.lease_expires_at is not None

    def test_dispatching_to_awaiting_ack_when_the_outbox_row_is_sent(self) -> None:
        job = Scenario.new().submitted().sent()
        assert job.active.state is Step.AWAITING_ACK
        assert job.rows == {"job_1.step_01.1": OutboxState.SENT}

    def test_awaiting_ack_to_in_progress_on_ack(self) -> None:
        job = Scenario.new().submitted().sent().acked()
        assert job.active.state is Step.IN_PROGRESS
        assert job.verdict() is Verdict.APPLIED

    def test_in_progress_to_succeeded_on_a_successful_result(self) -> None:
        assert Scenario.new().submitted().succeeds().aggregate.steps[0].state is Step.SUCCEEDED

    def test_in_progress_to_failed_final_on_a_non_retryable_result(self) -> None:
        job = Scenario.new().submitted().sent().acked().result(Outcome.FAILED_FINAL)
        assert job.active.state is Step.FAILED_FINAL

    def test_in_progress_to_failed_retry_on_a_retryable_result(self) -> None:
        job = Scenario.new().submitted().sent().acked().result(Outcome.FAILED_RETRY)
        assert job.active.state is Step.FAILED_RETRY

    def test_in_progress_to_failed_final_on_a_retryable_result_of_the_last_attempt(self) -> None:
        job = Scenario.new(3, StepPolicy(max_attempts=1)).submitted().sent().acked()
        assert job.result(Outcome.FAILED_RETRY).active.state is Step.FAILED_FINAL

    def test_awaiting_ack_to_failed_retry_on_ack_timeout(self) -> None:
        assert Scenario.new().submitted().sent().ack_timeout().active.state is Step.FAILED_RETRY

    def test_failed_retry_to_dispatching_with_a_new_attempt_and_lease(self) -> None:
        job = Scenario.new().submitted().sent().ack_timeout()
        first_lease = job.active.lease_id
        job.retry_due()
        assert (job.active.state, job.active.attempt_no) == (Step.DISPATCHING, 2)
        assert job.active.lease_id != first_lease

    def test_any_non_terminal_to_cancelled_when_the_job_is_cancelled(self) -> None:
        job = Scenario.new().submitted().sent().acked().cancel().result(Outcome.FAILED_RETRY)
        assert [step.state for step in job.aggregate.steps] == [Step.CANCELLED] * 3


class TestOutboxTable:
    def test_pending_to_sent_when_published(self) -> None:
        assert Scenario.new().submitted().sent().rows["job_1.step_01.1"] is OutboxState.SENT

    def test_pending_to_failed_final_when_it_can_never_be_published(self) -> None:
        job = Scenario.new().submitted().unpublishable()
        assert job.rows["job_1.step_01.1"] is OutboxState.FAILED_FINAL


class TestStatusesOfTheReadModel:
    """The transitions of the second vocabulary, as derived from the first."""

    def statuses(self, job: Scenario) -> tuple[JobStatus, StepStatus]:
        state = job.aggregate.job.state
        return JOB_STATUS[state], STEP_STATUS[job.aggregate.steps[0].state]

    def test_a_new_job_is_queued_and_its_steps_are_pending(self) -> None:
        assert self.statuses(Scenario.new()) == (JobStatus.QUEUED, StepStatus.PENDING)

    def test_a_recorded_attempt_is_initiated(self) -> None:
        job = Scenario.new().submitted()
        assert self.statuses(job) == (JobStatus.QUEUED, StepStatus.INITIATED)
        assert self.statuses(job.sent()) == (JobStatus.QUEUED, StepStatus.INITIATED)

    def test_the_first_ack_makes_it_in_progress_and_processing(self) -> None:
        job = Scenario.new().submitted().sent().acked()
        assert self.statuses(job) == (JobStatus.IN_PROGRESS, StepStatus.PROCESSING)

    def test_a_retryable_result_shows_as_failed_retry(self) -> None:
        job = Scenario.new().submitted().sent().acked().result(Outcome.FAILED_RETRY)
        assert self.statuses(job) == (JobStatus.IN_PROGRESS, StepStatus.FAILED_RETRY)

    def test_a_final_failure_shows_on_both(self) -> None:
        job = Scenario.new().submitted().sent().acked().result(Outcome.FAILED_FINAL)
        assert self.statuses(job) == (JobStatus.FAILED_FINAL, StepStatus.FAILED_FINAL)

    def test_the_last_success_shows_on_both(self) -> None:
        job = Scenario.new(1).submitted().succeeds()
        assert self.statuses(job) == (JobStatus.SUCCEEDED, StepStatus.SUCCEEDED)

    def test_a_pause_shows_once_nothing_is_in_flight(self) -> None:
        job = Scenario.new().submitted().sent().acked().pause()
        assert self.statuses(job)[0] is JobStatus.IN_PROGRESS
        assert self.statuses(job.result())[0] is JobStatus.PAUSED

    def test_a_resumed_job_continues_from_the_last_successful_step(self) -> None:
        job = Scenario.new().submitted().sent().acked().pause().result().resume()
        assert self.statuses(job)[0] is JobStatus.IN_PROGRESS
        assert job.active.step_id == "step_02"

    def test_a_cancel_shows_once_the_step_has_ended(self) -> None:
        job = Scenario.new().submitted().sent().acked().cancel()
        assert self.statuses(job)[0] is JobStatus.IN_PROGRESS
        assert self.statuses(job.result())[0] is JobStatus.CANCELLED
