"""Attempts that a workflow opens, and workflows that are lost."""

from datetime import timedelta

import pytest

from lucius_contract.audit import EventType
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Directive, Outcome
from lucius_contract.states import JobState, OutboxState, StepState
from lucius_orchestrator.domain.aggregate import Turn
from lucius_orchestrator.domain.decision import NOTHING, OutboxKind
from lucius_orchestrator.domain.draft import RECORDED_SINGLY
from lucius_orchestrator.domain.events import RetryDue, TurnGranted
from lucius_orchestrator.domain.workflow import result_of
from tests.domain.scenario import ARTIFACT, TENANT, Scenario

RETRY = Outcome.FAILED_RETRY
SECOND = timedelta(seconds=1)


def refused(job: Scenario) -> ErrorCode | None:
    return job.last.refusal.code if job.last.refusal else None


class TestTheFirstAttempt:
    def test_a_new_job_waits_for_its_workflow(self) -> None:
        job = Scenario.driven().submitted()
        assert job.states == (JobState.QUEUED, StepState.PENDING)
        assert [row.kind for row in job.last.outbox] == [OutboxKind.START]
        assert job.last.events == ()

    def test_it_is_opened_as_the_workflow_asks(self) -> None:
        job = Scenario.driven().submitted()
        asked = job.opening()
        job.happens(asked)
        step = job.active
        assert job.states == (JobState.DISPATCHING, StepState.DISPATCHING)
        assert job.identity() == (asked.step_id, asked.attempt_no, asked.lease_id)
        assert step.lease_expires_at == asked.lease_expires_at
        assert [a.lease_id for a in step.attempts] == [asked.lease_id]
        assert job.aggregate.job.attempts_total == 1

    def test_its_directive_is_committed_with_it_for_the_workflow_alone(self) -> None:
        job = Scenario.driven().begun()
        row = job.enqueued()
        assert row.kind is OutboxKind.INVOCATION
        directive = Directive.read(row.body)
        assert (directive.step_id, directive.attempt_no, directive.lease_id) == job.identity()
        assert directive.lease_expires_at == job.active.lease_expires_at

    def test_a_job_that_began_is_not_submitted_again(self) -> None:
        job = Scenario.driven().begun().submitted()
        assert refused(job) == ErrorCode.STATE_CONFLICT
        assert job.last.outbox == ()

    def test_one_that_was_paused_and_resumed_before_is_opened_like_any_other(self) -> None:
        job = Scenario.driven().submitted().pause().resume()
        assert job.states == (JobState.DISPATCHING, StepState.PENDING)
        assert job.last.outbox == tuple(job.told())
        job.opened()
        assert job.states == (JobState.DISPATCHING, StepState.DISPATCHING)


