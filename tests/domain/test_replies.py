"""Replies: gating by attempt and lease, verdicts in their order, what is implied, what is kept."""

import json
from datetime import timedelta
from typing import Any

import pytest

from lucius_contract.audit import EventType, Verdict
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Outcome, parse_reply
from lucius_contract.states import JobState, StepState
from lucius_orchestrator.domain.draft import RECORDED_SINGLY
from lucius_orchestrator.domain.events import (
    ERROR_MESSAGE_LIMIT,
    AckReceived,
    HeartbeatReceived,
    ResultReceived,
    from_reply,
)
from tests.domain.scenario import ARTIFACT, TENANT, Scenario

RETRY = Outcome.FAILED_RETRY


def working(steps: int = 3) -> Scenario:
    return Scenario.new(steps).submitted().sent().acked()


def hops(job: Scenario) -> list[tuple[Any, Any, bool]]:
    return [(e.source, e.target, e.implied) for e in job.last.events if e.step_id == "step_01"]


class TestGating:
    def test_a_reply_with_another_lease_is_stale(self) -> None:
        job = working().happens(AckReceived("step_01", 1, "not-the-lease", TENANT))
        assert job.verdict() is Verdict.STALE_ATTEMPT

    def test_a_reply_of_an_earlier_attempt_is_stale(self) -> None:
        job = working()
        old = job.result_event()
        job.lease_expired().retry_due().happens(old)
        assert job.verdict() is Verdict.STALE_ATTEMPT
        assert job.active.state is StepState.DISPATCHING

    def test_a_reply_of_an_attempt_that_was_never_made_is_stale(self) -> None:
        job = working().happens(AckReceived("step_01", 7, "lease", TENANT))
        assert job.verdict() is Verdict.STALE_ATTEMPT
        assert job.active.stray_replies == 1

    def test_a_reply_to_a_step_that_has_not_begun_is_stale(self) -> None:
        job = working().happens(AckReceived("step_03", 1, "lease", TENANT))
        assert job.verdict() is Verdict.STALE_ATTEMPT

    def test_a_result_after_the_job_ended_without_one_is_stale(self) -> None:
        job = working()
        late = job.result_event()
        job.sla_exceeded().happens(late)
        assert job.verdict() is Verdict.STALE_ATTEMPT
        assert job.aggregate.job.state is JobState.FAILED_FINAL

    def test_a_reply_of_another_tenant_is_refused_as_if_there_were_no_job(self) -> None:
        job = working()
        job.happens(AckReceived(*job.identity(), "someone-else"))
        assert job.last.refusal is not None
        assert job.last.refusal.code is ErrorCode.JOB_NOT_FOUND
        assert job.verdict() is None

    def test_a_reply_to_a_step_that_is_not_the_jobs_is_refused(self) -> None:
        job = working().happens(AckReceived("step_09", 1, "lease", TENANT))
        assert job.last.refusal is not None
        assert job.last.refusal.code is ErrorCode.JOB_NOT_FOUND


class TestOneResultPerAttempt:
    def test_the_same_result_again_is_a_duplicate(self) -> None:
        job = working()
        result = job.result_event(digest="same")
        job.happens(result).happens(result)
        assert job.verdict() is Verdict.DUPLICATE
        assert job.aggregate.job.attempts_total == 2

    def test_another_result_for_the_attempt_is_a_conflict(self) -> None:
        job = working()
        other = job.result_event(digest="other")
        job.result(digest="first").happens(other)
        assert job.verdict() is Verdict.RESULT_CONFLICT

    @pytest.mark.parametrize("ending", ["succeeds", "cancel", "sla_exceeded"])
    def test_the_verdict_stays_whatever_the_job_has_become(self, ending: str) -> None:
        job = working(2)
        result, other = job.result_event(digest="same"), job.result_event(digest="other")
        job.happens(result)
        getattr(job, ending)()
        assert job.happens(result).verdict() is Verdict.DUPLICATE
        assert job.happens(other).verdict() is Verdict.RESULT_CONFLICT

    def test_it_stays_after_a_further_attempt(self) -> None:
        job = working()
        first = job.result_event(RETRY, digest="first")
        job.happens(first).retry_due().sent().acked()
        assert job.happens(first).verdict() is Verdict.DUPLICATE
        assert job.active.state is StepState.IN_PROGRESS

    def test_ack_and_heartbeat_after_the_result_are_duplicates(self) -> None:
        job = working()
        identity = job.identity()
        job.result()
        assert job.happens(AckReceived(*identity, TENANT)).verdict() is Verdict.DUPLICATE
        assert job.happens(HeartbeatReceived(*identity, TENANT)).verdict() is Verdict.DUPLICATE

    def test_a_second_ack_is_a_duplicate_and_moves_no_deadline(self) -> None:
        job = working()
        before = job.active.lease_expires_at
        job.acked()
        assert job.verdict() is Verdict.DUPLICATE
        assert job.active.lease_expires_at == before


