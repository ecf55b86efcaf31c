"""A job under everything that can go wrong: what must hold, holds after every step.

Hypothesis plays a bus, a service, several sweepers and several callers that are all careless:
duplicates, old leases, replies in any order, timers that fire late or were set for another attempt,
cancels and pauses at any moment.
"""

import itertools
from collections import Counter
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lucius_contract.audit import EventType, Verdict
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Directive, Outcome
from lucius_contract.states import (
    ADVANCING_JOB_STATES,
    IN_FLIGHT_STEP_STATES,
    TERMINAL_JOB_STATES,
    TERMINAL_STEP_STATES,
    JobState,
    OutboxState,
    StepState,
)
from lucius_orchestrator.domain.aggregate import Aggregate, Engine, StepPolicy
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import DirectiveRow, OutboxKind, apply
from lucius_orchestrator.domain.draft import Fresh
from lucius_orchestrator.domain.events import (
    AckReceived,
    AckTimedOut,
    CancelRequested,
    DispatchStale,
    Event,
    HeartbeatReceived,
    OutboxFailed,
    OutboxSent,
    PauseRequested,
    ReplyReceived,
    ResultReceived,
    ResumeRequested,
    RetryDue,
    SlaExceeded,
    Submitted,
    Timer,
)
from lucius_orchestrator.domain.timers import armed, next_due
from tests.domain.scenario import TENANT, Scenario
from tests.domain.test_product import is_legal
from tests.runner.tiers import examples

Identity = tuple[str, int, str]
REFUSED_BY_THE_BUS = [
    ErrorCode.DISPATCH_FAILED,
    ErrorCode.DISPATCH_FAILED,
    ErrorCode.DIRECTIVE_TOO_LARGE,
]
NEVER_MADE: list[Identity] = [("step_01", 1, "forged"), ("step_02", 9, "forged")]