class TestAskingAgain:
    @pytest.mark.parametrize("progress", ["begun", "sent", "acked"])
    def test_the_same_attempt_and_lease_changes_nothing(self, progress: str) -> None:
        job = Scenario.driven().submitted()
        asked = job.opening()
        job.happens(asked)
        if progress != "begun":
            job.sent()
        if progress == "acked":
            job.acked()
        assert job.happens(asked).last is NOTHING

    def test_nor_does_it_with_another_end_of_the_lease(self) -> None:
        job = Scenario.driven().begun()
        _, attempt_no, lease_id = job.identity()
        ends = job.active.lease_expires_at
        job.opened(attempt_no=attempt_no, lease_id=lease_id)
        assert job.last is NOTHING
        assert job.active.lease_expires_at == ends

    def test_another_lease_for_an_attempt_that_is_open_is_stale(self) -> None:
        job = Scenario.driven().begun()
        before = job.identity()
        job.opened(attempt_no=1, lease_id="another")
        assert refused(job) == ErrorCode.STALE_ATTEMPT
        assert job.identity() == before
        assert [event.type for event in job.last.events] == [EventType.REFUSED]

    @pytest.mark.parametrize("attempt_no", [1, 0, -1])
    def test_a_lower_attempt_is_stale_even_under_its_own_lease(self, attempt_no: int) -> None:
        job = Scenario.driven().begun()
        first = job.identity()[2]
        job.sent().ack_timeout().opened()
        job.opened(attempt_no=attempt_no, lease_id=first)
        assert refused(job) == ErrorCode.STALE_ATTEMPT

    @pytest.mark.parametrize("outcome", Outcome)
    def test_an_attempt_whose_result_is_applied_opens_nothing_and_has_it(
        self, outcome: Outcome
    ) -> None:
        job = Scenario.driven().submitted()
        asked = job.opening()
        job.happens(asked).sent().acked().result(outcome)
        assert job.happens(asked).last is NOTHING
        result = result_of(job.aggregate.steps[0], 1)
        assert result is not None
        assert result["status"] == outcome.value
        failure = {"code": "ocr.BROKEN", "message": "it broke"}
        assert result["error"] == (None if outcome is Outcome.SUCCEEDED else failure)

    def test_an_attempt_that_ended_without_a_reply_has_no_result(self) -> None:
        job = Scenario.driven().begun().sent()
        assert result_of(job.active, 1) is None
        job.ack_timeout()
        assert result_of(job.active, 1) is None
        assert result_of(job.active, 2) is None

    def test_refusals_are_counted_rather_than_recorded_in_the_end(self) -> None:
        job = Scenario.driven().begun()
        for _ in range(RECORDED_SINGLY + 1):
            job.opened(attempt_no=1, lease_id="another")
        assert job.last.events == ()
        assert job.aggregate.job.refusals == RECORDED_SINGLY + 1


class TestWhatIsNotAskedFor:
    def test_a_retry_that_is_not_due_yet_waits(self) -> None:
        job = Scenario.driven().begun().sent().acked().result(RETRY)
        due = job.active.next_attempt_at
        assert due is not None
        early = job.opening()
        assert job.happens(early, due - job.now - timedelta(microseconds=1)).last is NOTHING
        job.happens(early, due - job.now)
        assert job.states == (JobState.IN_PROGRESS, StepState.DISPATCHING)

    def test_a_retry_is_opened_by_the_workflow_and_by_nothing_else(self) -> None:
        job = Scenario.driven().begun().sent().ack_timeout()
        due = job.active.next_attempt_at
        assert due is not None
        job.happens(RetryDue(*job.identity(), due), due - job.now)
        assert not job.last.writes
        assert job.active.state is StepState.FAILED_RETRY

    def test_an_attempt_must_be_the_next_one(self) -> None:
        job = Scenario.driven().submitted().opened(attempt_no=2)
        assert refused(job) == ErrorCode.STATE_CONFLICT
        job.opened().sent().ack_timeout().opened(attempt_no=3)
        assert refused(job) == ErrorCode.STATE_CONFLICT

    @pytest.mark.parametrize("left", [-1, 0])
    def test_a_lease_that_is_over_opens_nothing(self, left: int) -> None:
        job = Scenario.driven().submitted()
        job.opened(lease_expires_at=job.now + SECOND * (left + 1))
        assert job.last is NOTHING

    def test_a_lease_that_is_almost_over_is_still_one(self) -> None:
        job = Scenario.driven().submitted()
        job.opened(lease_expires_at=job.now + SECOND + timedelta(microseconds=1))
        assert job.active.state is StepState.DISPATCHING

    def test_the_next_attempt_is_not_opened_beside_one_that_is_in_flight(self) -> None:
        job = Scenario.driven().begun().sent().ack_timeout()
        next_one = job.opening()
        job.acked()
        assert job.happens(next_one).last is NOTHING

    def test_a_step_after_the_active_one_is_not_opened(self) -> None:
        job = Scenario.driven().submitted().opened(step_id="step_02")
        assert job.last is NOTHING

    @pytest.mark.parametrize("steps", [0, 1])
    def test_a_job_that_is_paused_opens_nothing(self, steps: int) -> None:
        job = Scenario.driven()
        job = job.begun().sent().acked().pause().result() if steps else job.submitted().pause()
        assert job.aggregate.job.state is JobState.PAUSED
        assert job.opened().last is NOTHING

    def test_nor_does_one_whose_retry_rests(self) -> None:
        job = Scenario.driven().begun().sent().ack_timeout().pause()
        assert job.opened().last is NOTHING
        assert job.resume().opened().active.attempt_no == 2

    def test_a_job_that_has_ended_opens_nothing(self) -> None:
        assert Scenario.driven().submitted().cancel().opened().last is NOTHING

    @pytest.mark.parametrize("changes", [{"step_id": "step_09"}, {"tenant_id": "other"}])
    def test_a_step_or_tenant_that_is_not_the_jobs_is_refused(
        self, changes: dict[str, str]
    ) -> None:
        job = Scenario.driven().submitted().opened(**changes)
        assert refused(job) == ErrorCode.JOB_NOT_FOUND

    def test_a_job_that_no_workflow_drives_is_refused(self) -> None:
        job = Scenario.new().submitted().opened()
        assert refused(job) == ErrorCode.JOB_NOT_FOUND


