"""The window against services of all kinds, in virtual time: real decisions and the real account of
traffic, a bus that is a list, and services that take from it when a slot is free."""

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from lucius_contract.messages import Outcome
from lucius_contract.states import JobState, StepState
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import apply
from lucius_orchestrator.domain.draft import Fresh
from lucius_orchestrator.domain.events import (
    AckReceived,
    AckTimedOut,
    Event,
    OutboxSent,
    ResultReceived,
    RetryDue,
)
from lucius_orchestrator.domain.window import Limits
from lucius_orchestrator.engine.traffic import Traffic
from tests.domain.scenario import START, TENANT, Scenario

SERVICE = "ocr"
PICKUP = timedelta(milliseconds=5)


@dataclass
class Run:
    """Jobs of one step for one service. `seconds` is how long a directive takes, by its number."""

    jobs: int
    slots: int
    seconds: Callable[[int], float]
    states: bool = True
    is_up: bool = True
    lost: frozenset[int] = frozenset()
    """Directives, by their number, that the bus drops."""

    now: datetime = START
    on_the_bus: deque[Scenario] = field(default_factory=deque)
    working: int = 0
    published: int = 0
    most_unacknowledged: int = 0

    def __post_init__(self) -> None:
        self.traffic = Traffic(lambda: self.now, Limits())
        self.all = [Scenario.new(1, job_id=f"job_{n}") for n in range(self.jobs)]
        self._numbers = itertools.count()
        self._agenda: list[tuple[datetime, int, Callable[[], None]]] = []
        self._pending: deque[Scenario] = deque()
        for job in self.all:
            job.submitted()
            self._pending.append(job)
        self._every_second()

    def _every_second(self) -> None:
        self.traffic.tick()
        self._at(timedelta(seconds=1), self._every_second)

    def _at(self, later: timedelta, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now + later, next(self._numbers), act))

    def until(self, done: Callable[[], bool], hours: float = 24) -> timedelta:
        """Let things happen until `done`; return how long that took."""
        began = self.now
        self._settle()
        while not done():
            self.now, _, act = heapq.heappop(self._agenda)
            assert self.now - began < timedelta(hours=hours), self.summary()
            act()
            self._settle()
        return self.now - began

    def all_ended(self) -> bool:
        return all(job.aggregate.job.completed_at for job in self.all)

    def summary(self) -> str:
        states = [str(job.active.state) for job in self.all]
        counts = {state: states.count(state) for state in set(states)}
        return f"{counts} {self.traffic.services()}"

    def attempts(self) -> list[int]:
        return sorted(job.aggregate.steps[0].attempt_no for job in self.all)

    def _happens(self, job: Scenario, event: Event) -> None:
        decision = decide(job.aggregate, event, self.now, Fresh(f"l{next(self._numbers)}"))
        job.aggregate = apply(job.aggregate, decision)
        job.now = self.now
        if decision.writes:
            self.traffic.committed(event, decision, job.aggregate)

    def _settle(self) -> None:
        """Publish and pick up whatever can be, now."""
        while self._pending and (self.traffic.room(SERVICE) or self._may_probe()):
            self._publish(self._pending.popleft())
        self.traffic.set_backlog(SERVICE, waits=bool(self._pending))
        while self.is_up and self.on_the_bus and self.working < self.slots:
            self._pick_up(self.on_the_bus.popleft())

    def _may_probe(self) -> bool:
        if not self.traffic.may_probe(SERVICE):
            return False
        self.traffic.has_probed(SERVICE)
        return self._pending[0].active.attempt_no == 1

    def _publish(self, job: Scenario) -> None:
        step = job.active
        job_id = job.aggregate.job.job_id
        self.traffic.claimed(job_id, step.step_id, SERVICE, step.route.lane)
        self._happens(job, OutboxSent(*job.identity()))
        attempt_no, deadline = job.active.attempt_no, job.active.ack_deadline
        assert deadline is not None
        if self.published not in self.lost:
            self.on_the_bus.append(job)
        self.published += 1
        (seen,) = self.traffic.services()
        self.most_unacknowledged = max(self.most_unacknowledged, seen.unacknowledged)
        self._at(deadline - self.now, lambda: self._time_out(job, attempt_no, deadline))

    def _time_out(self, job: Scenario, attempt_no: int, deadline: datetime) -> None:
        step = job.active
        if (step.attempt_no, step.state) != (attempt_no, StepState.AWAITING_ACK):
            return
        sent_at = step.attempts[-1].sent_at
        assert sent_at is not None
        absent = self.traffic.is_absent(SERVICE, sent_at)
        self._happens(job, AckTimedOut(*job.identity(), deadline, absent=absent))
        due = job.active.next_attempt_at
        if due is not None:
            self._at(due - self.now, lambda: self._retry(job, attempt_no, due))

    def _retry(self, job: Scenario, attempt_no: int, due: datetime) -> None:
        step = job.active
        if (step.attempt_no, step.state) == (attempt_no, StepState.FAILED_RETRY):
            self._happens(job, RetryDue(*job.identity(), due))
            self._pending.append(job)

    def _pick_up(self, job: Scenario) -> None:
        """A directive whose attempt is not open any more is put away."""
        step, attempt = job.active, job.active.attempt_no
        if step.state not in (StepState.AWAITING_ACK, StepState.FAILED_RETRY):
            return
        self.working += 1
        number = int(job.aggregate.job.job_id.removeprefix("job_"))
        self._at(PICKUP, lambda: self._acknowledge(job, attempt, self.seconds(number)))

    def _acknowledge(self, job: Scenario, attempt_no: int, seconds: float) -> None:
        if job.active.attempt_no != attempt_no:
            self.working -= 1
            return
        capacity = ("i-1", self.slots) if self.states else None
        self._happens(job, AckReceived(*job.identity(), TENANT, capacity))
        self._at(timedelta(seconds=seconds), lambda: self._finish(job))

    def _finish(self, job: Scenario) -> None:
        self.working -= 1
        done = ResultReceived(*job.identity(), TENANT, outcome=Outcome.SUCCEEDED, digest="d")
        self._happens(job, done)