class TestImplied:
    def test_an_ack_implies_that_the_directive_was_sent(self) -> None:
        job = Scenario.new().submitted().acked()
        assert hops(job) == [
            ("DISPATCHING", "AWAITING_ACK", True),
            ("AWAITING_ACK", "IN_PROGRESS", False),
        ]

    def test_a_heartbeat_implies_the_ack(self) -> None:
        job = Scenario.new().submitted().sent().heartbeat()
        assert hops(job) == [("AWAITING_ACK", "IN_PROGRESS", True)]
        assert job.active.attempts[0].acknowledged_at == job.now
        assert job.acked().verdict() is Verdict.DUPLICATE

    def test_a_result_implies_all_that_came_before(self) -> None:
        job = Scenario.new().submitted().result()
        assert hops(job) == [
            ("DISPATCHING", "AWAITING_ACK", True),
            ("AWAITING_ACK", "IN_PROGRESS", True),
            ("IN_PROGRESS", "SUCCEEDED", False),
        ]
        assert job.aggregate.job.state is JobState.IN_PROGRESS

    def test_a_directive_marked_sent_after_its_ack_only_completes_the_history(self) -> None:
        job = Scenario.new().submitted().acked().sent()
        assert job.active.state is StepState.IN_PROGRESS
        assert job.active.attempts[0].sent_at == job.now
        assert [e.type for e in job.last.events] == [EventType.OUTBOX_RECORDED]


class TestLateReplies:
    """The attempt was given up, but its message was late, not lost."""

    @pytest.mark.parametrize("given_up", ["ack_timeout", "unpublishable"])
    @pytest.mark.parametrize("reply", ["acked", "heartbeat", "result"])
    def test_a_late_reply_revives_the_attempt(self, given_up: str, reply: str) -> None:
        job = Scenario.new().submitted()
        if given_up == "ack_timeout":
            job.sent()
        getattr(job, given_up)()
        getattr(job, reply)()
        assert job.verdict() is Verdict.APPLIED
        first = job.aggregate.steps[0]
        assert first.attempt_no == 1
        assert first.next_attempt_at is None
        assert first.attempts[0].error_code is None

    def test_a_revived_attempt_has_a_new_lease_period(self) -> None:
        job = Scenario.new().submitted().sent().ack_timeout().acked()
        assert job.active.lease_expires_at == job.now + job.active.policy.lease

    def test_after_a_lease_expiry_the_attempt_takes_no_reply(self) -> None:
        assert working().lease_expired().result().verdict() is Verdict.STALE_ATTEMPT

    def test_an_ack_timeout_that_a_service_reports_itself_does_not_reopen_the_attempt(self) -> None:
        job = working().result(RETRY, error_code="ACK_TIMEOUT")
        assert job.acked().verdict() is Verdict.DUPLICATE
        assert job.active.state is StepState.FAILED_RETRY

    @pytest.mark.parametrize("command", ["pause", "cancel"])
    def test_a_job_that_no_longer_advances_takes_no_late_reply(self, command: str) -> None:
        job = Scenario.new().submitted().sent().ack_timeout()
        result = job.result_event()
        getattr(job, command)()
        assert job.happens(result).verdict() is Verdict.STALE_ATTEMPT

    def test_a_resumed_job_takes_it_again(self) -> None:
        job = Scenario.new().submitted().sent().ack_timeout().pause().resume()
        assert job.result().verdict() is Verdict.APPLIED

    def test_a_reply_after_the_lease_ended_counts_until_the_expiry_is_committed(self) -> None:
        job = working()
        job.now += job.active.policy.lease * 2
        assert job.result().verdict() is Verdict.APPLIED


