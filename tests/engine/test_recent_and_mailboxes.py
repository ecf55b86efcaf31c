"""What an engine remembers of jobs, how their events wait for each other, and what happens when
another engine is faster."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from lucius_contract.audit import EventType, Verdict
from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import Directive, Reply
from lucius_contract.states import JobState, StepState
from lucius_orchestrator.domain.creation import new_job
from lucius_orchestrator.domain.events import CancelRequested
from lucius_orchestrator.engine.engine import EngineSettings
from lucius_orchestrator.engine.mailboxes import Letter, Mailboxes
from lucius_orchestrator.engine.recent import RecentJobs
from lucius_orchestrator.engine.telemetry import CONFLICTS
from lucius_orchestrator.ports.ledger import Claim, Conflict, LedgerUnavailable, Stored
from tests.domain.scenario import START, a_plan
from tests.engine.plane import PIPELINE, Plane, ack, heartbeat, once, request, result, turns
from tests.runner.deadlines import DEADLINE


async def test_an_event_on_a_job_that_moved_is_decided_on_what_is_stored(plane: Plane) -> None:
    directive = await plane.working()
    other = await plane.replica()
    await other.engine.cancel(directive.job_id)
    answer = await plane.reply(heartbeat(directive))
    assert (answer.verdict, answer.cancel_requested) == (Verdict.APPLIED, True)
    assert plane.metrics.count(CONFLICTS) == 1
    await plane.reply(result(directive))
    assert (await plane.job(directive.job_id)).state is JobState.CANCELLED
    assert plane.metrics.count(CONFLICTS) == 1


async def test_an_event_that_writes_nothing_is_decided_on_what_is_stored(plane: Plane) -> None:
    directive = await plane.working()
    await plane.engine.pause(directive.job_id)
    other = await plane.replica()
    await other.engine.resume(directive.job_id)
    assert (await plane.engine.pause(directive.job_id)).job.state is JobState.PAUSING
    assert (await plane.job(directive.job_id)).state is JobState.PAUSING


async def test_of_engines_that_get_one_result_at_once_one_applies_it(plane: Plane) -> None:
    directive = await plane.working(request(**PIPELINE))
    engines = [plane, *[await plane.replica() for _ in range(4)]]
    for engine in engines:
        await engine.reply(heartbeat(directive))
    answers = await asyncio.gather(*(engine.reply(result(directive)) for engine in engines))
    assert sorted(answer.verdict for answer in answers) == [
        Verdict.APPLIED,
        *[Verdict.DUPLICATE] * 4,
    ]
    assert await plane.dispatch() == 1
    assert len(await plane.directives("embedding")) == 1
    moves = await plane.events(directive.job_id, EventType.STEP_STATE_CHANGED)
    assert [move.target for move in moves].count(StepState.SUCCEEDED) == 1


async def test_a_job_that_always_changes_is_given_back_to_the_sender(plane: Plane) -> None:
    directive = await plane.working()
    busy = await plane.replica(EngineSettings(max_conflicts=7))
    busy.detour.fail("commit", error=Conflict(directive.job_id))
    with pytest.raises(ContractError) as refusal:
        await busy.reply(result(directive))
    assert refusal.value.code is ErrorCode.UNAVAILABLE
    assert busy.metrics.count(CONFLICTS) == busy.detour.calls["commit"] == 7
    busy.detour.heal()
    assert (await busy.reply(result(directive))).verdict is Verdict.APPLIED


async def test_a_job_that_is_removed_behind_the_memory_is_not_found(plane: Plane) -> None:
    directive = await plane.working()
    other = await plane.replica()
    await other.reply(result(directive))
    await other.ledger.remove(await other.stored(directive.job_id))
    with pytest.raises(ContractError) as refusal:
        await plane.reply(heartbeat(directive))
    assert refusal.value.code is ErrorCode.JOB_NOT_FOUND


async def test_a_commit_that_was_made_although_it_seemed_to_fail_is_noticed(plane: Plane) -> None:
    directive = await plane.working()

    async def lose_the_answer(*_: Any) -> None:
        raise LedgerUnavailable("the connection was cut")

    plane.detour.after["commit"] = once(lose_the_answer)
    with pytest.raises(LedgerUnavailable):
        await plane.reply(result(directive))
    assert (await plane.reply(result(directive))).verdict is Verdict.DUPLICATE


async def test_what_was_committed_last_need_not_be_read_again(plane: Plane) -> None:
    directive = await plane.working()
    plane.detour.calls.clear()
    await plane.reply(heartbeat(directive))
    await plane.reply(result(directive))
    assert plane.detour.calls["load"] == 0


async def test_an_engine_that_remembers_nothing_reads_every_time(plane: Plane) -> None:
    forgetful = await plane.replica(EngineSettings(recent_bytes=0))
    directive = await forgetful.working()
    forgetful.detour.calls.clear()
    await forgetful.reply(heartbeat(directive))
    await forgetful.reply(result(directive))
    assert forgetful.detour.calls["load"] == 2


async def together(plane: Plane, directive: Directive, *replies: Reply) -> list[Any]:
    """Answers and refusals of replies that gather while a heartbeat is being committed."""
    held, go_on = asyncio.Event(), asyncio.Event()

    async def hold(*_: Any) -> None:
        held.set()
        await go_on.wait()

    plane.detour.calls.clear()
    plane.detour.before["commit"] = once(hold)
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(plane.reply(heartbeat(directive)))
        await held.wait()
        answers = asyncio.gather(*(plane.reply(one) for one in replies), return_exceptions=True)
        await turns()
        go_on.set()
        return await answers


async def test_replies_that_wait_together_are_judged_in_order_and_committed_together(
    plane: Plane,
) -> None:
    directive = await plane.working(request(**PIPELINE))
    replies = (ack(directive), heartbeat(directive, 0.5), result(directive), result(directive))
    answers = await together(plane, directive, *replies)
    assert [answer.verdict for answer in answers] == [
        Verdict.DUPLICATE,
        Verdict.APPLIED,
        Verdict.APPLIED,
        Verdict.DUPLICATE,
    ]
    assert plane.detour.calls["commit"] == 2
    assert plane.metrics.count(CONFLICTS) == 0
    seqs = [event.seq for event in await plane.events(directive.job_id)]
    assert seqs == list(range(1, len(seqs) + 1))
    assert (await plane.directive("embedding")).job_id == directive.job_id


async def test_a_reply_that_is_refused_refuses_no_other(plane: Plane) -> None:
    directive = await plane.working()
    stranger = directive.model_copy(update={"tenant_id": "other"})
    first, refusal, last = await together(
        plane, directive, heartbeat(directive), result(stranger), result(directive)
    )
    assert (first.verdict, last.verdict) == (Verdict.APPLIED, Verdict.APPLIED)
    assert isinstance(refusal, ContractError)
    assert refusal.code is ErrorCode.JOB_NOT_FOUND


async def test_replies_that_wait_together_are_judged_again_after_a_conflict(plane: Plane) -> None:
    directive = await plane.working()
    other = await plane.replica()
    await other.engine.cancel(directive.job_id)
    first, second = await together(plane, directive, heartbeat(directive), result(directive))
    assert (first.verdict, first.cancel_requested) == (Verdict.APPLIED, True)
    assert second.verdict is Verdict.APPLIED
    assert (await plane.job(directive.job_id)).state is JobState.CANCELLED


async def test_commands_and_replies_of_a_job_wait_for_each_other(plane: Plane) -> None:
    directive = await plane.working()
    job_id = directive.job_id
    outcomes = await asyncio.gather(
        plane.reply(heartbeat(directive)),
        plane.engine.pause(job_id),
        plane.engine.cancel(job_id),
        plane.reply(result(directive)),
    )
    assert outcomes[3].verdict is Verdict.APPLIED
    assert plane.metrics.count(CONFLICTS) == 0
    assert (await plane.job(job_id)).state is JobState.CANCELLED


def a_job(job_id: str) -> Stored:
    return Stored(new_job(a_plan(1, job_id=job_id), START), 1, None)


JOBS = [a_job(f"job_{number}") for number in range(4)]
WEIGHT = sum(step.directive_bytes for step in JOBS[0].aggregate.steps)


def held(recent: RecentJobs) -> list[int]:
    return [number for number in range(4) if recent.get(f"job_{number}")]


def test_a_job_is_remembered_as_it_was_last_put() -> None:
    recent = RecentJobs(10 * WEIGHT)
    recent.put(JOBS[0])
    later = JOBS[0]._replace(version=2)
    recent.put(later)
    assert recent.get("job_0") is later
    assert recent.get("job_1") is None


def test_beyond_the_limit_the_longest_unused_are_forgotten() -> None:
    recent = RecentJobs(2 * WEIGHT)
    for number in (0, 1, 0, 2):
        recent.put(JOBS[number])
    assert held(recent) == [0, 2]


def test_a_job_that_is_put_again_weighs_once() -> None:
    recent = RecentJobs(2 * WEIGHT)
    for number in (0, 1, 1, 1):
        recent.put(JOBS[number])
    assert held(recent) == [0, 1]


def test_what_is_dropped_makes_room() -> None:
    recent = RecentJobs(2 * WEIGHT)
    recent.put(JOBS[0])
    recent.put(JOBS[1])
    recent.drop("job_1")
    recent.drop("job_1")
    recent.put(JOBS[2])
    assert held(recent) == [0, 2]


def test_a_job_that_is_heavier_than_the_limit_is_not_kept() -> None:
    recent = RecentJobs(WEIGHT - 1)
    recent.put(JOBS[0])
    assert held(recent) == []


async def test_a_job_that_has_ended_is_not_kept(plane: Plane) -> None:
    directive = await plane.working()
    recent = RecentJobs(1_000_000)
    recent.put(await plane.stored(directive.job_id))
    assert recent.get(directive.job_id) is not None
    await plane.reply(result(directive))
    recent.put(await plane.stored(directive.job_id))
    assert recent.get(directive.job_id) is None


CLAIM = cast(Claim, object())


class Office:
    """Mailboxes whose work a test lets go on, batch by batch."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.outcomes: list[Callable[[], Awaitable[None]]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.mailboxes = Mailboxes(self._work, self._ready)

    def send(
        self, name: str, job_id: str = "job", claim: Claim | None = None
    ) -> "asyncio.Task[str]":
        event = CancelRequested(name)
        return asyncio.create_task(self.mailboxes.send(job_id, [event], claim))

    def hold(self) -> asyncio.Event:
        """The next batch that has no outcome yet waits for this."""
        go_on = asyncio.Event()

        async def wait() -> None:
            await go_on.wait()

        self.outcomes.append(wait)
        return go_on

    async def _ready(self) -> None:
        if not self.open.is_set():
            await self.open.wait()

    async def _work(self, _job_id: str, letters: Sequence[Letter[str]]) -> list[str]:
        names = [str(getattr(event, "by", None)) for one in letters for event in one.events]
        self.batches.append(names)
        if self.outcomes:
            await self.outcomes.pop(0)()
        return [f"done {name}" for name in names]