class TestAnAttemptThatIsNotAdmitted:
    def test_it_opens_nothing_and_takes_its_place_in_the_queue(self) -> None:
        job = Scenario.driven().submitted().queued()
        assert job.states == (JobState.QUEUED, StepState.PENDING)
        assert (job.active.attempt_no, job.active.turn) == (0, Turn.WAITING)
        (row,) = job.last.outbox
        assert row is job.turns[0]
        assert (row.kind, row.outbox_id) == (OutboxKind.TURN, "job_1.step_01.1.turn")
        assert row.service == "ocr"
        assert row.body["tenant_id"] == TENANT
        assert (row.body["mode"], row.body["lane"]) == ("DEFAULT", job.active.route.lane)
        assert row.lease_id == row.body["lease_id"] == ""

    def test_its_workflow_waits_for_a_signal_or_the_sla(self) -> None:
        job = Scenario.driven().submitted().queued()
        assert job.next["action"] == "WAIT"
        assert [timer["event"] for timer in job.next["timers"]] == ["SLA_EXCEEDED"]
        assert job.told() == []

    def test_asked_for_again_it_waits_in_the_same_place(self) -> None:
        job = Scenario.driven().submitted().queued()
        assert job.queued().last is NOTHING

    def test_room_that_is_found_in_another_way_opens_it(self) -> None:
        job = Scenario.driven().submitted().queued().opened()
        assert (job.active.state, job.active.turn) == (StepState.DISPATCHING, None)
        job.turn_granted()
        assert job.rows["job_1.step_01.1.turn"] is OutboxState.SUPERSEDED
        assert (job.active.state, job.active.turn) == (StepState.DISPATCHING, None)

    def test_a_turn_that_is_granted_is_told_and_opens_it_without_room(self) -> None:
        job = Scenario.driven().submitted().queued().turn_granted()
        assert job.active.turn is Turn.GRANTED
        assert job.rows["job_1.step_01.1.turn"] is OutboxState.SENT
        (signal,) = job.told()
        assert signal.body["signal"] == "job_moved"
        assert signal.body["next"] == job.next
        assert (job.next["action"], job.next["attempt_no"]) == ("OPEN", 1)
        step = job.queued().active
        assert (step.state, step.turn) == (StepState.DISPATCHING, None)

    def test_each_attempt_has_a_turn_of_its_own(self) -> None:
        job = Scenario.driven().submitted().queued().turn_granted().opened()
        job.sent().ack_timeout().queued()
        assert [row.attempt_no for row in job.turns] == [1, 2]
        assert job.next["action"] == "WAIT"
        assert job.turn_granted().next["action"] == "OPEN"

    def test_a_turn_of_another_attempt_is_not_its_own(self) -> None:
        job = Scenario.driven().submitted().queued()
        for step_id, attempt_no in (("step_01", 2), ("step_02", 1)):
            job.happens(TurnGranted(step_id, attempt_no))
            assert job.active.turn is Turn.WAITING
            assert job.told() == []

    def test_a_turn_that_is_granted_twice_is_told_once(self) -> None:
        job = Scenario.driven().submitted().queued().turn_granted().turn_granted()
        assert job.active.turn is Turn.GRANTED
        assert job.told() == []
        assert job.rows["job_1.step_01.1.turn"] is OutboxState.SENT

    def test_a_paused_job_keeps_its_place_and_its_turn(self) -> None:
        job = Scenario.driven().submitted().queued().pause()
        assert job.resume().next["action"] == "WAIT"
        job.pause().turn_granted()
        assert job.told() == []
        assert (job.next["action"], job.active.turn) == ("WAIT", Turn.GRANTED)
        assert job.resume().next["action"] == "OPEN"

    @pytest.mark.parametrize("end", ["cancel", "sla_exceeded"])
    def test_the_turn_of_a_job_that_has_ended_moves_nothing(self, end: str) -> None:
        job = Scenario.driven().submitted().queued()
        getattr(job, end)()
        states = job.states
        job.turn_granted()
        assert job.rows["job_1.step_01.1.turn"] is OutboxState.SUPERSEDED
        assert (job.states, job.active.turn, job.told()) == (states, None, [])

    def test_a_late_reply_leaves_the_next_attempt_its_turn(self) -> None:
        job = Scenario.driven().begun().sent().ack_timeout().queued().acked()
        assert (job.active.state, job.active.turn) == (StepState.IN_PROGRESS, Turn.WAITING)
        assert job.turn_granted().told() == []
        job.result(RETRY).queued()
        assert (job.active.state, job.active.attempt_no) == (StepState.DISPATCHING, 2)

    def test_a_job_that_is_cancelled_while_it_works_needs_no_turn(self) -> None:
        job = Scenario.driven().begun().sent().ack_timeout().queued().acked().cancel()
        job.turn_granted()
        assert job.rows["job_1.step_01.2.turn"] is OutboxState.SUPERSEDED
        assert job.active.turn is Turn.WAITING
        assert job.result().active.turn is None


