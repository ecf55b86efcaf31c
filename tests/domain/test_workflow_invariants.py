"""A job that Temporal drives, under everything that can go wrong.

To the careless world comes a workflow that does as it is told, but over a line that is no better:
its calls are made twice or much later, their answers are lost or overtaken, it is told of things
late, twice and in any order, and it is ended and started again.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from lucius_contract.errors import ErrorCode
from lucius_contract.states import TERMINAL_JOB_STATES, JobState, StepState
from lucius_contract.timeouts import MAX_CLOCK_SKEW
from lucius_orchestrator.domain.aggregate import Engine, Turn
from lucius_orchestrator.domain.decision import DirectiveRow, OutboxKind, WorkflowRow
from lucius_orchestrator.domain.events import (
    AckTimedOut,
    AttemptOpened,
    AttemptTimer,
    CeilingReached,
    Event,
    HeartbeatReceived,
    LeaseExpired,
    OutboxFailed,
    OutboxSent,
    OutboxSuperseded,
    PublishDelayed,
    SlaExceeded,
    Submitted,
    TurnGranted,
    WorkflowLost,
)
from lucius_orchestrator.domain.timers import TimerKind, next_due
from lucius_orchestrator.domain.workflow import Action, Next, TimerName
from tests.domain.scenario import TENANT, Scenario, later
from tests.domain.test_invariants import NEVER_MADE, CarelessWorld, Identity
from tests.runner.tiers import examples

TIMERS: dict[str, type[AckTimedOut] | type[LeaseExpired] | type[CeilingReached]] = {
    TimerName.ACK_TIMEOUT: AckTimedOut,
    TimerName.LEASE_EXPIRED: LeaseExpired,
    TimerName.ATTEMPT_TIMEOUT: CeilingReached,
}
OF_WORKFLOW = (
    Submitted,
    AttemptOpened,
    OutboxSent,
    OutboxFailed,
    OutboxSuperseded,
    PublishDelayed,
    AttemptTimer,
    WorkflowLost,
)
WITH_A_SERVICE = frozenset({StepState.AWAITING_ACK, StepState.IN_PROGRESS})
FATES = st.sampled_from(["answered", "answered", "answered", "overtaken", "lost"])


class ModelWorkflow:
    """Knows what it was told last, and does that."""

    def __init__(self, told: Next) -> None:
        self.view = told
        self.openings: dict[tuple[str, int], AttemptOpened] = {}

    def learns(self, told: Next) -> None:
        self.view = later(self.view, told)

    @property
    def has_ended(self) -> bool:
        return self.view["action"] == Action.END

    def waits_until(self) -> datetime | None:
        """When it does what comes next by itself."""
        if self.view["action"] == Action.WAIT:
            return self._first_timer()[0] + MAX_CLOCK_SKEW
        at = self.view["at"]
        return datetime.fromisoformat(at) if at else None

    def does(self, now: datetime, entropy: int) -> Event:
        view = self.view
        if view["action"] == Action.OPEN:
            return self._opening(now, entropy)
        identity = (view["stepId"], view["attempt_no"], view["lease_id"] or "")
        if view["action"] == Action.PUBLISH:
            return OutboxSent(*identity)
        deadline, name = self._first_timer()
        if name == TimerName.SLA_EXCEEDED:
            return SlaExceeded(deadline)
        return TIMERS[name](*identity, deadline)

    def _first_timer(self) -> tuple[datetime, str]:
        timers = self.view["timers"]
        return min((datetime.fromisoformat(t["deadline"]), t["event"]) for t in timers)

    def _opening(self, now: datetime, entropy: int) -> AttemptOpened:
        """Asking again is asking with the same lease, unless that is over."""
        attempt = (self.view["stepId"], self.view["attempt_no"])
        ends = now + timedelta(seconds=self.view["lease_seconds"])
        asked = self.openings.get(attempt)
        if asked is None or asked.lease_expires_at <= now + timedelta(minutes=1):
            asked = AttemptOpened(*attempt, f"{entropy:032x}", ends, TENANT)
        self.openings[attempt] = asked
        return asked


class CarelessWorkflows(CarelessWorld):
    engine = Engine.TEMPORAL

    def accept(self, job: Scenario) -> None:
        super().accept(job)
        self.workflow: ModelWorkflow | None = None
        self.starts: list[Next] = []
        self.signals: list[Next] = []
        self.delivered: list[Next] = []
        self.answers: list[Next] = []
        self.calls: list[Event] = []
        self.known = job.next
        self.meanings: dict[tuple[int, str | None], Next] = {}
        self.heartbeats_told: set[int] = set()
        self.asked = 0
        self.turns: list[TurnGranted] = []
        self.granted: list[TurnGranted] = []
        self.is_full = False
        self.happens(Submitted())

    def happens(self, event: Event, after: timedelta = timedelta(seconds=1)) -> None:
        told_before, made = self.job.next, set(self.identities[len(NEVER_MADE) :])
        super().happens(event, after)
        if isinstance(event, AttemptOpened):
            assert self.judged() == self.opening_means(event, told_before, made)
        by_workflow = isinstance(event, OF_WORKFLOW) or (
            isinstance(event, SlaExceeded) and event.by is None
        )
        for row in self.job.last.outbox:
            if isinstance(row, DirectiveRow) and row.kind is OutboxKind.TURN:
                self.turns.append(TurnGranted(row.step_id, row.attempt_no))
            if isinstance(row, WorkflowRow):
                self.is_sent(row, event, told_before)
                assert by_workflow == (row.kind is OutboxKind.START)
        if by_workflow:
            self.known = later(self.known, self.job.next)
        self.what_was_said_is_what_is_stored()
        self.what_was_said_is_known_by_its_place()
        self.the_watch_is_set()
        self.who_waits_for_a_turn_is_in_the_queue(event)

    def who_waits_for_a_turn_is_in_the_queue(self, event: Event) -> None:
        """Else nothing but its SLA would move the job."""
        job, step = self.job.aggregate.job, self.job.active
        if job.state in TERMINAL_JOB_STATES:
            assert step.turn is None
        elif step.turn is Turn.WAITING and job.state is not JobState.CANCELLING:
            assert TurnGranted(step.step_id, step.attempt_no + 1) in [
                turn for turn in self.turns if turn is not event
            ]

    def judged(self) -> str:
        refusal = self.job.last.refusal
        if refusal:
            return refusal.code
        kinds = [row.kind for row in self.job.last.outbox]
        return {(): "nothing", ("INVOCATION",): "opened", ("TURN",): "waits"}[tuple(kinds)]

    def opening_means(self, event: AttemptOpened, told: Next, made: set[Identity]) -> str:
        """Found from what the workflow was told, and not from the rows."""
        if self.job.aggregate.step(event.step_id) is None:
            return ErrorCode.JOB_NOT_FOUND
        asked = (event.step_id, event.attempt_no, event.lease_id)
        latest = max((number for step_id, number, _ in made if step_id == event.step_id), default=0)
        if event.attempt_no <= latest:
            same = asked in made and event.attempt_no == latest
            return "nothing" if same else ErrorCode.STALE_ATTEMPT
        at = datetime.fromisoformat(told["at"]) if told["at"] else self.job.now
        waits = self.before.active.turn is Turn.WAITING and told["state"] != JobState.PAUSED
        wants = waits and self.before.active.state in (StepState.PENDING, StepState.FAILED_RETRY)
        wanted = (wants or told["action"] == Action.OPEN) and told["stepId"] == event.step_id
        at = max(at, self.before.active.next_attempt_at or at)
        if not wanted or not at <= self.job.now < event.lease_expires_at:
            return "nothing"
        if event.attempt_no != self.before.active.attempt_no + 1:
            return ErrorCode.STATE_CONFLICT
        if event.admitted or TurnGranted(event.step_id, event.attempt_no) in self.granted:
            return "opened"
        return "nothing" if waits else "waits"

    def is_sent(self, row: WorkflowRow, event: Event, told_before: Next) -> None:
        told: Next = row.body["next"]
        assert told == self.job.next
        if row.kind is OutboxKind.START:
            self.starts.append(told)
            return
        self.signals.append(told)
        self.known = later(self.known, told)
        assert told_before | {"seq": told["seq"]} != told
        if isinstance(event, HeartbeatReceived) and told_before["seq"] == told["seq"]:
            third = (self.job.now - self.job.aggregate.job.created_at) // self.third
            assert third not in self.heartbeats_told
            self.heartbeats_told.add(third)

    @property
    def third(self) -> timedelta:
        return self.job.active.policy.lease / 3

    def what_was_said_is_what_is_stored(self) -> None:
        """But for the number of the last event, and heartbeats of less than a third of a lease."""
        known, stored = dict(self.known), dict(self.job.next)
        if known["lease_expires_at"] != stored["lease_expires_at"]:
            assert self.job.active.state is StepState.IN_PROGRESS
            said = datetime.fromisoformat(self.known["lease_expires_at"] or "")
            held = datetime.fromisoformat(self.job.next["lease_expires_at"] or "")
            assert timedelta() < held - said < self.third
        for name in ("seq", "lease_expires_at"):
            del known[name], stored[name]
        known["timers"] = [t for t in self.known["timers"] if t["event"] != "LEASE_EXPIRED"]
        stored["timers"] = [t for t in self.job.next["timers"] if t["event"] != "LEASE_EXPIRED"]
        assert known == stored

    def what_was_said_is_known_by_its_place(self) -> None:
        place = (self.job.next["seq"], self.job.next["lease_expires_at"])
        assert self.meanings.setdefault(place, self.job.next) == self.job.next

    def the_watch_is_set(self) -> None:
        """One timer, never before the job needs it, and while the workflow has something to do not
        long after that."""
        due, job = next_due(self.job.aggregate), self.job.aggregate.job
        if due is not None:
            assert due.kind is TimerKind.WORKFLOW
            assert due.at <= max(job.sla_deadline, job.updated_at) + timedelta(seconds=60)
            if self.job.next["action"] != Action.WAIT:
                at = self.job.active.next_attempt_at or self.job.now
                assert due.at <= max(at, self.job.now) + timedelta(seconds=120)

    def what_should_come_next(self) -> Event:
        job_state, step_state = self.job.states
        opens = step_state in (StepState.PENDING, StepState.FAILED_RETRY)
        if opens and job_state not in (JobState.PAUSED, *TERMINAL_JOB_STATES):
            self.job.now = max(self.job.now, self.job.active.next_attempt_at or self.job.now)
            return ModelWorkflow(self.job.next).does(self.job.now, self.entropy())
        return WorkflowLost("MISSING") if opens else super().what_should_come_next()

    def entropy(self) -> int:
        self.asked += 1
        return self.asked

    @rule()
    def start(self) -> None:
        """A job is submitted once, when it is accepted."""

    @rule(early=st.booleans(), likely=st.integers(0, 5))
    def sla(self, early: bool, likely: int) -> None:
        deadline = self.job.aggregate.job.sla_deadline
        if early or likely == 0:
            after = deadline - self.job.now if not early else timedelta(seconds=1)
            self.happens(SlaExceeded(deadline, "job_sla"), max(after, timedelta()))

    @rule(data=st.data(), after=st.integers(-2, 400))
    def heartbeat_of_another_clock(self, data: st.DataObject, after: int) -> None:
        event = HeartbeatReceived(*self.identity(data), TENANT)
        self.happens(event, timedelta(seconds=after))

    @precondition(lambda self: self.starts)
    @rule(data=st.data(), fresh=st.booleans())
    def deliver_start(self, data: st.DataObject, fresh: bool) -> None:
        """One that runs is left alone, and a job that has ended needs none."""
        told = self.starts.pop(data.draw(st.integers(0, len(self.starts) - 1)))
        if self.workflow is None and self.job.aggregate.job.state not in TERMINAL_JOB_STATES:
            self.workflow = ModelWorkflow(self.job.next if fresh else told)

    @precondition(lambda self: self.workflow and self.signals)
    @rule(data=st.data())
    def deliver_signal(self, data: st.DataObject) -> None:
        """In any order. What finds no workflow is kept until there is one."""
        told = self.signals.pop(data.draw(st.integers(0, len(self.signals) - 1)))
        self.delivered.append(told)
        self.tell(told)

    @precondition(lambda self: self.workflow and self.delivered)
    @rule(data=st.data())
    def deliver_signal_again(self, data: st.DataObject) -> None:
        self.tell(data.draw(st.sampled_from(self.delivered)))

    @precondition(lambda self: self.workflow and self.answers)
    @rule(data=st.data())
    def deliver_answer(self, data: st.DataObject) -> None:
        self.tell(self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1))))

    def tell(self, told: Next) -> None:
        assert self.workflow is not None
        self.workflow.learns(told)

    @precondition(lambda self: self.workflow)
    @rule(fate=FATES, patient=st.booleans(), delayed=st.booleans(), refused=st.integers(0, 5))
    def work(self, fate: str, patient: bool, delayed: bool, refused: int) -> None:
        assert self.workflow is not None
        if self.workflow.has_ended:
            self.workflow = None
            return
        until = self.workflow.waits_until() if patient else None
        after = max((until or self.job.now) - self.job.now, timedelta())
        call = self.call_of_the_workflow(after)
        if isinstance(call, OutboxSent) and delayed:
            self.happens(PublishDelayed(call.step_id, call.attempt_no, call.lease_id))
        if isinstance(call, OutboxSent) and refused == 0:
            identity = (call.step_id, call.attempt_no, call.lease_id)
            call = OutboxFailed(*identity, ErrorCode.DISPATCH_FAILED)
        self.calls.append(call)
        self.happens(call, after)
        if fate == "answered":
            self.workflow.learns(self.job.next)
        elif fate == "overtaken":
            self.answers.append(self.job.next)

    def call_of_the_workflow(self, after: timedelta) -> Event:
        assert self.workflow is not None
        call = self.workflow.does(self.job.now + after, self.entropy())
        if isinstance(call, AttemptOpened):
            return replace(call, admitted=not self.is_full)
        return call

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def a_call_arrives_again(self, data: st.DataObject) -> None:
        """Or for the first time, long after it was made; nobody hears the answer."""
        self.happens(data.draw(st.sampled_from(self.calls)))

    @rule(data=st.data(), ahead=st.integers(0, 2), left=st.integers(0, 5), own=st.booleans())
    def another_opens(self, data: st.DataObject, ahead: int, left: int, own: bool) -> None:
        """A run that ended has asked for some attempt, and that arrives now."""
        step_id, attempt_no, lease_id = self.identity(data)
        lease_id = lease_id if own else f"{self.entropy():032x}"
        ends = self.job.now + timedelta(minutes=left)
        self.happens(AttemptOpened(step_id, attempt_no + ahead, lease_id, ends, TENANT))

    @rule(full=st.booleans())
    def the_service_is_full_or_not(self, full: bool) -> None:
        self.is_full = full

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), again=st.integers(0, 3))
    def grant_a_turn(self, data: st.DataObject, again: int) -> None:
        """A dispatcher that was stalled grants one for the second time."""
        turn = data.draw(st.sampled_from(self.turns))
        if again:
            self.turns.remove(turn)
        self.grant(turn)

    def grant(self, turn: TurnGranted) -> None:
        step, state = self.job.active, self.job.aggregate.job.state
        is_next = (step.step_id, step.attempt_no + 1) == (turn.step_id, turn.attempt_no)
        if is_next and state not in (*TERMINAL_JOB_STATES, JobState.CANCELLING):
            self.granted.append(turn)
        self.happens(turn)

    @rule()
    def end_the_workflow(self) -> None:
        self.workflow = None
        self.answers.clear()

    @precondition(lambda self: self.workflow is None)
    @rule()
    def notice_that_it_is_lost(self) -> None:
        self.happens(WorkflowLost("TERMINATED", "lost_workflows"))

    def the_job_ends_once_faults_stop(self) -> None:
        """Services answer, signals arrive, and the workflow has nothing to go by but what it is
        told; it is not the SLA that ends the job."""
        for _ in range(40):
            if self.job.aggregate.job.state in TERMINAL_JOB_STATES:
                break
            self.everybody_does_their_part()
        else:
            raise AssertionError(f"still {self.job.states}")
        self.all_that_was_sent_arrives()
        if self.workflow is not None and not self.workflow.has_ended:
            # A call of one that ran before has ended the job; this one learns it when it asks.
            self.asks()
        assert self.workflow is None or self.workflow.has_ended

    def everybody_does_their_part(self) -> None:
        self.all_that_was_sent_arrives()
        job_state, step_state = self.job.states
        if self.workflow is None:
            self.notice_that_it_is_lost()
        elif self.turns:
            self.grant(self.turns.pop())
        elif job_state is JobState.PAUSED or step_state in WITH_A_SERVICE:
            self.happens(super().what_should_come_next())
        else:
            self.asks()

    def all_that_was_sent_arrives(self) -> None:
        while self.starts and self.workflow is None:
            told = self.starts.pop(0)
            if self.job.aggregate.job.state not in TERMINAL_JOB_STATES:
                self.workflow = ModelWorkflow(told)
        if self.workflow is not None:
            for told in [*self.answers, *self.signals]:
                self.tell(told)
            self.answers, self.signals = [], []

    def asks(self) -> None:
        assert self.workflow is not None
        until = self.workflow.waits_until() or self.job.now
        after = max(until - self.job.now, timedelta())
        call = self.call_of_the_workflow(after)
        assert not isinstance(call, SlaExceeded) or self.job.now >= call.deadline
        self.happens(call, after)
        self.workflow.learns(self.job.next)


TestCarelessWorkflows = CarelessWorkflows.TestCase
TestCarelessWorkflows.settings = settings(
    max_examples=examples(100), stateful_step_count=60, deadline=None
)