class CarelessWorld(RuleBasedStateMachine):
    engine = Engine.LEDGER

    def __init__(self) -> None:
        super().__init__()
        self.accept(Scenario.new(engine=self.engine))

    def accept(self, job: Scenario) -> None:
        """A new job, of which nothing was seen yet."""
        self.job = job
        self.first = self.before = job.aggregate
        self.identities: list[Identity] = list(NEVER_MADE)
        self.timers: list[Timer] = []
        self.applied: Counter[Identity] = Counter()
        self.digests: dict[Identity, str] = {}
        self.gave_up_unanswered = False
        self.history: list[tuple[Event, datetime]] = []
        self.recorded = 0

    @initialize(steps=st.integers(1, 3), max_attempts=st.integers(1, 4))
    def begin(self, steps: int, max_attempts: int) -> None:
        policy = StepPolicy(max_attempts=max_attempts)
        self.accept(Scenario.new(steps, policy, engine=self.engine))

    @precondition(lambda self: self.job.aggregate.job.state in TERMINAL_JOB_STATES)
    @rule(steps=st.integers(2, 3), max_attempts=st.integers(2, 4))
    def begin_again(self, steps: int, max_attempts: int) -> None:
        """A job that has ended is dull after a few events; go on with another."""
        self.the_same_history_gives_the_same_decisions()
        self.begin(steps, max_attempts)

    def happens(self, event: Event, after: timedelta = timedelta(seconds=1)) -> None:
        self.before = before = self.job.aggregate
        expected = self.judge(event) if isinstance(event, ReplyReceived) else None
        self.job.happens(event, after)
        assert self.job.verdict() is expected
        if before.active.state is not StepState.FAILED_RETRY is self.job.active.state:
            self.gave_up_unanswered = isinstance(event, AckTimedOut | OutboxFailed)
        self.history.append((event, self.job.now))
        self.recorded += len(self.job.last.events)
        for row in self.job.last.outbox:
            if isinstance(row, DirectiveRow) and row.kind is not OutboxKind.TURN:
                self.identities.append((row.step_id, row.attempt_no, row.lease_id))
        # The SLA ends every job; its rule is its own, so that it does not end most of them early.
        self.timers += [t for t in armed(self.job.aggregate) if not isinstance(t, SlaExceeded)]
        if isinstance(event, ResultReceived) and self.job.verdict() is Verdict.APPLIED:
            identity = (event.step_id, event.attempt_no, event.lease_id)
            self.applied[identity] += 1
            self.digests[identity] = event.digest
            # A late RESULT passes through FAILED_RETRY unseen: it was answered after all.
            self.gave_up_unanswered = False
        for holds in INVARIANTS:
            holds(self)

    def judge(self, reply: ReplyReceived) -> Verdict | None:
        """The contract's verdict, found from what this test saw and not from the rows' history."""
        known = {step.step_id for step in self.job.aggregate.steps}
        if reply.tenant_id != TENANT or reply.step_id not in known:
            return None
        identity = (reply.step_id, reply.attempt_no, reply.lease_id)
        if identity in self.digests:
            other = isinstance(reply, ResultReceived) and reply.digest != self.digests[identity]
            return Verdict.RESULT_CONFLICT if other else Verdict.DUPLICATE
        job_state, step_state = self.job.states
        late = step_state is StepState.FAILED_RETRY and job_state in ADVANCING_JOB_STATES
        takes_replies = step_state in IN_FLIGHT_STEP_STATES or (late and self.gave_up_unanswered)
        if identity != self.job.identity() or not takes_replies:
            return Verdict.STALE_ATTEMPT
        if isinstance(reply, AckReceived) and step_state is StepState.IN_PROGRESS:
            return Verdict.DUPLICATE
        return Verdict.APPLIED

    def identity(self, data: st.DataObject) -> Identity:
        """Mostly the attempt that is current, sometimes any that was, or never was."""
        current = self.identities[-1]
        return data.draw(st.one_of(st.just(current), st.sampled_from(self.identities)))

    @rule(times=st.integers(1, 4))
    def all_goes_well(self, times: int) -> None:
        """Without this, most histories end before they get anywhere."""
        if self.job.aggregate.job.state in TERMINAL_JOB_STATES:
            self.begin_again(3, 3)
        for _ in range(times):
            self.happens(self.what_should_come_next())

    def what_should_come_next(self) -> Event:
        job_state, step_state = self.job.states
        if job_state in (JobState.PAUSING, JobState.PAUSED):
            return ResumeRequested()
        if step_state is StepState.DISPATCHING:
            return OutboxSent(*self.job.identity())
        if step_state is StepState.AWAITING_ACK:
            return AckReceived(*self.job.identity(), TENANT)
        if step_state is StepState.IN_PROGRESS:
            return self.job.result_event()
        if step_state is StepState.FAILED_RETRY:
            timer = next(t for t in armed(self.job.aggregate) if isinstance(t, RetryDue))
            self.job.now = max(self.job.now, timer.deadline)
            return timer
        return Submitted()

    @rule()
    def start(self) -> None:
        self.happens(Submitted())

    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        self.happens(OutboxSent(*self.identity(data)))

    @rule(data=st.data(), code=st.sampled_from(REFUSED_BY_THE_BUS))
    def fail_to_publish(self, data: st.DataObject, code: ErrorCode) -> None:
        self.happens(OutboxFailed(*self.identity(data), code))

    @rule(data=st.data(), tenant=st.sampled_from([TENANT, TENANT, TENANT, "other"]))
    def ack(self, data: st.DataObject, tenant: str) -> None:
        self.happens(AckReceived(*self.identity(data), tenant))

    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        self.happens(HeartbeatReceived(*self.identity(data), TENANT))

    @rule(
        data=st.data(),
        outcome=st.sampled_from([*Outcome, Outcome.SUCCEEDED, Outcome.FAILED_RETRY]),
        code=st.sampled_from(["ocr.BROKEN", "CANCELLED", None]),
        content=st.sampled_from(["a", "b"]),
    )
    def result(self, data: st.DataObject, outcome: Outcome, code: str | None, content: str) -> None:
        identity = self.identity(data)
        digest = f"{outcome}-{code}-{content}"
        self.happens(ResultReceived(*identity, TENANT, outcome, digest, code, "it broke"))

    @precondition(lambda self: self.timers)
    @rule(data=st.data(), late=st.integers(-2, 5), row=st.sampled_from(OutboxState))
    def timer(self, data: st.DataObject, late: int, row: OutboxState) -> None:
        """Any timer that was ever armed, a little early or late by the decider's clock."""
        timer = data.draw(st.one_of(st.just(self.timers[-1]), st.sampled_from(self.timers)))
        if isinstance(timer, DispatchStale):
            timer = DispatchStale(
                timer.step_id, timer.attempt_no, timer.lease_id, timer.deadline, row=row
            )
        after = max(timer.deadline + timedelta(seconds=late) - self.job.now, timedelta())
        self.happens(timer, after)

    @rule(early=st.booleans(), likely=st.integers(0, 5))
    def sla(self, early: bool, likely: int) -> None:
        deadline = self.job.aggregate.job.sla_deadline
        if early or likely == 0:
            after = deadline - self.job.now if not early else timedelta(seconds=1)
            self.happens(SlaExceeded(deadline), max(after, timedelta()))

    @rule(likely=st.integers(0, 5))
    def cancel(self, likely: int) -> None:
        if likely == 0:
            self.happens(CancelRequested())

    @rule()
    def pause(self) -> None:
        self.happens(PauseRequested())

    @rule()
    def resume(self) -> None:
        self.happens(ResumeRequested())

    def terminal_states_never_change(self) -> None:
        before, after = self.before, self.job.aggregate
        if before.job.state in TERMINAL_JOB_STATES:
            assert after.job.state is before.job.state
        for old, new in zip(before.steps, after.steps, strict=True):
            if old.state in TERMINAL_STEP_STATES:
                assert new.state is old.state

    def at_most_one_step_is_in_flight_and_it_is_the_active_one(self) -> None:
        aggregate = self.job.aggregate
        in_flight = [step for step in aggregate.steps if step.state in IN_FLIGHT_STEP_STATES]
        assert in_flight in ([], [aggregate.active])

    def at_most_one_result_is_applied_per_attempt(self) -> None:
        assert all(count == 1 for count in self.applied.values())

    def attempts_only_grow_and_have_a_history_each(self) -> None:
        for old, new in zip(self.before.steps, self.job.aggregate.steps, strict=True):
            assert old.attempt_no <= new.attempt_no <= old.attempt_no + 1
            assert [a.attempt_no for a in new.attempts] == list(range(1, new.attempt_no + 1))
            assert new.attempt_no <= new.policy.max_attempts
        total = sum(step.attempt_no for step in self.job.aggregate.steps)
        assert self.job.aggregate.job.attempts_total == total

    def a_step_starts_only_after_the_one_before_succeeded(self) -> None:
        steps = self.job.aggregate.steps
        for earlier, later in itertools.pairwise(steps):
            assert later.attempt_no == 0 or earlier.state is StepState.SUCCEEDED

    def a_dispatching_step_has_its_outbox_row(self) -> None:
        step = self.job.active
        if step.state is StepState.DISPATCHING:
            row = self.job.directives[-1]
            assert (row.step_id, row.attempt_no, row.lease_id) == self.job.identity()
            Directive.read(row.body)

    def a_terminal_job_has_only_terminal_steps(self) -> None:
        aggregate = self.job.aggregate
        steps_ended = all(step.state in TERMINAL_STEP_STATES for step in aggregate.steps)
        assert steps_ended == (aggregate.job.state in TERMINAL_JOB_STATES)

    def the_active_step_is_the_first_that_has_not_ended(self) -> None:
        aggregate = self.job.aggregate
        if aggregate.job.state not in TERMINAL_JOB_STATES:
            open_steps = [s for s in aggregate.steps if s.state not in TERMINAL_STEP_STATES]
            assert aggregate.active is open_steps[0]
            assert aggregate.job.current_step_id == aggregate.active.step_id

    def a_job_that_advances_has_something_to_wait_for(self) -> None:
        state, step = self.job.states
        if state in ADVANCING_JOB_STATES:
            opened_by_another = self.engine is Engine.TEMPORAL and step is StepState.PENDING
            waits = opened_by_another or step is StepState.FAILED_RETRY
            assert step in IN_FLIGHT_STEP_STATES or waits
        if state in (JobState.PAUSING, JobState.CANCELLING):
            assert step in IN_FLIGHT_STEP_STATES
        if state is JobState.PAUSED:
            assert step in (StepState.PENDING, StepState.FAILED_RETRY)
        assert (next_due(self.job.aggregate) is None) == (state in TERMINAL_JOB_STATES)

    def the_trail_is_numbered_without_a_gap_and_every_hop_is_legal(self) -> None:
        assert self.job.aggregate.job.seq == self.recorded
        if self.job.decisions:
            events = self.job.last.events
            first = self.recorded - len(events) + 1
            assert [event.seq for event in events] == list(range(first, self.recorded + 1))
            assert all(map(is_legal, events))

    def the_trail_tells_how_each_state_came_about(self) -> None:
        if self.job.decisions:
            hops = [e for e in self.job.last.events if e.type is EventType.JOB_STATE_CHANGED]
            path = [self.before.job.state, *(hop.target for hop in hops)]
            assert [hop.source for hop in hops] == path[:-1]
            assert path[-1] == self.job.aggregate.job.state

    def teardown(self) -> None:
        self.the_same_history_gives_the_same_decisions()
        self.the_job_ends_once_faults_stop()

    def the_same_history_gives_the_same_decisions(self) -> None:
        again = Scenario(self.first)
        for event, again.now in self.history:
            again.happens(event, timedelta())
        assert again.decisions == self.job.decisions
        assert again.aggregate == self.job.aggregate

    def the_job_ends_once_faults_stop(self) -> None:
        """A bus that delivers, a service that works, timers that fire: no SLA is needed."""
        for _ in range(20):
            if self.job.aggregate.job.state in TERMINAL_JOB_STATES:
                return
            self.job.happens(self.what_should_come_next())
        raise AssertionError(f"still {self.job.states} after 20 good events")


