"""The account of what is with services: from commits, from other processes, from the ledger."""

from datetime import datetime, timedelta

import pytest

from lucius_contract.messages import Outcome
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import apply
from lucius_orchestrator.domain.events import (
    AckReceived,
    AckTimedOut,
    Event,
    HeartbeatReceived,
    OutboxSent,
    ResultReceived,
    RetryDue,
)
from lucius_orchestrator.domain.window import Limits
from lucius_orchestrator.engine.service_load import (
    INSTANCE_LIFE,
    Instance,
    Presence,
    Seen,
    ServiceTraffic,
)
from lucius_orchestrator.engine.traffic import WORKING, Move, Traffic, digest_of
from tests.domain.scenario import START, TENANT, Scenario

WIDE = Limits(10, 100)
LANE = Scenario.new(1).active.route.lane


class Process:
    """A process of the control plane, as far as its traffic goes."""

    def __init__(self, limits: Limits = WIDE, lane_limit: int | None = None) -> None:
        self.now = START
        self.traffic = Traffic(lambda: self.now, limits, lane_limit)

    def happens(self, job: Scenario, event: Event) -> None:
        decision = decide(job.aggregate, event, self.now, job.fresh())
        job.aggregate, job.now = apply(job.aggregate, decision), self.now
        self.traffic.committed(event, decision, job.aggregate)

    def sent(self, name: str = "job_1") -> Scenario:
        job = Scenario.new(1, job_id=name).submitted()
        self.send(job)
        return job

    def send(self, job: Scenario) -> None:
        self.traffic.claimed(job.aggregate.job.job_id, job.active.step_id, "ocr", LANE)
        self.happens(job, OutboxSent(*job.identity()))

    def acked(self, job: Scenario, capacity: tuple[str, int] | None = None) -> Scenario:
        self.happens(job, AckReceived(*job.identity(), TENANT, capacity))
        return job

    def timed_out(self, job: Scenario, *, absent: bool = False) -> Scenario:
        deadline = job.active.ack_deadline
        assert deadline is not None
        self.now = max(self.now, deadline)
        self.happens(job, AckTimedOut(*job.identity(), deadline, absent=absent))
        return job

    def result(self, job: Scenario) -> None:
        done = ResultReceived(*job.identity(), TENANT, outcome=Outcome.SUCCEEDED, digest="d")
        self.happens(job, done)

    @property
    def ocr(self) -> ServiceTraffic:
        return next(found for found in self.traffic.services() if found.service == "ocr")

    def open_up(self) -> None:
        """Let the service answer everything at once for a while."""
        for round_no in range(5):
            jobs = [self.sent(f"{round_no}-{n}") for n in range(self.traffic.room("ocr"))]
            for job in jobs:
                self.result(self.acked(job))

    @property
    def counts(self) -> tuple[int, int]:
        return self.ocr.unacknowledged, self.ocr.working


@pytest.fixture
def process() -> Process:
    return Process()


def test_a_directive_counts_from_the_claim_to_the_end(process: Process) -> None:
    job = Scenario.new(1).submitted()
    process.traffic.claimed("job_1", "step_01", "ocr", LANE)
    assert process.counts == (1, 0)
    process.happens(job, OutboxSent(*job.identity()))
    process.traffic.unpublished("job_1", "step_01")
    assert process.counts == (1, 0)
    process.acked(job)
    assert process.counts == (0, 1)
    process.result(job)
    assert process.counts == (0, 0)


def test_what_was_claimed_and_not_published_does_not_count(process: Process) -> None:
    process.traffic.claimed("job_1", "step_01", "ocr", LANE)
    process.traffic.unpublished("job_1", "step_01")
    assert process.counts == (0, 0)
    process.traffic.unpublished("job_2", "step_01")  # nothing is known of it


def test_a_result_without_an_ack_is_picked_up_and_done(process: Process) -> None:
    job = process.sent()
    process.result(job)
    assert process.counts == (0, 0)
    assert process.ocr.rate > 0


def test_a_directive_whose_ack_is_late_keeps_its_place_until_the_next_attempt(
    process: Process,
) -> None:
    job = process.timed_out(process.sent())
    assert process.counts == (1, 0)
    due = job.active.next_attempt_at
    assert due is not None
    process.now = due
    process.happens(job, RetryDue(*job.identity(), due))
    assert process.counts == (0, 0)


def test_a_late_ack_is_work(process: Process) -> None:
    process.acked(process.timed_out(process.sent()))
    assert process.counts == (0, 1)


def test_room_is_what_the_window_leaves(process: Process) -> None:
    for number in range(10):
        assert process.traffic.room("ocr") == 10 - number
        process.sent(f"job_{number}")
    assert process.traffic.room("ocr") == 0
    assert process.traffic.room("sis") == 10


