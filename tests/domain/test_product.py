"""The full product of states and events.

`product.txt` is the reviewed answer for every situation that a job can get into. The second test
goes further, to combinations of job and step state that no history produces: even on rows that
were damaged, nothing is decided that a table does not allow.
"""

import itertools
from datetime import timedelta
from pathlib import Path

import pytest

from lucius_contract.audit import EventType
from lucius_contract.messages import Outcome
from lucius_contract.states import (
    TERMINAL_JOB_STATES,
    TERMINAL_STEP_STATES,
    JobState,
    OutboxState,
    StepState,
)
from lucius_contract.transitions import JOB_TRANSITIONS, STEP_TRANSITIONS
from lucius_orchestrator.domain.aggregate import Aggregate, StepPolicy, evolve
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import AuditEvent, apply
from lucius_orchestrator.domain.draft import Fresh
from lucius_orchestrator.domain.events import (
    AckReceived,
    AckTimedOut,
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
)
from tests.domain.product import SITUATIONS, table
from tests.domain.scenario import TENANT, Scenario

REVIEWED = Path(__file__).with_name("product.txt").read_text(encoding="utf-8").splitlines()
JOB_HOPS = {(r.source, r.trigger, r.target) for r in JOB_TRANSITIONS}
STEP_HOPS = {(r.source, r.trigger, r.target) for r in STEP_TRANSITIONS}


def test_every_situation_and_event_has_the_reviewed_answer() -> None:
    assert list(table()) == REVIEWED


def test_the_situations_cover_every_state() -> None:
    seen = [build().states for build in SITUATIONS.values()]
    assert {job for job, _ in seen} == set(JobState)
    assert {step for _, step in seen} == set(StepState)


def is_legal(event: AuditEvent) -> bool:
    hop = (event.source, event.cause, event.target)
    if event.type is EventType.JOB_STATE_CHANGED:
        return hop in JOB_HOPS
    return event.type is not EventType.STEP_STATE_CHANGED or hop in STEP_HOPS


def damaged(job: JobState, step: StepState, max_attempts: int, steps: int) -> Aggregate:
    """A job whose rows contradict each other, with every deadline set and passed."""
    scenario = Scenario.new(steps, StepPolicy(max_attempts=max_attempts)).submitted().sent().acked()
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
    return [
        Submitted(),
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
        CancelRequested(),
        PauseRequested(),
        ResumeRequested(),
    ]


@pytest.mark.parametrize("job", JobState)
@pytest.mark.parametrize("step", StepState)
def test_no_combination_of_states_is_led_past_the_tables(job: JobState, step: StepState) -> None:
    for max_attempts, steps in itertools.product((1, 3), (1, 3)):
        before = damaged(job, step, max_attempts, steps)
        now = before.steps[0].attempts[-1].dispatched_at + timedelta(hours=1)
        for event in events_for(before):
            decision = decide(before, event, now, Fresh("f" * 32))
            after = apply(before, decision)
            assert all(map(is_legal, decision.events)), (event, decision.events)
            assert after.job.state is job or job not in TERMINAL_JOB_STATES
            assert after.steps[0].state is step or step not in TERMINAL_STEP_STATES
            assert not decision.refusal or after.steps == before.steps
