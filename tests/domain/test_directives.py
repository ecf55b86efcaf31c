"""What goes out: one directive row per attempt, pinned, complete, and within its limit."""

import dataclasses
import json
from datetime import timedelta, timezone
from typing import get_type_hints

import pydantic_core
import pytest

from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import (
    DIRECTIVE_LIMIT,
    PROPERTY_TYPES,
    Directive,
    bus_message_id,
    directive_properties,
)
from lucius_contract.routing import DecisionSource, Mode, ModeDecision, route
from lucius_contract.states import JobState, OutboxState, StepState
from lucius_orchestrator.domain.aggregate import Job, ReplyVia, Step, StepPolicy
from lucius_orchestrator.domain.creation import StepPlan, new_job
from lucius_orchestrator.domain.decision import JobChanges, StepChanges
from lucius_orchestrator.domain.directive import ENVELOPE_ALLOWANCE, text_of_body
from lucius_orchestrator.domain.events import ERROR_MESSAGE_LIMIT, OutboxFailed, OutboxSent
from tests.domain.scenario import ARTIFACT, START, Scenario, a_plan


def test_the_body_is_a_valid_directive_of_this_attempt() -> None:
    job = Scenario.new().submitted()
    row = job.enqueued()
    directive = Directive.read(row.body)
    assert (directive.step_id, directive.attempt_no, directive.lease_id) == job.identity()
    assert directive.lease_expires_at == job.active.lease_expires_at == row.expires_at
    assert directive.payload == {"for": "OCR"}
    assert bus_message_id(directive) == row.message_id


def test_a_row_says_where_it_goes_and_how_to_answer() -> None:
    policy = StepPolicy(reply_via=ReplyVia.BUS)
    row = Scenario.new(1, policy).submitted().enqueued()
    assert row.topic == "global-bus-p14"
    assert (row.partition_key, row.service) == ("acme", "ocr")
    assert row.reply_via is ReplyVia.BUS


def test_its_properties_are_those_of_the_contract() -> None:
    row = Scenario.new().submitted().enqueued()
    properties = directive_properties(row.body, row.service)
    assert {name: type(value) for name, value in properties.items()} == PROPERTY_TYPES
    assert (properties["service"], properties["lane"]) == ("ocr", 14)


def test_artifacts_of_finished_steps_reach_the_next_directive() -> None:
    job = Scenario.new().submitted().succeeds(artifacts=(ARTIFACT,)).succeeds()
    bodies = [Directive.read(row.body) for row in job.directives]
    assert [list(body.prior_artifacts) for body in bodies] == [[], ["OCR"], ["OCR", "EMBEDDING"]]
    assert bodies[1].prior_artifacts["OCR"][0].sha256 == ARTIFACT["sha256"]


def test_a_retry_keeps_the_route_it_was_given() -> None:
    burst = ModeDecision(Mode.BURST, DecisionSource.REQUEST, "asked for")
    pinned = route("acme", "doc-9", burst)
    job = Scenario.new(route=pinned).submitted().sent().ack_timeout().retry_due()
    assert [attempt.route for attempt in job.active.attempts] == [pinned, pinned]
    assert {row.topic for row in job.directives} == {f"global-bus-p{pinned.lane}"}


def test_every_attempt_has_a_row_of_its_own_with_its_own_lease() -> None:
    job = Scenario.new().submitted().sent().ack_timeout().retry_due()
    assert list(job.rows) == ["job_1.step_01.1", "job_1.step_01.2"]
    first, second = job.directives
    assert first.lease_id != second.lease_id


def test_a_message_id_fits_the_bus() -> None:
    job = Scenario.new(job_id="job_" + "0" * 32).submitted()
    assert len(job.enqueued().message_id) <= 128


def test_times_on_the_wire_are_utc_whatever_zone_the_clock_has() -> None:
    job = Scenario.new()
    job.now = job.now.astimezone(timezone(timedelta(hours=2)))
    row = job.submitted().enqueued()
    assert Directive.read(row.body).lease_expires_at == row.expires_at


def test_heartbeats_are_due_three_times_a_lease_unless_the_protocol_says_otherwise() -> None:
    minute = timedelta(minutes=1)
    intervals = [
        Scenario.new(1, policy).submitted().last.outbox[0].body["heartbeat_seconds"]
        for policy in (StepPolicy(lease=minute), StepPolicy(lease=minute, heartbeat=minute / 6))
    ]
    assert intervals == [20, 10]