def test_lanes_have_limits_of_their_own() -> None:
    process = Process(lane_limit=2)
    first = process.sent("job_1")
    assert process.traffic.has_lane_room("ocr", LANE)
    process.sent("job_2")
    assert not process.traffic.has_lane_room("ocr", LANE)
    assert process.traffic.has_lane_room("ocr", (LANE + 1) % 16)
    assert process.traffic.has_lane_room("sis", LANE)
    process.acked(first)
    assert process.traffic.has_lane_room("ocr", LANE)


def test_instances_add_up_to_the_capacity(process: Process) -> None:
    one, other = process.sent("job_1"), process.sent("job_2")
    assert [each.capacity for each in process.traffic.services()] == [None]
    process.acked(one, ("i-1", 4))
    process.now += timedelta(minutes=6)
    process.acked(other, ("i-2", 2))
    assert (process.ocr.capacity, process.ocr.instances) == (6, 2)
    process.now += INSTANCE_LIFE - timedelta(minutes=5)
    process.traffic.tick()
    assert (process.ocr.capacity, process.ocr.instances) == (2, 1)


def test_a_heartbeat_states_the_capacity_too(process: Process) -> None:
    job = process.acked(process.sent(), ("i-1", 4))
    process.now += INSTANCE_LIFE
    process.happens(job, HeartbeatReceived(*job.identity(), TENANT, capacity=("i-1", 8)))
    process.now += INSTANCE_LIFE
    process.traffic.tick()
    assert process.ocr.capacity == 8


def test_a_sign_of_life_is_any_reply(process: Process) -> None:
    began = process.now
    job = process.sent()
    assert process.ocr.presence.value == Presence.UNKNOWN
    assert process.traffic.is_absent("ocr", began)
    process.acked(job)
    assert not process.traffic.is_absent("ocr", began)
    assert process.traffic.is_absent("ocr", began + timedelta(microseconds=1))
    process.now += timedelta(minutes=1)
    process.acked(job)  # a duplicate
    assert not process.traffic.is_absent("ocr", process.now)
    assert process.ocr.presence.value == Presence.PRESENT


def test_an_absent_service_gets_probes_until_something_is_heard() -> None:
    process = Process(Limits(1, 100))
    process.open_up()
    assert process.traffic.room("ocr") > 5
    lost = process.timed_out(process.sent("lost"), absent=True)
    assert process.ocr.presence.value == Presence.ABSENT
    assert process.traffic.room("ocr") == 0  # the one that is on the bus is the probe
    woken: list[None] = []
    process.traffic.on_room = lambda: woken.append(None)
    process.traffic.set_backlog("ocr", waits=True)
    process.acked(lost)
    assert process.ocr.presence.value == Presence.PRESENT
    assert process.traffic.room("ocr") == 1
    assert woken


def test_room_that_comes_wakes_only_who_waits(process: Process) -> None:
    woken: list[None] = []
    process.traffic.on_room = lambda: woken.append(None)
    process.acked(process.sent("job_1"))
    assert not woken
    process.traffic.set_backlog("ocr", waits=True)
    assert process.traffic.with_backlog() == ["ocr"]
    process.acked(process.sent("job_2"))
    assert woken


def test_after_a_rest_the_window_begins_anew() -> None:
    process = Process(Limits(1, 100))
    process.open_up()
    assert process.traffic.room("ocr") > 5
    process.now += timedelta(seconds=31)
    assert process.traffic.room("ocr") == 1


def restored(job: Scenario, now: datetime) -> Process:
    process = Process()
    process.now = now
    process.traffic.restore(job.aggregate)
    return process


def test_a_process_that_starts_learns_what_is_with_services(process: Process) -> None:
    job = Scenario.new(1).submitted()
    assert Process().traffic.services() == []
    process.send(job)
    assert restored(job, process.now).counts == (1, 0)
    assert restored(process.timed_out(job), process.now).counts == (1, 0)
    process.acked(job)
    assert restored(job, process.now).counts == (0, 1)
    process.result(job)
    assert restored(job, process.now).traffic.services() == []


def test_what_is_restored_replaces_what_was_believed(process: Process) -> None:
    job = process.acked(process.sent())
    before = job.aggregate
    process.result(Scenario(job.aggregate, job.now))
    process.traffic.restore(before)
    assert process.counts == (0, 1)
    job.result()
    process.traffic.restore(job.aggregate)
    assert process.counts == (0, 0)


def test_nothing_heard_for_long_is_doubtful(process: Process) -> None:
    process.sent("job_1")
    process.acked(process.sent("job_2"))
    assert process.traffic.in_doubt(9) == []
    process.now += timedelta(seconds=36)
    assert process.traffic.in_doubt(9) == ["job_1"]
    assert process.traffic.in_doubt(9) == []  # it is being looked at
    process.now += timedelta(seconds=36)
    assert process.traffic.in_doubt(1) == ["job_1"]
    assert process.traffic.in_doubt(1) == ["job_2"]
    process.now += timedelta(minutes=2)
    process.traffic.forget("job_1")
    assert process.traffic.in_doubt(9) == ["job_2"]