class TestAnswers:
    def test_a_heartbeat_extends_the_lease_and_is_no_event(self) -> None:
        job = working()
        job.now += timedelta(minutes=5)
        job.heartbeat()
        assert job.active.lease_expires_at == job.now + job.active.policy.lease
        assert job.last.events == ()
        assert job.last.reply is not None
        assert job.last.reply.lease_expires_at == job.active.lease_expires_at

    def test_heartbeats_are_never_duplicates(self) -> None:
        job = working()
        assert [job.heartbeat().verdict() for _ in range(3)] == [Verdict.APPLIED] * 3

    def test_no_heartbeat_moves_the_ceiling(self) -> None:
        job = working()
        before = job.active.ceiling_at
        job.heartbeat()
        assert job.active.ceiling_at == before

    def test_an_old_attempt_is_not_told_the_lease_of_the_new_one(self) -> None:
        job = working()
        old = job.result_event(RETRY)
        job.happens(old).retry_due().sent().acked()
        told = [job.happens(old).last.reply, job.acked().last.reply]
        assert [a.lease_expires_at for a in told if a] == [None, job.active.lease_expires_at]

    def test_a_service_is_told_that_cancel_was_requested(self) -> None:
        job = working()
        told = [job.heartbeat().last.reply, job.cancel().heartbeat().last.reply]
        assert [answer.cancel_requested for answer in told if answer] == [False, True]


class TestRecording:
    def test_replies_that_change_nothing_are_events(self) -> None:
        job = working().acked()
        (event,) = job.last.events
        assert (event.type, event.detail) == (EventType.REPLY_IGNORED, Verdict.DUPLICATE)
        assert job.aggregate.job.seq == event.seq

    def test_after_fifty_they_are_counted(self) -> None:
        job = working()
        for _ in range(RECORDED_SINGLY):
            assert len(job.acked().last.events) == 1
        assert job.acked().last.events == ()
        assert job.active.attempts[0].ignored_replies == RECORDED_SINGLY + 1
        assert job.verdict() is Verdict.DUPLICATE

    def test_no_event_shows_the_lease(self) -> None:
        job = working()
        lease = job.active.lease_id
        job.acked().result().result()
        assert lease is not None
        assert lease not in str([d.events for d in job.decisions])


class TestResults:
    def test_the_history_keeps_times_outcome_and_digest(self) -> None:
        job = working()
        acked = job.now
        job.result(digest="the-digest")
        (attempt,) = job.aggregate.steps[0].attempts
        assert attempt.acknowledged_at == acked
        assert (attempt.completed_at, attempt.outcome) == (job.now, StepState.SUCCEEDED)
        assert attempt.result_digest == "the-digest"

    def test_the_last_result_names_the_final_output(self) -> None:
        job = working(1).result(output_ref={"uri": "az://outbox/real.json"})
        assert job.aggregate.job.final_output == "az://outbox/real.json"
        assert job.active.result_ref == {"uri": "az://outbox/real.json"}

    def test_a_job_that_published_nothing_has_no_final_output(self) -> None:
        job = working(1).result().aggregate.job
        assert (job.state, job.final_output) == (JobState.SUCCEEDED, None)

    def test_a_final_failure_is_the_jobs_error_and_a_dead_letter(self) -> None:
        job = working().result(Outcome.FAILED_FINAL)
        assert job.aggregate.job.error_code == "ocr.BROKEN"
        (letter,) = job.last.dead_letters
        assert (letter.kind, letter.step_id, letter.code) == ("STEP", "step_01", "ocr.BROKEN")

    def test_a_failure_without_error_gets_a_code(self) -> None:
        job = working().result(Outcome.FAILED_FINAL, error_code=None)
        assert job.aggregate.job.error_code == ErrorCode.INTERNAL

    def test_a_cancelled_result_outside_a_cancel_is_a_failure(self) -> None:
        job = working().result(Outcome.FAILED_FINAL, error_code="CANCELLED")
        assert job.states == (JobState.FAILED_FINAL, StepState.FAILED_FINAL)

    def test_a_cancelled_result_during_a_cancel_is_no_failure(self) -> None:
        job = working().cancel().result(Outcome.FAILED_FINAL, error_code="CANCELLED")
        assert job.active.state is StepState.CANCELLED
        assert job.last.dead_letters == ()

    def test_artifacts_that_do_not_fit_the_next_directive_fail_the_step(self) -> None:
        job = working().result(artifacts=(ARTIFACT,), artifacts_bytes=190 * 1024)
        assert job.states == (JobState.FAILED_FINAL, StepState.FAILED_FINAL)
        assert job.aggregate.job.error_code == ErrorCode.DIRECTIVE_TOO_LARGE
        assert job.verdict() is Verdict.APPLIED

    def test_all_steps_before_count_towards_that_limit(self) -> None:
        job = working().result(artifacts_bytes=100 * 1024).sent().acked()
        job.result(artifacts_bytes=100 * 1024)
        assert job.aggregate.job.error_code == ErrorCode.DIRECTIVE_TOO_LARGE

    def test_the_last_step_may_name_what_fits_its_own_result(self) -> None:
        job = working(1).result(artifacts_bytes=190 * 1024)
        assert job.aggregate.job.state is JobState.SUCCEEDED


