"""The full product of states and events.

`product.txt` is the reviewed answer for every situation that a job can get into, and
`product_temporal.txt` says what is different for a job that Temporal drives. The last test goes
further, to combinations of job and step state that no history produces: even on rows that were
damaged, nothing is decided that a table does not allow.
"""

import itertools
from datetime import timedelta
from pathlib import Path

import pytest

from lucius_contract.audit import EventType
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Outcome
from lucius_contract.states import (
    TERMINAL_JOB_STATES,
    TERMINAL_STEP_STATES,
    JobState,
    OutboxState,
    StepState,
)
from lucius_contract.transitions import JOB_TRANSITIONS, STEP_TRANSITIONS
from lucius_orchestrator.domain.aggregate import Aggregate, Engine, StepPolicy, evolve
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import AuditEvent, apply
from lucius_orchestrator.domain.draft import Fresh
from lucius_orchestrator.domain.events import (
    AckReceived,
    AckTimedOut,
    AttemptOpened,
    CancelRequested,
    CeilingReached,
    DispatchStale,
    Event,
    HeartbeatReceived,
    LeaseExpired,
    OutboxFailed,
    OutboxSent,
    PauseRequested,
    ResultReceived,
    ResumeRequested,
    RetryDue,
    SlaExceeded,
    Submitted,
    TurnGranted,
    WorkflowLost,
)
from tests.domain.product import (
    HAPPENINGS,
    OF_WORKFLOWS,
    SITUATIONS,
    outcome_of,
    table,
    temporal_table,
)
from tests.domain.scenario import TENANT, Scenario

JOB_HOPS = {(r.source, r.trigger, r.target) for r in JOB_TRANSITIONS}
STEP_HOPS = {(r.source, r.trigger, r.target) for r in STEP_TRANSITIONS}


def reviewed(name: str) -> list[str]:
    return Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()


def test_every_situation_and_event_has_the_reviewed_answer() -> None:
    assert list(table()) == reviewed("product.txt")


def test_what_is_different_for_a_job_that_temporal_drives_was_reviewed() -> None:
    assert list(temporal_table()) == reviewed("product_temporal.txt")


@pytest.mark.parametrize("engine", Engine)
def test_the_situations_cover_every_state(engine: Engine) -> None:
    seen = [build(engine).states for build in SITUATIONS.values()]
    assert {job for job, _ in seen} == set(JobState)
    assert {step for _, step in seen} == set(StepState)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_engines_differ_in_who_opens_an_attempt_and_in_nothing_else(situation: str) -> None:
    build = SITUATIONS[situation]
    for name, happening in HAPPENINGS.items():
        ledger = outcome_of(build, happening, Engine.LEDGER)
        temporal, _, _ = outcome_of(build, happening, Engine.TEMPORAL).partition(" [")
        opens_next = ledger.replace(", next DISPATCHING", ", next PENDING")
        assert temporal == opens_next or (situation, name) in OPENED_BY_THE_WORKFLOW


OPENED_BY_THE_WORKFLOW = {
    ("queued", "submitted"),
    ("paused before the start", "resume"),
    ("paused between steps", "resume"),
    ("first step never acknowledged", "retry due"),
    ("first step unpublished", "retry due"),
    ("failed, to be retried", "retry due"),
    ("lease expired, to be retried", "retry due"),
    ("second step never acknowledged", "retry due"),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_job_without_a_workflow_takes_nothing_from_one(situation: str) -> None:
    for name, happening in OF_WORKFLOWS.items():
        job = SITUATIONS[situation](Engine.LEDGER)
        before = job.aggregate
        happening(job)
        if name.startswith("attempt"):
            assert job.last.refusal is not None
            assert job.last.refusal.code == ErrorCode.JOB_NOT_FOUND
        if not name.startswith("SLA"):
            assert job.aggregate.steps == before.steps
            assert job.last.outbox == ()


def is_legal(event: AuditEvent) -> bool:
    hop = (event.source, event.cause, event.target)
    if event.type is EventType.JOB_STATE_CHANGED:
        return hop in JOB_HOPS
    return event.type is not EventType.STEP_STATE_CHANGED or hop in STEP_HOPS


def damaged(
    job: JobState, step: StepState, max_attempts: int, steps: int, engine: Engine
) -> Aggregate:
    """A job whose rows contradict each other, with every deadline set and passed."""
    policy = StepPolicy(max_attempts=max_attempts)
    scenario = Scenario.new(steps, policy, engine=engine).begun().sent().acked()
    active = scenario.active
    past = scenario.now - timedelta(hours=1)
    row = evolve(
        active,
        {
            "state": step,
            "ack_deadline": past,
            "lease_expires_at": past,
            "ceiling_at": past,
            "next_attempt_at": past,
        },
    )
    return Aggregate(
        evolve(scenario.aggregate.job, {"state": job, "sla_deadline": past}),
        (row, *scenario.aggregate.steps[1:]),
    )


def events_for(aggregate: Aggregate) -> list[Event]:
    step = aggregate.active
    identity = (step.step_id, step.attempt_no, step.lease_id or "")
    past = aggregate.job.sla_deadline
    stale = step.attempts[-1].dispatched_at + step.policy.stale_dispatch
    next_attempt = (step.step_id, step.attempt_no + 1, "another")
    return [
        Submitted(),
        AttemptOpened(*next_attempt, past + timedelta(days=1), TENANT),
        AttemptOpened(*next_attempt, past + timedelta(days=1), TENANT, admitted=False),
        TurnGranted(*next_attempt[:2]),
        WorkflowLost("TERMINATED"),
        OutboxSent(*identity),
        OutboxFailed(*identity),
        *(DispatchStale(*identity, stale, row=row) for row in OutboxState),
        AckReceived(*identity, TENANT),
        HeartbeatReceived(*identity, TENANT),
        *(ResultReceived(*identity, TENANT, outcome, "d") for outcome in Outcome),
        AckTimedOut(*identity, past),
        LeaseExpired(*identity, past),
        CeilingReached(*identity, past),
        RetryDue(*identity, past),
        SlaExceeded(past),
        SlaExceeded(past, "job_sla"),
        CancelRequested(),
        PauseRequested(),
        ResumeRequested(),
    ]


@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("job", JobState)
@pytest.mark.parametrize("step", StepState)
def test_no_combination_of_states_is_led_past_the_tables(
    job: JobState, step: StepState, engine: Engine
) -> None:
    for max_attempts, steps in itertools.product((1, 3), (1, 3)):
        before = damaged(job, step, max_attempts, steps, engine)
        now = before.steps[0].attempts[-1].dispatched_at + timedelta(hours=1)
        for event in events_for(before):
            decision = decide(before, event, now, Fresh("f" * 32))
            after = apply(before, decision)
            assert all(map(is_legal, decision.events)), (event, decision.events)
            assert after.job.state is job or job not in TERMINAL_JOB_STATES
            assert after.steps[0].state is step or step not in TERMINAL_STEP_STATES
            assert not decision.refusal or after.steps == before.steps
