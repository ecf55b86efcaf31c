"""What a workflow has to do next, and what it is told."""

from datetime import datetime, timedelta

import pytest

from lucius_contract.messages import Outcome
from lucius_contract.states import JobState, StepState
from lucius_contract.timeouts import RECOVERY_GRACE
from lucius_orchestrator.domain.aggregate import StepPolicy, evolve
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import OutboxKind, WorkflowRow, apply, merged_decision
from lucius_orchestrator.domain.directive import on_the_wire
from lucius_orchestrator.domain.draft import Fresh
from lucius_orchestrator.domain.events import (
    AckReceived,
    Event,
    HeartbeatReceived,
    PauseRequested,
    WorkflowLost,
)
from lucius_orchestrator.domain.timers import Due, TimerKind, armed, next_due
from tests.domain.scenario import START, TENANT, Scenario, later

RETRY, FINAL = Outcome.FAILED_RETRY, Outcome.FAILED_FINAL
LEASE = timedelta(minutes=15)


def working(steps: int = 3, policy: StepPolicy | None = None) -> Scenario:
    return Scenario.driven(steps, policy).begun().sent().acked()


def timers(job: Scenario) -> dict[str, str]:
    return {timer["event"]: timer["deadline"] for timer in job.next["timers"]}


def text(moment: datetime | None) -> str:
    assert moment is not None
    return on_the_wire(moment)


def signals(job: Scenario) -> list[str]:
    return [row.body["signal"] for row in job.told()]


class TestWhatComesNext:
    def test_of_a_new_job_it_is_the_first_attempt(self) -> None:
        job = Scenario.driven().submitted()
        assert job.next == {
            "action": "OPEN",
            "state": "QUEUED",
            "seq": 0,
            "stepId": "step_01",
            "attempt_no": 1,
            "lease_id": None,
            "lease_expires_at": None,
            "lease_seconds": job.active.policy.dispatch_lease().total_seconds(),
            "at": None,
            "timers": [{"event": "SLA_EXCEEDED", "deadline": text(job.aggregate.job.sla_deadline)}],
        }

    def test_of_an_attempt_that_was_opened_it_is_to_publish_it(self) -> None:
        job = Scenario.driven().begun()
        assert job.next["action"] == "PUBLISH"
        assert (job.next["stepId"], job.next["attempt_no"], job.next["lease_id"]) == job.identity()
        assert job.next["lease_expires_at"] == text(job.active.lease_expires_at)
        assert list(timers(job)) == ["SLA_EXCEEDED"]

    def test_what_was_published_has_a_deadline_for_its_ack(self) -> None:
        job = Scenario.driven().begun().sent()
        assert job.next["action"] == "WAIT"
        assert timers(job)["ACK_TIMEOUT"] == text(job.active.ack_deadline)
        assert list(timers(job)) == ["SLA_EXCEEDED", "ACK_TIMEOUT"]

    def test_what_is_worked_on_has_a_lease_and_a_ceiling(self) -> None:
        job = working()
        assert job.next["action"] == "WAIT"
        assert timers(job) == {
            "SLA_EXCEEDED": text(job.aggregate.job.sla_deadline),
            "LEASE_EXPIRED": text(job.active.lease_expires_at),
            "ATTEMPT_TIMEOUT": text(job.active.ceiling_at),
        }

    def test_a_failure_is_followed_by_the_next_attempt_in_its_time(self) -> None:
        job = working().result(RETRY)
        assert (job.next["action"], job.next["attempt_no"]) == ("OPEN", 2)
        assert job.next["lease_id"] is None
        assert job.next["at"] == text(job.active.next_attempt_at)

    def test_a_success_is_followed_by_the_next_step_at_once(self) -> None:
        job = working().result()
        assert (job.next["action"], job.next["stepId"]) == ("OPEN", "step_02")
        assert (job.next["attempt_no"], job.next["at"]) == (1, None)

    @pytest.mark.parametrize("failed", [True, False])
    def test_a_paused_job_waits_for_nothing_but_its_sla(self, failed: bool) -> None:
        job = working().pause().result(RETRY if failed else Outcome.SUCCEEDED)
        assert job.aggregate.job.state is JobState.PAUSED
        assert job.next["action"] == "WAIT"
        assert list(timers(job)) == ["SLA_EXCEEDED"]

    @pytest.mark.parametrize("command", ["pause", "cancel"])
    def test_a_step_in_flight_goes_on_whatever_was_asked_of_its_job(self, command: str) -> None:
        job = Scenario.driven().begun()
        getattr(job, command)()
        assert job.next["action"] == "PUBLISH"
        job.sent()
        assert list(timers(job)) == ["SLA_EXCEEDED", "ACK_TIMEOUT"]

    def test_a_job_that_has_ended_is_the_end(self) -> None:
        job = working(1).result()
        assert job.next["action"] == "END"
        assert job.next["timers"] == []

    def test_the_lease_of_an_attempt_is_as_its_step_says(self) -> None:
        policy = StepPolicy(ack_timeout=timedelta(seconds=7), dispatch_backoff=())
        job = Scenario.driven(1, policy).submitted()
        assert job.next["lease_seconds"] == (LEASE + timedelta(seconds=7)).total_seconds()