class TestPublishing:
    def test_a_directive_that_can_never_be_published_ends_its_attempt(self) -> None:
        job = Scenario.new().submitted().unpublishable()
        assert job.active.state is StepState.FAILED_RETRY
        (letter,) = job.last.dead_letters
        assert (letter.kind, letter.attempt_no, letter.code) == ("OUTBOX", 1, "DISPATCH_FAILED")

    def test_while_cancelling_even_one_that_is_too_large_cancels_the_step(self) -> None:
        job = Scenario.new().submitted().cancel().unpublishable(ErrorCode.DIRECTIVE_TOO_LARGE)
        assert job.states == (JobState.CANCELLED, StepState.CANCELLED)

    def test_what_the_bus_says_is_cut_to_a_length_that_rows_can_hold(self) -> None:
        job = Scenario.new().submitted()
        job.happens(OutboxFailed(*job.identity(), message="x" * 5000))
        assert job.active.last_error_message == "x" * ERROR_MESSAGE_LIMIT

    def test_one_that_is_too_large_is_not_tried_again(self) -> None:
        job = Scenario.new().submitted().unpublishable(ErrorCode.DIRECTIVE_TOO_LARGE)
        assert job.states == (JobState.FAILED_FINAL, StepState.FAILED_FINAL)
        assert [letter.kind for letter in job.last.dead_letters] == ["OUTBOX", "STEP"]

    def test_news_of_an_older_attempt_is_only_recorded(self) -> None:
        job = Scenario.new().submitted()
        old = job.identity()
        job.sent().ack_timeout().retry_due()
        for news in (OutboxSent(*old), OutboxFailed(*old)):
            before = job.aggregate.active
            job.happens(news)
            assert job.active.state is before.state
            assert job.last.events[0].attempt_no == 1
        assert job.rows["job_1.step_01.1"] is OutboxState.FAILED_FINAL

    def test_news_of_a_lease_that_never_was_is_only_recorded(self) -> None:
        job = Scenario.new().submitted().happens(OutboxSent("step_01", 1, "other"))
        assert job.active.state is StepState.DISPATCHING
        assert job.active.attempts[0].sent_at is None
        job.happens(OutboxFailed("step_01", 1, "other"))
        assert job.rows == {"job_1.step_01.1": OutboxState.PENDING}
        assert job.last.dead_letters == ()

    def test_news_of_a_step_that_never_was_is_only_recorded(self) -> None:
        job = Scenario.new().submitted().happens(OutboxSent("step_09", 1, "other"))
        assert [event.step_id for event in job.last.events] == ["step_09"]


class TestCreation:
    def test_a_new_job_waits_with_all_that_it_needs(self) -> None:
        aggregate = new_job(a_plan(sla=timedelta(hours=1), redrive_of="job_0"), START)
        job = aggregate.job
        assert (job.state, job.tenant_bucket) == (JobState.QUEUED, "acme#202601")
        assert job.sla_deadline == START + timedelta(hours=1)
        assert job.redrive_of == "job_0"
        assert [step.step_id for step in aggregate.steps] == ["step_01", "step_02", "step_03"]

    def test_a_directive_that_would_not_fit_is_refused_at_submission(self) -> None:
        huge = StepPlan("OCR", "ocr", {"text": "x" * DIRECTIVE_LIMIT})
        with pytest.raises(ContractError) as refused:
            new_job(a_plan()._replace(steps=(huge,)), START)
        assert refused.value.code is ErrorCode.TOO_LARGE

    def test_the_measured_size_covers_every_real_directive(self) -> None:
        names = ["OCR" + "X" * 100, "ÄÖÜ" * 40, "SIS"]
        plan = a_plan()
        steps = tuple(
            dataclasses.replace(step, step_type=name)
            for step, name in zip(plan.steps, names, strict=True)
        )
        job = Scenario(new_job(plan._replace(steps=steps), START)).submitted()
        artifacts = (ARTIFACT,) * 9
        size = len(pydantic_core.to_json(artifacts))
        job.succeeds(artifacts=artifacts, artifacts_bytes=size)
        job.succeeds(artifacts=artifacts, artifacts_bytes=size)
        for row, step, carried in zip(job.directives, job.aggregate.steps, (0, 1, 2), strict=True):
            measured = step.directive_bytes + carried * size
            real = len(pydantic_core.to_json(row.body))
            assert real <= measured - ENVELOPE_ALLOWANCE + 16  # digits of a fraction of a second


@pytest.mark.parametrize(("changes", "row"), [(JobChanges, Job), (StepChanges, Step)])
def test_changes_name_fields_of_their_row_with_the_same_types(
    changes: type, row: type[Job] | type[Step]
) -> None:
    fields = get_type_hints(row)
    assert {field.name for field in dataclasses.fields(row)} >= set(get_type_hints(changes))
    for name, kind in get_type_hints(changes).items():
        assert kind == fields[name], name


def test_the_text_of_a_directive_is_its_members_however_often_it_is_asked_for() -> None:
    body = Scenario.new().submitted().enqueued().body
    first = text_of_body(body)
    assert json.loads(first) == dict(body)
    assert text_of_body(body) is first
    assert text_of_body(json.loads(first)) == first