def test_what_was_looked_at_is_not_looked_at_again_at_once(process: Process) -> None:
    job = process.acked(process.sent())
    process.now += timedelta(minutes=10)
    assert process.traffic.in_doubt(9) == ["job_1"]
    process.traffic.restore(job.aggregate)
    process.now += timedelta(seconds=30)
    assert process.traffic.in_doubt(9) == []


def test_what_another_process_commits_is_told_to_the_one_that_dispatched(
    process: Process,
) -> None:
    replies = Process()
    replies.traffic.is_shared = True
    job = process.sent()
    replies.acked(job, ("i-1", 4))
    (acked,) = replies.traffic.moves
    assert acked == Move(digest_of(("job_1", "step_01")), WORKING, replies.now)
    process.traffic.apply([acked])
    assert process.counts == (0, 1)
    replies.result(job)
    process.traffic.apply([*replies.traffic.moves, Move("unknown", None, process.now)])
    assert process.counts == (0, 0)
    assert process.ocr.rate > 0


def test_a_process_that_is_alone_keeps_nothing_for_others() -> None:
    alone = Process()
    alone.acked(Process().sent())
    assert alone.traffic.moves == []


def test_others_count(process: Process) -> None:
    process.sent()
    heard = process.now + timedelta(seconds=1)
    other = Seen(heard, 3, 2, 0.5, 20.0, False, True, {"i-1": Instance(4, heard)})
    third = Seen(None, 1, 1, 0.5, 10.0, False, False, {"i-2": Instance(2, heard)})
    process.traffic.learn([{"ocr": other}, {"ocr": third, "sis": Seen()}], 3, 0)
    ocr, sis = process.traffic.services()
    assert (ocr.unacknowledged, ocr.working, ocr.capacity, ocr.instances) == (5, 3, 6, 2)
    assert (ocr.heard_at, ocr.rate, ocr.has_backlog) == (heard, 1.0, True)
    assert sis.presence.value == Presence.UNKNOWN
    assert not process.traffic.is_absent("ocr", heard)
    process.traffic.learn([], 1, 0)
    assert process.counts == (1, 0)


def test_dispatchers_share_what_slots_are_free() -> None:
    rooms = []
    for rank in range(3):
        process = Process()
        busy = Seen(process.now, 0, 1, 0.0, 10.0, instances={"i-1": Instance(5, process.now)})
        process.traffic.learn([{"ocr": busy}], 3, rank)
        rooms.append(process.traffic.room("ocr"))
    assert rooms == [2, 1, 1]


def test_a_service_that_another_process_has_heard_again_is_back() -> None:
    process = Process(Limits(1, 100))
    process.timed_out(process.sent(), absent=True)
    assert process.ocr.presence.value == Presence.ABSENT
    process.traffic.learn([{"ocr": Seen(process.now)}], 1, 0)
    assert process.ocr.presence.value == Presence.ABSENT
    process.traffic.learn([{"ocr": Seen(process.now + timedelta(seconds=1))}], 1, 0)
    assert process.ocr.presence.value == Presence.PRESENT


def test_a_probe_that_a_new_instance_takes_opens_the_way() -> None:
    process = Process(Limits(2, 100))
    process.acked(process.sent("job_1"), ("i-1", 1))
    assert process.traffic.room("ocr") == 0
    assert not process.traffic.may_probe("ocr")  # the pause begins
    process.now += timedelta(minutes=1)
    assert process.traffic.may_probe("ocr")
    process.traffic.has_probed("ocr")
    assert not process.traffic.may_probe("ocr")
    probe = process.sent("job_2")
    process.acked(probe, ("i-2", 1))
    assert process.ocr.capacity == 2
    assert process.traffic.room("ocr") == 0


def test_only_one_dispatcher_probes() -> None:
    process = Process(Limits(2, 100))
    process.acked(process.sent("job_1"), ("i-1", 1))
    process.traffic.may_probe("ocr")
    process.now += timedelta(minutes=1)
    process.traffic.learn([], 2, 1)
    assert not process.traffic.may_probe("ocr")
    process.traffic.learn([], 2, 0)
    assert process.traffic.may_probe("ocr")


def test_the_rate_fades() -> None:
    process = Process(Limits(100, 100))
    for number in range(50):
        process.result(process.acked(process.sent(f"job_{number}")))
        process.now += timedelta(milliseconds=100)
    assert process.ocr.rate == pytest.approx(5.0)
    process.now += timedelta(seconds=6)
    assert 2 < process.ocr.rate < 5
    process.now += timedelta(seconds=20)
    assert process.ocr.rate == 0
    process.result(process.acked(process.sent("job_late")))
    assert process.ocr.rate == pytest.approx(0.1)