class TestSignals:
    @pytest.mark.parametrize(
        ("happens", "signal"),
        [
            ("acked", "step_ack"),
            ("heartbeat", "step_heartbeat"),
            ("result", "step_result"),
            ("pause", "pause"),
            ("cancel", "cancel"),
        ],
    )
    def test_what_the_workflow_did_not_ask_for_is_told_in_the_same_commit(
        self, happens: str, signal: str
    ) -> None:
        job = Scenario.driven().begun().sent()
        getattr(job, happens)()
        (row,) = job.last.outbox
        assert (row.kind, row.body["signal"]) == (OutboxKind.SIGNAL, signal)
        assert row.body["next"] == job.next
        assert row.created_at == job.now

    def test_a_resume_is_told(self) -> None:
        assert signals(Scenario.driven().submitted().pause().resume()) == ["resume"]

    @pytest.mark.parametrize(
        "happens", ["sent", "unpublishable", "publish_delayed", "sla_exceeded", "workflow_lost"]
    )
    def test_what_it_asked_for_is_not(self, happens: str) -> None:
        job = Scenario.driven().begun()
        getattr(job, happens)()
        assert job.last.writes
        assert job.told() == []

    @pytest.mark.parametrize("timer", ["lease_expired", "ceiling"])
    def test_nor_are_the_deadlines_that_it_reports(self, timer: str) -> None:
        job = working()
        getattr(job, timer)()
        assert job.active.state is StepState.FAILED_RETRY
        assert job.told() == []

    def test_the_end_by_an_sla_that_another_noticed_is_told(self) -> None:
        job = working().sla_exceeded(by="job_sla")
        assert signals(job) == ["job_moved"]
        assert job.told()[0].body["next"]["action"] == "END"

    def test_what_changes_nothing_for_it_is_not_told(self) -> None:
        job = working()
        first = job.identity()
        assert signals(job.acked()) == []
        job.lease_expired().opened()
        assert signals(job.happens(AckReceived(*first, TENANT))) == []
        assert signals(job.happens(AckReceived(*job.identity(), "other"))) == []
        assert job.last.refusal is not None
        assert signals(job.cancel()) == ["cancel"]
        assert signals(job.cancel()) == []
        assert signals(job.pause()) == []

    @pytest.mark.parametrize("reply", ["acked", "heartbeat", "result"])
    def test_a_late_reply_to_an_attempt_that_was_given_up_is_told(self, reply: str) -> None:
        job = Scenario.driven().begun().sent().ack_timeout()
        getattr(job, reply)()
        assert len(job.told()) == 1
        if reply != "result":
            assert job.next["action"] == "WAIT"

    def test_a_late_failure_moves_the_next_attempt_and_is_told(self) -> None:
        job = Scenario.driven().begun().sent().ack_timeout()
        assert signals(job.result(RETRY)) == ["step_result"]

    def test_a_signal_names_the_attempt_and_how_it_ended(self) -> None:
        job = working()
        step_id, attempt_no, lease_id = job.identity()
        (row,) = job.result(FINAL).told()
        assert row.body == {
            "signal": "step_result",
            "jobId": "job_1",
            "next": job.next,
            "stepId": step_id,
            "attempt_no": attempt_no,
            "lease_id": lease_id,
            "status": "FAILED_FINAL",
            "error": {"code": "ocr.BROKEN", "message": "it broke"},
        }

    def test_a_success_has_no_error_and_a_failure_may_have_no_words(self) -> None:
        (row,) = working().result().told()
        assert row.body["status"] == "SUCCEEDED"
        assert "error" not in row.body
        (row,) = working().result(FINAL, error_message=None).told()
        assert row.body["error"] == {"code": "ocr.BROKEN", "message": ""}

    def test_a_command_names_no_attempt(self) -> None:
        (row,) = working().pause().told()
        assert set(row.body) == {"signal", "jobId", "next"}

    def test_a_job_that_no_workflow_drives_sends_none(self) -> None:
        job = Scenario.new().submitted().sent().acked()
        for happens in (job.heartbeat, job.pause, job.resume, job.result):
            happens()
            assert job.told() == []