class TestTheNextStep:
    def test_it_waits_for_the_workflow_too(self) -> None:
        job = Scenario.driven().begun().succeeds(artifacts=(ARTIFACT,))
        assert job.states == (JobState.IN_PROGRESS, StepState.PENDING)
        assert job.active.step_id == "step_02"
        job.opened()
        assert job.states == (JobState.IN_PROGRESS, StepState.DISPATCHING)
        assert job.directives[-1].body["prior_artifacts"] == {"OCR": (ARTIFACT,)}

    def test_a_job_between_steps_is_paused_and_cancelled_at_once(self) -> None:
        between = Scenario.driven().begun().succeeds()
        assert between.pause().states == (JobState.PAUSED, StepState.PENDING)
        assert between.cancel().states == (JobState.CANCELLED, StepState.CANCELLED)

    def test_a_reply_to_the_step_before_is_still_a_duplicate(self) -> None:
        job = Scenario.driven().begun().sent().acked()
        result = job.result_event()
        job.happens(result).happens(result)
        assert job.last.verdict == "DUPLICATE"
        assert job.told() == []


class TestAWorkflowThatIsLost:
    @pytest.mark.parametrize("progress", ["submitted", "begun"])
    def test_another_one_is_started_with_what_comes_next(self, progress: str) -> None:
        job = getattr(Scenario.driven(), progress)().workflow_lost()
        (row,) = job.last.outbox
        assert row.kind is OutboxKind.START
        assert row.body["restarts"] is True
        assert row.body["next"] == job.next
        (event,) = job.last.events
        assert (event.type, event.cause) == (EventType.WORKFLOW_RESTARTED, "TERMINATED")
        assert event.by == "lost_workflows"

    def test_every_start_has_a_row_of_its_own(self) -> None:
        job = Scenario.driven().submitted().workflow_lost().workflow_lost()
        assert len(job.rows) == 3

    def test_a_job_that_has_ended_needs_none(self) -> None:
        assert Scenario.driven().submitted().cancel().workflow_lost().last is NOTHING

    def test_nor_does_one_that_no_workflow_drives(self) -> None:
        assert Scenario.new().submitted().workflow_lost().last is NOTHING