def succeeded(run: Run) -> bool:
    return all(job.aggregate.job.state is JobState.SUCCEEDED for job in run.all)


@pytest.mark.parametrize("states", [True, False], ids=["states-capacity", "states-nothing"])
@pytest.mark.parametrize(
    ("jobs", "slots", "seconds"),
    [(160, 1, 5.0), (500, 1, 0.2), (2000, 16, 0.05), (300, 4, 2.0), (60, 8, 6.0)],
)
def test_a_backlog_costs_no_attempt_and_no_slot_idles(
    jobs: int, slots: int, seconds: float, *, states: bool
) -> None:
    run = Run(jobs, slots, lambda _: seconds, states)
    took = run.until(run.all_ended)
    assert succeeded(run)
    assert run.attempts() == [1] * jobs
    ideal = jobs * (seconds + PICKUP.total_seconds()) / slots
    assert took.total_seconds() < 1.15 * ideal + 2 * seconds


@pytest.mark.parametrize("minutes", [1, 5, 30])
@pytest.mark.parametrize("slots", [1, 4])
def test_steps_of_minutes_do_not_fail_while_others_wait_for_a_slot(
    minutes: int, slots: int
) -> None:
    """A directive that is sent to find out whether another instance was started may go unanswered,
    ever more rarely."""
    run = Run(40, slots, lambda _: minutes * 60.0)
    took = run.until(run.all_ended, hours=48)
    assert succeeded(run)
    assert max(run.attempts()) <= 2
    assert run.attempts().count(1) >= 25
    assert took < 1.1 * timedelta(minutes=minutes) * 40 / slots


def test_a_service_that_states_nothing_shows_its_capacity() -> None:
    run = Run(40, 2, lambda _: 300.0, states=False)
    run.until(run.all_ended, hours=48)
    assert succeeded(run)
    assert max(run.attempts()) <= 2


def test_a_service_that_becomes_a_hundred_times_slower_fails_nothing() -> None:
    run = Run(1000, 1, lambda number: 0.05 if number < 800 else 5.0)
    run.until(run.all_ended)
    assert succeeded(run)
    assert max(run.attempts()) <= 2


def test_a_lost_directive_is_found_by_its_ack_timeout_while_others_go_on() -> None:
    run = Run(200, 2, lambda _: 0.5, lost=frozenset({50}))
    run.until(run.all_ended)
    assert succeeded(run)
    assert run.attempts() == [1] * 199 + [2]
    assert [job.aggregate.steps[0].unanswered for job in run.all] == [0] * 200


def test_a_service_that_is_down_for_half_an_hour_costs_no_try() -> None:
    run = Run(500, 4, lambda _: 0.5)
    run.until(lambda: run.published > 100)
    run.is_up = False
    down_at, published = run.now, run.published
    run.until(lambda: run.now - down_at > timedelta(minutes=30))
    assert run.published - published < 60
    run.is_up = True
    before = sum(1 for job in run.all if job.aggregate.job.completed_at)
    back_at = run.now
    run.until(lambda: run.now - back_at > timedelta(minutes=1))
    after = sum(1 for job in run.all if job.aggregate.job.completed_at)
    assert after - before > 0.9 * 60 * 4 / 0.5 * 0.8 or run.all_ended()
    run.until(run.all_ended)
    assert succeeded(run)
    counted = [
        job.aggregate.steps[0].attempt_no - job.aggregate.steps[0].unanswered for job in run.all
    ]
    assert max(counted) <= 2  # what was heard while the service stopped may count once
