"""Directives that wait, come late, or are not wanted any more."""

from datetime import timedelta

import pytest

from lucius_contract.audit import DeadLetterKind, EventType
from lucius_contract.states import OutboxState, StepState
from lucius_orchestrator.domain.aggregate import evolve
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import Decision, apply, merged_decision
from lucius_orchestrator.domain.draft import Fresh
from lucius_orchestrator.domain.events import (
    AckReceived,
    Event,
    HeartbeatReceived,
    OutboxFailed,
    OutboxSent,
    OutboxSuperseded,
    PublishDelayed,
)
from lucius_orchestrator.domain.timers import TimerKind, armed, deadlines, kind_of, next_due
from tests.domain.scenario import TENANT, Scenario


def decided(job: Scenario, event: Event) -> Decision:
    return decide(job.aggregate, event, job.now, Fresh("f" * 32))


class TestADirectiveThatComesLate:
    def test_it_starts_its_lease_anew_and_spends_no_attempt(self) -> None:
        job = Scenario.new().submitted()
        first = job.active.lease_expires_at
        job.now += timedelta(hours=3)
        job.publish_delayed()
        assert job.active.lease_expires_at == job.now + job.active.policy.dispatch_lease()
        assert job.active.lease_expires_at != first
        assert (job.active.attempt_no, job.active.state) == (1, StepState.DISPATCHING)

    @pytest.mark.parametrize("lease_id", ["another", None])
    def test_it_is_nothing_once_the_directive_is_out_or_of_another_lease(
        self, lease_id: str | None
    ) -> None:
        job = Scenario.new().submitted()
        if lease_id is None:
            job.sent()
        step_id, attempt_no, current = job.identity()
        assert not decided(job, PublishDelayed(step_id, attempt_no, lease_id or current)).writes


class TestADirectiveThatIsNotWanted:
    def test_its_row_ends_and_the_history_says_so(self) -> None:
        job = Scenario.new().submitted()
        identity = job.identity()
        job.sla_exceeded()
        decision = decided(job, OutboxSuperseded(*identity))
        (mark,) = decision.marks
        (event,) = decision.events
        assert mark.state is OutboxState.SUPERSEDED
        assert (event.type, event.cause) == (EventType.OUTBOX_RECORDED, OutboxState.SUPERSEDED)

    def test_one_that_is_wanted_after_all_is_left_alone(self) -> None:
        job = Scenario.new().submitted()
        assert not decided(job, OutboxSuperseded(*job.identity())).writes

    def test_one_that_was_never_made_is_left_alone(self) -> None:
        job = Scenario.new().submitted()
        assert not decided(job, OutboxSuperseded("step_01", 7, "x")).writes


def test_a_directive_that_failed_twice_is_one_dead_letter() -> None:
    job = Scenario.new().submitted()
    failed = OutboxFailed(*job.identity(), message="refused")
    job.happens(failed)
    assert [letter.kind for letter in job.last.dead_letters] == [DeadLetterKind.OUTBOX]
    job.happens(failed)
    assert job.last.dead_letters == ()


class TestStaleDispatch:
    def test_it_is_looked_after_again_one_such_time_later(self) -> None:
        job = Scenario.new().submitted()
        job.stale(OutboxState.PENDING)
        woken = job.now
        assert [event.type for event in job.last.events] == [EventType.DISPATCH_WOKEN]
        due = next_due(job.aggregate)
        assert due is not None
        assert due.kind is TimerKind.DISPATCH
        assert due.at == woken + job.active.policy.stale_dispatch

    def test_of_two_who_notice_only_one_acts(self) -> None:
        job = Scenario.new().submitted()
        (timer,) = (t for t in armed(job.aggregate) if kind_of(t) is TimerKind.DISPATCH)
        job.now = timer.deadline
        assert decided(job, timer).writes
        job.happens(timer)
        assert not decided(job, timer).writes


def test_a_row_without_an_attempt_has_its_deadlines_all_the_same() -> None:
    job = Scenario.new()
    damaged = evolve(job.active, {"state": StepState.DISPATCHING})
    aggregate = apply(job.aggregate, merged_decision([]))
    broken = type(aggregate)(aggregate.job, (damaged, *aggregate.steps[1:]))
    assert [kind_of(timer) for timer in armed(broken)] == [TimerKind.SLA, TimerKind.DISPATCH]


def test_a_deadline_that_is_missing_is_none() -> None:
    job = Scenario.new().submitted().sent()
    damaged = evolve(job.active, {"ack_deadline": None})
    broken = type(job.aggregate)(job.aggregate.job, (damaged, *job.aggregate.steps[1:]))
    assert [due.kind for due in deadlines(broken)] == [TimerKind.SLA]


def test_decisions_that_are_merged_change_the_same_as_one_after_the_other() -> None:
    job = Scenario.new().submitted()
    events: list[Event] = [
        OutboxSent(*job.identity()),
        AckReceived(*job.identity(), TENANT),
        HeartbeatReceived(*job.identity(), TENANT, {"fraction": 0.5}),
        job.result_event(),
    ]
    decisions, aggregate = [], job.aggregate
    for event in events:
        decisions.append(decide(aggregate, event, job.now, Fresh("e" * 32)))
        aggregate = apply(aggregate, decisions[-1])
    merged = merged_decision(decisions)
    assert apply(job.aggregate, merged) == aggregate
    assert [event.seq for event in merged.events] == list(
        range(job.aggregate.job.seq + 1, aggregate.job.seq + 1)
    )
    assert len(merged.outbox) == 1
    assert aggregate.steps[0].progress == {"fraction": 0.5}
    assert merged_decision(decisions[:1]) is decisions[0]


def test_a_new_attempt_has_made_no_progress() -> None:
    job = Scenario.new().submitted().sent().acked()
    job.happens(HeartbeatReceived(*job.identity(), TENANT, {"fraction": 0.9}))
    assert job.active.progress == {"fraction": 0.9}
    job.lease_expired().retry_due()
    assert job.active.progress is None