class TestHeartbeats:
    def test_one_in_each_third_of_a_lease_is_told(self) -> None:
        job = working(1)
        told = []
        for _ in range(120):
            job.now += timedelta(seconds=14)
            told += job.heartbeat().told()
        thirds = [(row.created_at - START) // (LEASE / 3) for row in told]
        assert thirds == [1, 2, 3, 4, 5, 6]

    def test_none_is_told_soon_after_the_ack(self) -> None:
        assert working().heartbeat().told() == []

    def test_what_is_told_is_never_a_third_of_a_lease_behind(self) -> None:
        job = working(1)
        told = job.next
        for seconds in (200, 90, 250, 10, 299, 301, 5, 600):
            job.happens(HeartbeatReceived(*job.identity(), TENANT), timedelta(seconds=seconds))
            for row in job.told():
                told = later(told, row.body["next"])
            ends = datetime.fromisoformat(told["lease_expires_at"] or "")
            assert job.active.lease_expires_at is not None
            assert timedelta() <= job.active.lease_expires_at - ends < LEASE / 3

    @pytest.mark.parametrize("lease", [timedelta(), timedelta(microseconds=1)])
    def test_a_lease_without_thirds_tells_each(self, lease: timedelta) -> None:
        job = working(1, StepPolicy(lease=lease))
        assert signals(job.heartbeat()) == signals(job.heartbeat()) == ["step_heartbeat"]

    def test_one_that_a_slow_clock_decides_takes_nothing_back(self) -> None:
        job = working().heartbeat()
        ends = job.active.lease_expires_at
        job.happens(HeartbeatReceived(*job.identity(), TENANT), timedelta(seconds=-2))
        assert job.active.lease_expires_at == ends

    def test_signals_of_heartbeats_have_rows_of_their_own(self) -> None:
        job = working(1)
        for _ in range(3):
            job.now += LEASE / 2
            assert signals(job.heartbeat()) == ["step_heartbeat"]
        assert len([name for name in job.rows if ".signal." in name]) == 4


class TestStarts:
    def test_the_first_one_says_what_the_workflow_is_for(self) -> None:
        job = Scenario.driven().submitted()
        (row,) = job.last.outbox
        assert isinstance(row, WorkflowRow)
        assert (row.job_id, row.created_at) == ("job_1", job.now)
        assert row.body == {
            "jobId": "job_1",
            "tenant_id": TENANT,
            "request_type": "OCR_EMBEDDING_SIS",
            "protocol_id": "ocr_embedding_sis",
            "correlation_id": "corr-1",
            "restarts": False,
            "next": job.next,
        }


class TestMergedDecisions:
    def merged(self, job: Scenario, *events: Event) -> list[WorkflowRow]:
        decisions, aggregate = [], job.aggregate
        for event in events:
            decisions.append(decide(aggregate, event, job.now, Fresh("e" * 32)))
            aggregate = apply(aggregate, decisions[-1])
        merged = merged_decision(decisions)
        job.aggregate = apply(job.aggregate, merged)
        return [row for row in merged.outbox if isinstance(row, WorkflowRow)]

    def test_of_their_signals_the_last_one_says_all(self) -> None:
        job = Scenario.driven().begun().sent()
        ack = AckReceived(*job.identity(), TENANT)
        (row,) = self.merged(job, ack, job.result_event(), PauseRequested())
        assert row.body["signal"] == "pause"
        assert row.body["next"] == job.next

    def test_a_signal_is_kept_when_nothing_is_told_after_it(self) -> None:
        job = Scenario.driven().begun().sent()
        ack = AckReceived(*job.identity(), TENANT)
        rows = self.merged(job, ack, HeartbeatReceived(*job.identity(), TENANT), ack)
        assert [row.body["signal"] for row in rows] == ["step_ack"]

    def test_starts_are_kept_beside_it(self) -> None:
        job = working()
        rows = self.merged(job, PauseRequested(), WorkflowLost("FAILED"), job.result_event())
        assert [row.kind for row in rows] == [OutboxKind.START, OutboxKind.SIGNAL]
        assert rows[-1].body["next"] == job.next

    def test_directives_are_kept_beside_it(self) -> None:
        job = Scenario.driven().submitted()
        opening = job.opening()
        decisions = []
        aggregate = job.aggregate
        for event in (opening, PauseRequested()):
            decisions.append(decide(aggregate, event, job.now, Fresh("e" * 32)))
            aggregate = apply(aggregate, decisions[-1])
        kinds = [row.kind for row in merged_decision(decisions).outbox]
        assert kinds == [OutboxKind.INVOCATION, OutboxKind.SIGNAL]


class TestTheWatch:
    """A job that Temporal drives has one timer, by which a workflow that is lost is noticed."""

    def watch(self, job: Scenario) -> datetime:
        due = next_due(job.aggregate)
        assert due is not None
        assert due.kind is TimerKind.WORKFLOW
        assert list(armed(job.aggregate)) == []
        return due.at - RECOVERY_GRACE

    def test_it_follows_the_workflow_at_a_grace(self) -> None:
        job = Scenario.driven().submitted()
        assert next_due(job.aggregate) == Due(START + RECOVERY_GRACE, TimerKind.WORKFLOW)
        job.opened()
        assert self.watch(job) == job.active.stale_at
        job.sent()
        assert self.watch(job) == job.active.ack_deadline
        job.acked()
        assert self.watch(job) == job.active.lease_expires_at
        job.result(RETRY)
        assert self.watch(job) == job.active.next_attempt_at

    def test_it_follows_the_ceiling_and_the_sla_where_those_are_first(self) -> None:
        job = working(1, StepPolicy(ceiling=timedelta(minutes=1)))
        assert self.watch(job) == job.active.ceiling_at
        job = Scenario.driven(1, sla=timedelta(minutes=2)).begun().sent().acked()
        assert self.watch(job) == job.aggregate.job.sla_deadline

    @pytest.mark.parametrize("succeeded", [True, False])
    def test_a_paused_job_is_left_alone_until_its_sla(self, succeeded: bool) -> None:
        job = working().pause().result(Outcome.SUCCEEDED if succeeded else RETRY)
        assert job.aggregate.job.state is JobState.PAUSED
        assert self.watch(job) == job.aggregate.job.sla_deadline

    def test_a_step_that_waits_to_be_opened_is_due_at_once(self) -> None:
        job = working().result()
        assert self.watch(job) == job.now
        assert self.watch(job.pause().resume()) == job.now

    def test_a_workflow_that_was_started_again_is_given_the_grace_too(self) -> None:
        job = working()
        due = next_due(job.aggregate)
        assert due is not None
        job.now = due.at
        assert self.watch(job.workflow_lost()) == job.now

    @pytest.mark.parametrize("command", ["pause", "cancel"])
    def test_a_step_in_flight_is_watched_whatever_was_asked_of_its_job(self, command: str) -> None:
        job = working()
        getattr(job, command)()
        assert self.watch(job) == job.active.lease_expires_at

    def test_a_job_that_has_ended_has_none(self) -> None:
        assert next_due(working(1).result().aggregate) is None

    def test_a_row_that_lost_its_deadline_is_still_under_the_sla(self) -> None:
        job = Scenario.driven(1).begun().sent()
        damaged = evolve(job.active, {"ack_deadline": None})
        job.aggregate = type(job.aggregate)(job.aggregate.job, (damaged,))
        assert self.watch(job) == job.aggregate.job.sla_deadline
        assert list(timers(job)) == ["SLA_EXCEEDED"]