class TestFromTheWire:
    def message(self, **members: Any) -> bytes:
        identity = {"jobId": "job_1", "stepId": "step_01", "tenant_id": TENANT}
        rest = {"attempt_no": 1, "lease_id": "l", "timestamp": "2026-01-27T10:00:00Z"}
        return json.dumps(identity | rest | members).encode()

    def test_ack_and_heartbeat(self) -> None:
        identity = ("step_01", 1, "l", TENANT)
        ack = from_reply(parse_reply(self.message(type="ACK")))
        heartbeat = from_reply(parse_reply(self.message(type="HEARTBEAT")))
        assert (ack, heartbeat) == (AckReceived(*identity), HeartbeatReceived(*identity))

    def test_ack_and_heartbeat_bring_the_capacity_of_the_instance(self) -> None:
        stated = {"instance_id": "instance-1", "slots": 8}
        for type in ("ACK", "HEARTBEAT"):
            event = from_reply(parse_reply(self.message(type=type, capacity=stated)))
            assert isinstance(event, AckReceived | HeartbeatReceived)
            assert event.capacity == ("instance-1", 8)

    @pytest.mark.parametrize("kind", [AckReceived, HeartbeatReceived])
    def test_a_capacity_decides_nothing(self, kind: type[AckReceived | HeartbeatReceived]) -> None:
        plain, stating = Scenario.new().submitted().sent(), Scenario.new().submitted().sent()
        identity = (*plain.identity(), TENANT)
        plain.happens(kind(*identity))
        stating.happens(kind(*identity, capacity=("instance-1", 8)))
        assert stating.decisions == plain.decisions
        assert stating.aggregate == plain.aggregate

    def test_a_second_ack_by_another_instance_is_a_duplicate(self) -> None:
        job = Scenario.new().submitted().sent()
        identity = (*job.identity(), TENANT)
        job.happens(AckReceived(*identity, capacity=("instance-1", 8)))
        job.happens(AckReceived(*identity, capacity=("instance-2", 2)))
        assert job.verdict() is Verdict.DUPLICATE

    def test_a_result_brings_its_artifacts_and_their_size(self) -> None:
        raw = self.message(
            type="RESULT",
            status="SUCCEEDED",
            artifacts=[ARTIFACT],
            output_ref={"uri": "az://outbox/a.json"},
        )
        event = from_reply(parse_reply(raw))
        assert isinstance(event, ResultReceived)
        assert event.artifacts == (ARTIFACT,)
        assert event.artifacts_bytes == len(json.dumps([ARTIFACT], separators=(",", ":")))
        assert event.output_ref == {"uri": "az://outbox/a.json"}

    def test_a_long_error_message_is_cut(self) -> None:
        error = {"code": "ocr.BROKEN", "message": "x" * 5000}
        event = from_reply(parse_reply(self.message(type="RESULT", status="FAILED", error=error)))
        assert isinstance(event, ResultReceived)
        assert event.error_message == "x" * ERROR_MESSAGE_LIMIT

    def test_equal_content_has_one_digest_and_other_content_another(self) -> None:
        one = parse_reply(self.message(type="RESULT", status="SUCCEEDED"))
        same = parse_reply(self.message(status="SUCCEEDED", type="RESULT", error=None))
        other = parse_reply(self.message(type="RESULT", status="SUCCEEDED", x_new=1))
        digests = [getattr(from_reply(reply), "digest", None) for reply in (one, same, other)]
        assert digests[0] == digests[1] != digests[2]