async def answers(*tasks: "asyncio.Task[str]") -> list[str]:
    async with asyncio.timeout(DEADLINE):
        return await asyncio.gather(*tasks)


async def test_a_letter_that_comes_alone_is_worked_on_at_once() -> None:
    office = Office()
    assert await answers(office.send("a")) == ["done a"]
    assert await answers(office.send("b")) == ["done b"]
    assert office.batches == [["a"], ["b"]]


async def test_letters_that_gather_are_worked_on_together_in_order() -> None:
    office = Office()
    go_on = office.hold()
    tasks = [office.send(name) for name in "abcd"]
    await turns()
    assert office.batches == [["a"]]
    go_on.set()
    assert await answers(*tasks) == ["done a", "done b", "done c", "done d"]
    assert office.batches == [["a"], ["b", "c", "d"]]


async def test_what_comes_before_the_ledger_is_ready_is_worked_on_together() -> None:
    office = Office()
    office.open.clear()
    tasks = [office.send(name) for name in "abc"]
    await turns()
    assert office.batches == []
    office.open.set()
    assert await answers(*tasks) == ["done a", "done b", "done c"]
    assert office.batches == [["a", "b", "c"]]


async def test_one_who_gives_up_while_the_ledger_is_not_ready_passes_its_turn_on() -> None:
    office = Office()
    office.open.clear()
    first, second = office.send("a"), office.send("b")
    await turns()
    first.cancel()
    await turns()
    office.open.set()
    assert await answers(second) == ["done b"]
    assert office.batches == [["b"]]


