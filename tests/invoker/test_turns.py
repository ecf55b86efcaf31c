"""Attempts of workflows and the window of their service: who may open, who waits, who is next."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from lucius_bus.memory import MemoryBus
from lucius_contract.messages import ResultStatus
from lucius_contract.states import JobState, StepState
from lucius_contract.timeouts import RECOVERY_GRACE
from lucius_orchestrator.domain.aggregate import Engine, Turn
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.domain.window import Limits
from lucius_orchestrator.domain.workflow import TimerName
from lucius_orchestrator.engine.traffic_reports import TrafficReporter
from lucius_orchestrator.ports.ledger import LedgerUnavailable
from lucius_orchestrator.temporal.watch import WorkflowWatch
from tests.engine.plane import Plane, ack, request, result
from tests.invoker.stage import InvokerStage, RecordedWorkflows, attempt
from tests.ledger.backends import Clock, MemoryBackend
from tests.names import unique

ONE = Limits(1, 1)
SECOND = "2" * 32
LEASE = timedelta(seconds=31)


@pytest.fixture
async def plane() -> Plane:
    backend = MemoryBackend(Clock())
    await backend.start()
    return Plane.new(backend, MemoryBus(backend.clock), ONE)


@pytest.fixture
def stage(plane: Plane) -> InvokerStage:
    return InvokerStage(plane)


def another() -> dict[str, Any]:
    """What makes a request another one."""
    return {"idempotency_key": unique("job")}


async def asks(stage: InvokerStage, job_id: str, number: int = 1) -> bool:
    lease_id = f"{number}" * 32
    opened = await stage.desk.open_attempt(attempt(job_id, number, lease_id), stage.lease_end())
    return opened.is_open


async def turn(stage: InvokerStage, job_id: str) -> Turn | None:
    return (await stage.plane.step(job_id)).turn


async def behind(stage: InvokerStage, count: int = 1) -> list[str]:
    """Jobs that wait for their turn, and not to themselves."""
    jobs = [await stage.submitted(**another()) for _ in range(count)]
    assert [await asks(stage, job_id) for job_id in jobs] == [False] * count
    return jobs


async def picks_up(stage: InvokerStage, job_id: str) -> None:
    """The service has room again."""
    await stage.desk.publish(attempt(job_id))
    (directive,) = await stage.plane.directives()
    await stage.plane.reply(ack(directive))


async def test_an_attempt_of_a_service_with_room_is_opened_with_one_commit(
    stage: InvokerStage,
) -> None:
    job_id, calls = await stage.submitted(), stage.plane.detour.calls
    calls.clear()
    assert await asks(stage, job_id)
    assert (calls["load"], calls["commit"]) == (0, 1)


async def test_a_process_that_does_not_know_the_job_reads_it_once(
    stage: InvokerStage, plane: Plane
) -> None:
    job_id = await stage.submitted()
    other = InvokerStage(await plane.replica(limits=ONE))
    assert await asks(other, job_id)
    assert (other.plane.detour.calls["load"], other.plane.detour.calls["commit"]) == (1, 1)


async def test_an_attempt_of_a_full_service_waits_and_its_workflow_with_it(
    stage: InvokerStage,
) -> None:
    await stage.opened()
    (job_id,) = await behind(stage)
    assert await turn(stage, job_id) is Turn.WAITING
    assert (await stage.next(job_id))["action"] == "WAIT"
    assert await stage.plane.states(job_id) == (JobState.QUEUED, StepState.PENDING)
    commits = stage.plane.detour.calls["commit"]
    assert not await asks(stage, job_id)
    assert stage.plane.detour.calls["commit"] == commits


async def test_of_many_that_ask_at_once_as_many_are_opened_as_there_is_room(
    stage: InvokerStage,
) -> None:
    jobs = [await stage.submitted(**another()) for _ in range(20)]
    assert sum(await asyncio.gather(*(asks(stage, job_id) for job_id in jobs))) == 1


async def test_nobody_passes_those_that_wait(stage: InvokerStage) -> None:
    name = await stage.opened()
    (first,) = await behind(stage)
    await picks_up(stage, name.job_id)
    await behind(stage)
    assert await stage.plane.dispatcher.run_once() == 1
    assert await turn(stage, first) is Turn.GRANTED


async def test_a_turn_is_granted_when_the_service_has_room_and_told_to_the_workflow(
    stage: InvokerStage, plane: Plane
) -> None:
    name = await stage.opened()
    (job_id,) = await behind(stage)
    assert await plane.dispatcher.run_once() == 0
    await picks_up(stage, name.job_id)
    assert await plane.dispatcher.run_once() == 1
    assert (await stage.next(job_id))["action"] == "OPEN"
    signals = [claim.row.body for claim in await plane.ledger.claim(OutboxKind.SIGNAL, 9, LEASE)]
    assert [body["signal"] for body in signals if body["jobId"] == job_id] == ["job_moved"]
    assert await asks(stage, job_id)
    assert await turn(stage, job_id) is None
    await picks_up(stage, job_id)


async def test_a_turn_that_was_granted_takes_the_room_until_its_attempt_is_picked_up(
    stage: InvokerStage, plane: Plane
) -> None:
    name = await stage.opened()
    first, *_ = await behind(stage, 3)
    await picks_up(stage, name.job_id)
    assert await plane.dispatch() == 1
    reporter = TrafficReporter(plane.engine, dispatches=True)
    for look in (lambda: asks(stage, first), lambda: stage.desk.publish(attempt(first))):
        for _ in range(3):
            plane.later(seconds=61)
            await reporter.run_once()  # it looks at what it has not heard of
            assert await plane.dispatch() == 0
        await look()
    assert await plane.dispatch() == 0
    (directive,) = await plane.directives()
    await plane.reply(ack(directive))
    assert await plane.dispatch() == 1


async def test_an_attempt_that_is_opened_while_it_waits_leaves_its_turn_to_others(
    stage: InvokerStage, plane: Plane
) -> None:
    name = await stage.opened()
    (job_id,) = await behind(stage)
    await picks_up(stage, name.job_id)
    plane.traffic.set_backlog("ocr", waits=False)
    assert await asks(stage, job_id)
    await picks_up(stage, job_id)
    assert await plane.dispatcher.run_once() == 1
    assert plane.traffic.room("ocr") == 1
    assert (await plane.step(job_id)).state is StepState.IN_PROGRESS
    plane.later(LEASE)
    assert await plane.dispatcher.run_once() == 0


async def test_a_job_that_is_cancelled_while_it_waits_gives_its_turn_away(
    stage: InvokerStage, plane: Plane
) -> None:
    name = await stage.opened()
    cancelled, other = await behind(stage, 2)
    await stage.desk.command(cancelled, "cancel", "ada")
    await picks_up(stage, name.job_id)
    assert await plane.dispatch() == 2
    assert await turn(stage, other) is Turn.GRANTED
    assert (await plane.stored(cancelled)).aggregate.job.state is JobState.CANCELLED


async def test_jobs_that_are_paused_keep_their_places_and_begin_one_by_one(
    stage: InvokerStage, plane: Plane
) -> None:
    name = await stage.opened()
    jobs = await behind(stage, 3)
    for job_id in jobs:
        await stage.desk.command(job_id, "pause", "ada")
    await picks_up(stage, name.job_id)
    await plane.dispatch()
    assert [await turn(stage, job_id) for job_id in jobs] == [Turn.WAITING] * 3
    for job_id in jobs:
        following = await stage.desk.command(job_id, "resume", "ada")
        assert following["action"] == "WAIT"
    plane.later(minutes=1)
    assert await plane.dispatch() == 1
    assert [await turn(stage, job_id) for job_id in jobs].count(Turn.GRANTED) == 1


async def test_a_job_that_was_paused_with_its_turn_opens_when_it_is_resumed(
    stage: InvokerStage, plane: Plane
) -> None:
    name = await stage.opened()
    (job_id,) = await behind(stage)
    await picks_up(stage, name.job_id)
    await plane.dispatch()
    await stage.desk.command(job_id, "pause", "ada")
    assert not await asks(stage, job_id)
    assert await turn(stage, job_id) is Turn.GRANTED
    following = await stage.desk.command(job_id, "resume", "ada")
    assert following["action"] == "OPEN"
    assert await asks(stage, job_id)


async def test_a_grant_survives_a_restart_of_the_invoker(stage: InvokerStage, plane: Plane) -> None:
    name = await stage.opened()
    (job_id,) = await behind(stage)
    await picks_up(stage, name.job_id)
    await plane.dispatch()
    restarted = InvokerStage(await plane.replica(limits=ONE))
    await restarted.opened(**another())
    assert await asks(restarted, job_id)


async def test_a_dispatcher_that_dies_before_the_grant_leaves_it_to_another(
    stage: InvokerStage, plane: Plane
) -> None:
    name = await stage.opened()
    (job_id,) = await behind(stage)
    await picks_up(stage, name.job_id)
    plane.detour.fail("commit", error=LedgerUnavailable("gone"))
    assert await plane.dispatcher.run_once() == 1
    plane.detour.heal()
    assert await turn(stage, job_id) is Turn.WAITING
    assert plane.traffic.room("ocr") == 1
    other = await plane.replica(limits=ONE)
    assert await other.dispatcher.run_once() == 0
    plane.later(LEASE)
    assert await other.dispatcher.run_once() == 1
    assert await turn(stage, job_id) is Turn.GRANTED


async def test_the_turn_of_a_job_that_was_removed_is_ended(
    stage: InvokerStage, plane: Plane
) -> None:
    name = await stage.opened()
    await behind(stage)
    await picks_up(stage, name.job_id)
    plane.detour.answers["load"] = None
    plane.detour.claims_are_blind = True
    assert await plane.dispatcher.run_once() == 1
    plane.later(LEASE)
    assert await plane.dispatcher.run_once() == 0
    assert plane.traffic.room("ocr") == 1


async def test_an_attempt_that_was_refused_takes_no_room(stage: InvokerStage, plane: Plane) -> None:
    job_id = await stage.submitted()
    plane.detour.fail("commit", error=LedgerUnavailable("gone"))
    with pytest.raises(LedgerUnavailable):
        await asks(stage, job_id)
    plane.detour.heal()
    assert plane.traffic.room("ocr") == 1
    late = await stage.desk.open_attempt(attempt(job_id), plane.clock())
    assert not late.is_open
    assert plane.traffic.room("ocr") == 1


async def test_a_retry_takes_the_place_of_the_attempt_before_it(
    stage: InvokerStage, plane: Plane
) -> None:
    name = await stage.opened()
    await stage.desk.publish(name)
    await misses_its_ack(stage, name.job_id)
    assert plane.traffic.room("ocr") == 0
    plane.later(minutes=2)
    assert await asks(stage, name.job_id, 2)
    assert plane.traffic.room("ocr") == 0


async def test_a_retry_stands_behind_those_that_wait(stage: InvokerStage, plane: Plane) -> None:
    name = await stage.opened()
    await stage.desk.publish(name)
    (job_id,) = await behind(stage)
    await misses_its_ack(stage, name.job_id)
    plane.later(minutes=2)
    assert not await asks(stage, name.job_id, 2)
    assert await plane.dispatch() == 1
    assert await turn(stage, job_id) is Turn.GRANTED


async def misses_its_ack(stage: InvokerStage, job_id: str, number: int = 1) -> None:
    step = await stage.plane.step(job_id)
    assert step.ack_deadline is not None
    stage.plane.clock.now = step.ack_deadline
    name = attempt(job_id, number, f"{number}" * 32)
    await stage.desk.report(name, TimerName.ACK_TIMEOUT, step.ack_deadline)


async def test_a_late_ack_counts_whatever_becomes_of_the_turn_of_the_next_attempt(
    stage: InvokerStage, plane: Plane
) -> None:
    name = await stage.opened()
    await stage.desk.publish(name)
    (directive,) = await plane.directives()
    (first,) = await behind(stage)
    await misses_its_ack(stage, name.job_id)
    plane.later(minutes=2)
    assert not await asks(stage, name.job_id, 2)
    await plane.reply(ack(directive))
    await stage.desk.command(first, "cancel", "ada")
    assert await plane.dispatch() == 2
    assert plane.traffic.seen(dispatches=True)["ocr"].working == 1


async def test_an_invoker_that_starts_learns_what_is_with_services(
    stage: InvokerStage, plane: Plane
) -> None:
    name = await stage.opened()
    await stage.desk.publish(name)
    restarted = await plane.replica(limits=ONE)
    plane.later(seconds=1)
    await TrafficReporter(restarted.engine, dispatches=True).restore()
    assert restarted.traffic.room("ocr") == 0


async def test_attempts_of_a_service_that_is_down_do_not_count(
    stage: InvokerStage, plane: Plane
) -> None:
    job_id = await stage.submitted()
    for number in range(1, 6):
        assert await asks(stage, job_id, number)
        await stage.desk.publish(attempt(job_id, number, f"{number}" * 32))
        await misses_its_ack(stage, job_id, number)
        plane.later(minutes=20)
    step = await plane.step(job_id)
    assert (step.state, step.attempt_no, step.unanswered) == (StepState.FAILED_RETRY, 5, 5)


async def test_attempts_of_a_service_that_is_heard_count(stage: InvokerStage, plane: Plane) -> None:
    job_id, other = await stage.submitted(), await stage.published(**another())
    await plane.reply(ack(other))
    assert await asks(stage, job_id)
    await stage.desk.publish(attempt(job_id))
    plane.later(seconds=1)
    await plane.reply(result(other, ResultStatus.SUCCEEDED))
    await misses_its_ack(stage, job_id)
    assert (await plane.step(job_id)).unanswered == 0


async def test_directives_of_the_ledger_engine_and_attempts_take_turns(
    stage: InvokerStage, plane: Plane
) -> None:
    name = await stage.opened()
    (driven,) = await behind(stage)
    other = await plane.submit(request(engine=Engine.LEDGER, **another()))
    assert await plane.dispatch() == 0
    await picks_up(stage, name.job_id)
    assert await plane.dispatch() == 1
    assert await turn(stage, driven) is Turn.GRANTED
    assert await plane.directives() == []
    assert await asks(stage, driven)
    await picks_up(stage, driven)
    assert await plane.dispatch() == 1
    (directive,) = await plane.directives()
    assert directive.job_id == other


@pytest.mark.parametrize(
    ("waited", "pause"),
    [
        (timedelta(minutes=1), timedelta(minutes=2)),
        (timedelta(minutes=10), timedelta(minutes=20)),
        (timedelta(hours=5), timedelta(hours=1)),
    ],
)
async def test_a_job_that_waits_for_its_turn_is_looked_at_ever_more_rarely(
    stage: InvokerStage, plane: Plane, waited: timedelta, pause: timedelta
) -> None:
    await stage.opened()
    (job_id,) = await behind(stage)
    workflows = RecordedWorkflows()
    await workflows.start({"jobId": job_id, "restarts": False})
    plane.later(waited + timedelta(seconds=1))
    await WorkflowWatch(plane.engine, workflows).run_once()
    stored = await plane.stored(job_id)
    assert stored.timer is not None
    assert nearly(stored.timer.at - plane.clock(), pause)
    await stage.desk.command(job_id, "cancel", "ada")


def nearly(one: timedelta, other: timedelta) -> bool:
    return abs(one - other) <= timedelta(seconds=5)


async def test_a_job_that_does_not_wait_is_looked_at_a_grace_later(
    stage: InvokerStage, plane: Plane
) -> None:
    job_id = await stage.submitted()
    workflows = RecordedWorkflows()
    await workflows.start({"jobId": job_id, "restarts": False})
    plane.later(hours=1)
    await WorkflowWatch(plane.engine, workflows).run_once()
    stored = await plane.stored(job_id)
    assert stored.timer is not None
    assert stored.timer.at == plane.clock() + RECOVERY_GRACE


class TwoProcesses:
    """One grants turns, the other opens attempts and publishes; they report to each other."""

    def __init__(self, granting: InvokerStage, opening: InvokerStage) -> None:
        self.granting, self.opening = granting, opening
        self.reporters = [
            TrafficReporter(stage.plane.engine, dispatches=True) for stage in (granting, opening)
        ]

    async def report(self) -> None:
        for _ in range(2):
            self.granting.plane.later(seconds=1)
            for reporter in self.reporters:
                await reporter.run_once()

    def counted(self) -> tuple[int, int]:
        """What each has of its own with the service, and does not work on yet."""
        seen = [
            stage.plane.engine.traffic.seen(dispatches=True)
            for stage in (self.granting, self.opening)
        ]
        one, other = (each["ocr"].unacknowledged for each in seen)
        return one, other

    @property
    def working(self) -> int:
        return self.granting.plane.engine.traffic.seen(dispatches=True)["ocr"].working


@pytest.fixture
async def two(plane: Plane) -> tuple[TwoProcesses, str]:
    """A job waits; its turn is granted by the one, its attempt opened by the other."""
    two = TwoProcesses(InvokerStage(plane), InvokerStage(await plane.replica(limits=ONE)))
    await two.report()
    name = await two.opening.opened()
    (job_id,) = await behind(two.opening)
    await picks_up(two.opening, name.job_id)
    await two.report()
    assert await plane.dispatch() == 1
    assert two.counted() == (1, 0)
    return two, job_id


async def test_who_granted_a_turn_keeps_account_of_what_another_publishes(
    two: tuple[TwoProcesses, str],
) -> None:
    both, job_id = two
    assert await asks(both.opening, job_id)
    await both.report()
    assert both.counted() == (1, 0)
    await both.opening.desk.publish(attempt(job_id))
    await both.report()
    assert both.counted() == (1, 0)
    (directive,) = await both.opening.plane.directives()
    await both.opening.plane.reply(ack(directive))
    await both.report()
    assert both.counted() == (0, 0)
    assert both.working == 1
    await both.opening.plane.reply(result(directive))
    await both.report()
    assert both.working == 0


async def test_an_ack_that_another_misses_does_not_open_the_window(
    two: tuple[TwoProcesses, str],
) -> None:
    both, job_id = two
    await asks(both.opening, job_id)
    await both.opening.desk.publish(attempt(job_id))
    await both.report()
    await misses_its_ack(both.opening, job_id)
    await both.report()
    seen = both.granting.plane.engine.traffic.seen(dispatches=True)["ocr"]
    assert both.counted() == (1, 0)
    assert (seen.window, seen.rate) == (1.0, 0.0)
    both.granting.plane.later(minutes=2)
    await asks(both.opening, job_id, 2)
    await both.report()
    assert sum(both.counted()) <= 1
