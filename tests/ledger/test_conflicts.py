"""Versions: a commit names the one that it builds on, and of two writers one wins."""

from collections.abc import Callable

import pytest

from lucius_contract.messages import Outcome
from lucius_contract.states import JobState
from lucius_orchestrator.domain.decision import Decision, apply
from lucius_orchestrator.domain.events import (
    AckReceived,
    Event,
    HeartbeatReceived,
    OutboxFailed,
    OutboxSent,
)
from lucius_orchestrator.ports.ledger import Conflict, Ledger, Stored
from tests.ledger.jobs import TENANT, Pair, Story, World, together
from tests.ledger.view import assert_unchanged, view


async def test_commits_follow_each_other_without_a_load(ledger: Ledger, world: World) -> None:
    job = await world.create(steps=3)
    versions = [job.stored.version]
    while not job.ended:
        await job.happens(job.result())
        versions.append(job.stored.version)
        assert await ledger.load(job.job_id) == job.stored
    assert len(set(versions)) == len(versions) == 4


DECISIONS: dict[str, Callable[[Story], Decision]] = {
    "a reply": lambda job: job.decide(job.result()),
    "another attempt later": lambda job: job.decide(job.result(Outcome.FAILED_RETRY)),
    "the end, with a dead letter": lambda job: job.decide(job.result(Outcome.FAILED_FINAL)),
    "a mark": lambda job: job.decide(OutboxSent(*job.identity)),
    "a mark and a dead letter": lambda job: job.decide(OutboxFailed(*job.identity)),
    "a heartbeat": lambda job: job.decide(HeartbeatReceived(*job.identity, TENANT)),
    "a refusal": lambda job: job.decide(AckReceived(*job.identity, "other")),
}


@pytest.mark.parametrize("name", DECISIONS)
async def test_a_commit_on_an_older_version_is_a_conflict_and_writes_nothing(
    ledger: Ledger, world: World, name: str
) -> None:
    await world.create(entry="key:bystander")
    job = await world.create(steps=2)
    (claim,) = [one for one in await world.claim() if one.job_id == job.job_id]
    stale, decision = job.stored, DECISIONS[name](job)
    await job.acked()
    before = await view(ledger)
    with pytest.raises(Conflict) as refusal:
        await ledger.commit(stale, decision, claim if decision.marks else None)
    assert refusal.value.job_id == job.job_id
    assert_unchanged(before, await view(ledger))
    assert await ledger.find(TENANT, "key:bystander") is not None
    await job.succeeds()


async def test_a_commit_that_changes_steps_alone_moves_the_version_too(
    ledger: Ledger, world: World
) -> None:
    job = await world.create()
    await job.acked()
    stale, later = job.stored, job.decide(job.result())
    heartbeat = await job.heartbeat({"fraction": 0.5})
    assert not heartbeat.job
    assert job.stored.version != stale.version
    with pytest.raises(Conflict):
        await ledger.commit(stale, later)


async def test_a_commit_on_a_job_that_is_gone_is_a_conflict(ledger: Ledger, world: World) -> None:
    job = await (await world.create()).succeeds()
    late = job.decide(AckReceived("step_01", 1, "stray", TENANT))
    await ledger.remove(job.stored)
    with pytest.raises(Conflict):
        await ledger.commit(job.stored, late)
    assert await ledger.load(job.job_id) is None
    assert await ledger.events(job.job_id) == []


async def test_of_many_writers_on_one_version_one_wins(ledgers: Pair, world: World) -> None:
    job = await world.create(steps=2)
    for _ in range(3):
        decisions = [
            job.decide(HeartbeatReceived(*job.identity, TENANT, {"note": str(n)}))
            for n in range(10)
        ]
        answers = await together(
            *(ledgers[n % 2].commit(job.stored, each) for n, each in enumerate(decisions))
        )
        ((number, winner),) = [
            (n, answer) for n, answer in enumerate(answers) if isinstance(answer, Stored)
        ]
        assert sum(isinstance(answer, Conflict) for answer in answers) == 9
        assert winner.aggregate == apply(job.aggregate, decisions[number])
        assert await ledgers[0].load(job.job_id) == await ledgers[1].load(job.job_id) == winner
        job.trail += decisions[number].events
        assert await ledgers[1].events(job.job_id) == job.trail
        job.stored = winner


async def test_jobs_do_not_stand_in_each_others_way(ledgers: Pair, world: World) -> None:
    """Commits of many jobs at once, one of them on an older version."""
    jobs = await world.create_many(20)
    stale = jobs[7].stored
    await jobs[7].acked()
    decisions = [job.decide(job.result()) for job in jobs]
    answers = await together(
        *(
            ledgers[n % 2].commit(stale if n == 7 else job.stored, decision)
            for n, (job, decision) in enumerate(zip(jobs, decisions, strict=True))
        )
    )
    assert [n for n, answer in enumerate(answers) if not isinstance(answer, Stored)] == [7]
    assert isinstance(answers[7], Conflict)
    seen = await view(ledgers[0])
    states = [seen.jobs[job.job_id].job.state for job in jobs]
    assert states == [JobState.SUCCEEDED] * 7 + [JobState.IN_PROGRESS] + [JobState.SUCCEEDED] * 12
    assert seen.in_flight == {"total": 1, "mode DEFAULT": 1, f"tenant {TENANT}": 1}


async def test_writers_that_decide_again_after_a_conflict_lose_nothing(
    ledgers: Pair, world: World
) -> None:
    """Six writers, four strays each, on one job."""
    job = await world.create()

    async def written(ledger: Ledger, event: Event) -> bool:
        stored = await ledger.load(job.job_id)
        assert stored is not None
        try:
            await Story(ledger, job.clock, stored).happens(event)
        except Conflict:
            return False
        return True

    async def count(ledger: Ledger, writer: int) -> None:
        for number in range(4):
            stray = AckReceived("step_01", 9, f"{writer}.{number}", TENANT)
            for _ in range(200):
                if await written(ledger, stray):
                    break

    assert await together(*(count(ledgers[n % 2], n) for n in range(6))) == [None] * 6
    stored = await ledgers[0].load(job.job_id)
    assert stored is not None
    assert stored.aggregate.steps[0].stray_replies == 24
    events = await ledgers[1].events(job.job_id)
    assert [event.seq for event in events] == list(range(1, 2 + 24 + 1))