async def test_letters_of_other_jobs_do_not_wait() -> None:
    office = Office()
    go_on = office.hold()
    first = office.send("a", "job_1")
    await turns()
    assert await answers(office.send("b", "job_2")) == ["done b"]
    go_on.set()
    assert await answers(first) == ["done a"]


async def test_a_batch_is_bounded() -> None:
    office = Office()
    go_on = office.hold()
    tasks = [office.send(f"{number}") for number in range(41)]
    await turns()
    go_on.set()
    assert len(await answers(*tasks)) == 41
    assert [len(batch) for batch in office.batches] == [1, 16, 16, 8]


async def test_a_batch_has_at_most_one_claim() -> None:
    office = Office()
    go_on = office.hold()
    first = office.send("a")
    rest = [
        office.send("b", claim=CLAIM),
        office.send("c"),
        office.send("d", claim=CLAIM),
        office.send("e"),
        office.send("f", claim=CLAIM),
    ]
    await turns()
    go_on.set()
    await answers(first, *rest)
    assert office.batches == [["a"], ["b", "c"], ["d", "e"], ["f"]]


async def test_an_error_is_told_to_all_who_were_worked_on_together_and_to_no_other() -> None:
    office = Office()
    go_on = office.hold()

    async def fail() -> None:
        raise LedgerUnavailable("away")

    office.outcomes.append(fail)
    first, *others = [office.send(name) for name in "abc"]
    await turns()
    go_on.set()
    assert await answers(first) == ["done a"]
    outcomes = await asyncio.gather(*others, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [LedgerUnavailable] * 2
    assert await answers(office.send("d")) == ["done d"]


async def test_a_letter_whose_sender_gave_up_is_not_worked_on() -> None:
    office = Office()
    go_on = office.hold()
    first, second, third, fourth = (office.send(name) for name in "abcd")
    await turns()
    third.cancel()
    await turns()
    go_on.set()
    assert await answers(first, second, fourth) == ["done a", "done b", "done d"]
    assert office.batches == [["a"], ["b", "d"]]
    assert third.cancelled()


async def test_when_the_one_who_works_is_cancelled_another_takes_over() -> None:
    office = Office()
    go_on = office.hold()
    office.hold()
    first, second, third, fourth = (office.send(name) for name in "abcd")
    await turns()
    go_on.set()
    await turns()
    assert office.batches == [["a"], ["b", "c", "d"]]
    second.cancel()
    assert await answers(first, third, fourth) == ["done a", "done c", "done d"]
    assert office.batches[2:] == [["c", "d"]]
    assert second.cancelled()


async def test_one_who_gives_up_while_another_works_for_it_disturbs_nobody() -> None:
    office = Office()
    go_on, go_on_too = office.hold(), office.hold()
    first, second, third, fourth = (office.send(name) for name in "abcd")
    await turns()
    go_on.set()
    await turns()
    third.cancel()
    await turns()
    go_on_too.set()
    assert await answers(first, second, fourth) == ["done a", "done b", "done d"]
    assert await answers(office.send("e")) == ["done e"]


async def test_one_who_is_cancelled_when_its_turn_comes_passes_it_on() -> None:
    office = Office()
    go_on = office.hold()
    second, third = office.send("b"), office.send("c")

    async def release() -> None:
        await turns()
        go_on.set()

    releasing = asyncio.create_task(release())
    assert await office.mailboxes.send("job", [CancelRequested("a")]) == "done a"
    second.cancel()  # it has been given its turn and has not run yet
    assert await answers(third) == ["done c"]
    assert office.batches == [["a"], ["c"]]
    await releasing