# Checked after every event. Hypothesis' own invariants would be checked after every rule only, and
# a rule may be several events.
INVARIANTS = (
    CarelessWorld.terminal_states_never_change,
    CarelessWorld.at_most_one_step_is_in_flight_and_it_is_the_active_one,
    CarelessWorld.at_most_one_result_is_applied_per_attempt,
    CarelessWorld.attempts_only_grow_and_have_a_history_each,
    CarelessWorld.a_step_starts_only_after_the_one_before_succeeded,
    CarelessWorld.a_dispatching_step_has_its_outbox_row,
    CarelessWorld.a_terminal_job_has_only_terminal_steps,
    CarelessWorld.the_active_step_is_the_first_that_has_not_ended,
    CarelessWorld.a_job_that_advances_has_something_to_wait_for,
    CarelessWorld.the_trail_is_numbered_without_a_gap_and_every_hop_is_legal,
    CarelessWorld.the_trail_tells_how_each_state_came_about,
)

TestCarelessWorld = CarelessWorld.TestCase
TestCarelessWorld.settings = settings(
    max_examples=examples(400), stateful_step_count=60, deadline=None
)


def test_a_decision_is_a_function_of_its_arguments() -> None:
    job = Scenario.new().submitted().sent().acked()
    event, fresh = job.result_event(), Fresh("f" * 32, jitter=0.3)
    one, two = (decide(job.aggregate, event, job.now, fresh) for _ in range(2))
    assert one == two
    assert isinstance(apply(job.aggregate, one), Aggregate)
