"""`in_states`, `ended`, `remove`, `prune`: jobs that need a push, and jobs that may go."""

from datetime import timedelta

import pytest

from lucius_contract.states import JobState, OutboxState
from lucius_orchestrator.domain.events import AckReceived
from lucius_orchestrator.domain.timers import TimerKind
from lucius_orchestrator.ports.ledger import Conflict, Created, Found, Ledger
from tests.ledger.jobs import CONTENT, MANY, TENANT, Pair, Story, World, ids, together
from tests.ledger.view import LATER, assert_unchanged, job_ids, letters, view

CANCELLING, PAUSING = JobState.CANCELLING, JobState.PAUSING


async def a_late_reply(job: Story) -> None:
    await job.happens(AckReceived("step_01", 1, "late", TENANT))


async def test_jobs_are_found_by_the_states_that_wait_for_a_step(
    ledger: Ledger, world: World
) -> None:
    _, cancelling, pausing, done = await world.create_many(4)
    await cancelling.cancelled()
    await pausing.paused()
    await done.succeeds()
    assert await ledger.in_states([CANCELLING], MANY) == [cancelling.job_id]
    assert await ledger.in_states([PAUSING], MANY) == [pausing.job_id]
    both = await ledger.in_states([CANCELLING, PAUSING], MANY)
    assert sorted(both) == sorted(ids([cancelling, pausing]))
    assert len(await ledger.in_states([CANCELLING, PAUSING], 1)) == 1
    assert await ledger.in_states([], MANY) == []


async def test_jobs_that_left_such_a_state_are_not_found(ledger: Ledger, world: World) -> None:
    cancelling, pausing = await world.create_many(2)
    await cancelling.cancelled()
    await pausing.paused()
    await pausing.cancelled()
    assert sorted(await ledger.in_states([CANCELLING], MANY)) == ids([cancelling, pausing])
    for job in (cancelling, pausing):
        await job.succeeds()
    assert await ledger.in_states([CANCELLING, PAUSING], MANY) == []


async def test_jobs_that_ended_before_a_moment_come_oldest_first(
    ledger: Ledger, world: World
) -> None:
    jobs = await world.create_many(4)
    order = [jobs[2], jobs[0], jobs[3]]
    await jobs[2].succeeds()
    await jobs[0].fails()
    await jobs[3].cancelled()
    await jobs[3].succeeds()
    assert await ledger.ended(LATER, MANY) == ids(order)
    assert await ledger.ended(LATER, 2) == ids(order[:2])
    moment = jobs[0].job.completed_at
    assert moment is not None
    assert await ledger.ended(moment, MANY) == ids(order[:1])
    assert await ledger.ended(moment + timedelta(microseconds=1), MANY) == ids(order[:2])


async def test_a_late_reply_does_not_make_a_job_end_later(ledger: Ledger, world: World) -> None:
    first, second = await world.create_many(2)
    await first.succeeds()
    moment = world.clock.now + timedelta(microseconds=1)
    await second.succeeds()
    await a_late_reply(first)
    assert await ledger.ended(moment, MANY) == [first.job_id]
    assert await ledger.ended(LATER, MANY) == ids([first, second])


async def test_nothing_of_a_removed_job_is_left_but_its_dead_letters(
    ledger: Ledger, world: World
) -> None:
    job = await world.create(entry="key:a", steps=2)
    await job.fails()
    kept = await letters(ledger)
    await ledger.remove(job.stored)
    assert await ledger.load(job.job_id) is None
    assert await ledger.find(TENANT, "key:a") is None
    assert await ledger.events(job.job_id) == []
    assert await job_ids(ledger) == []
    assert await ledger.ended(LATER, MANY) == []
    assert await ledger.due(list(TimerKind), LATER, MANY) == []
    assert await letters(ledger) == kept != []
    assert await ledger.mark_redriven(job.job_id, "job_new") == 1


async def test_a_directive_of_a_removed_job_is_not_published_any_more(
    ledger: Ledger, world: World
) -> None:
    """Either its row is gone, or who claims it finds no job and discards it."""
    job = await (await world.create()).fails()
    await ledger.remove(job.stored)
    claims = await world.claim()
    assert {claim.job_id for claim in claims} <= {job.job_id}
    await ledger.discard(claims)
    world.clock.advance(hours=1)
    assert await world.claim() == []


async def test_a_claim_on_a_removed_job_can_be_given_back(ledger: Ledger, world: World) -> None:
    job = await world.create()
    claims = await world.claim()
    await job.succeeds()
    await ledger.remove(job.stored)
    await ledger.release(claims)
    await ledger.postpone(claims, "unreachable")
    await ledger.discard(claims)


async def test_an_entry_is_free_again_once_its_job_is_removed(ledger: Ledger, world: World) -> None:
    old = await (await world.create(entry="key:a")).succeeds()
    await ledger.remove(old.stored)
    new = await world.create(entry="key:a")
    assert await ledger.find(TENANT, "key:a") == Found(new.job_id, CONTENT)
    await ledger.remove(old.stored)
    assert await ledger.find(TENANT, "key:a") == Found(new.job_id, CONTENT)
    assert await ledger.load(new.job_id) == new.stored
    assert await world.submit(world.submission(entry="key:a")) == Created(new.job_id, None)


async def test_other_jobs_do_not_notice_a_removal(ledger: Ledger, world: World) -> None:
    bystanders = await world.create_many(2, entry=None)
    await bystanders[1].fails()
    before = await view(ledger)
    job = await (await world.create()).succeeds()
    await ledger.remove(job.stored)
    assert_unchanged(before, await view(ledger))


async def test_a_job_that_moved_is_not_removed(ledger: Ledger, world: World) -> None:
    job = await (await world.create(entry="key:a")).succeeds()
    stale = job.stored
    await a_late_reply(job)
    before = await view(ledger)
    with pytest.raises(Conflict) as refusal:
        await ledger.remove(stale)
    assert refusal.value.job_id == job.job_id
    assert_unchanged(before, await view(ledger))
    assert await ledger.find(TENANT, "key:a") == Found(job.job_id, CONTENT)
    await ledger.remove(job.stored)


async def test_removing_what_is_gone_is_nothing(ledgers: Pair, world: World) -> None:
    bystander = await (await world.create()).succeeds()
    job = await (await world.create()).succeeds()
    answers = await together(*(ledgers[n % 2].remove(job.stored) for n in range(6)))
    assert answers == [None] * 6
    await ledgers[1].remove(job.stored)
    assert await job_ids(ledgers[0]) == [bystander.job_id]


async def test_a_removal_and_a_late_reply_at_once_leave_a_whole_job_or_none(
    ledgers: Pair, world: World
) -> None:
    for round_no in range(6):
        job = await (await world.create()).fails()
        late = job.decide(AckReceived("step_01", 1, "late", TENANT))
        calls = [ledgers[0].remove(job.stored), ledgers[1].commit(job.stored, late)]
        answers = await together(*(calls if round_no % 2 else reversed(calls)))
        assert sum(isinstance(answer, Conflict) for answer in answers) == 1
        stored = await ledgers[0].load(job.job_id)
        events = await ledgers[0].events(job.job_id)
        assert len(events) == (stored.aggregate.job.seq if stored else 0)


async def test_pruning_takes_away_nothing_that_is_needed(ledger: Ledger, world: World) -> None:
    waiting, sent, failed, done = await world.create_many(4)
    claims = {claim.job_id: claim for claim in await world.claim()}
    await ledger.release([claims[waiting.job_id]])
    await sent.sent(claims[sent.job_id])
    await failed.unpublishable(claims[failed.job_id])
    await done.succeeds()
    before = await view(ledger)
    for _ in range(4):
        assert await ledger.prune(LATER, 1) <= 1
    assert await ledger.prune(LATER, MANY) == 0
    after = await view(ledger)
    assert after._replace(directives={}) == before._replace(directives={})
    for attempt, status in before.directives.items():
        now = after.directives[attempt]
        assert now == status or (now is None and attempt[0] in ids([sent, failed]))
    assert await ledger.find(TENANT, "key:1") == Found(waiting.job_id, CONTENT)
    assert [claim.job_id for claim in await world.claim()] == [waiting.job_id]


async def test_pruning_keeps_to_its_limit_and_to_its_moment(ledger: Ledger, world: World) -> None:
    jobs = await world.create_many(3)
    for job, claim in zip(jobs, await world.claim(), strict=True):
        await job.sent(claim)
    assert await ledger.prune(jobs[0].job.created_at, MANY) == 0
    assert await ledger.prune(LATER, 2) <= 2


@pytest.mark.parametrize("backend", ["sqlite", "postgres"], indirect=True)
async def test_pruning_deletes_all_that_ended_before_its_moment_and_nothing_else(
    ledger: Ledger, world: World
) -> None:
    """Where the outbox is a table beside the jobs, which would grow for as long as jobs are kept.
    Elsewhere a directive is one of its job's rows."""
    sent, failed, late, waiting = await world.create_many(4)
    claims = {claim.job_id: claim for claim in await world.claim()}
    await sent.sent(claims[sent.job_id])
    await failed.unpublishable(claims[failed.job_id])
    world.clock.advance(microseconds=1)
    moment = world.clock.now
    await late.sent(claims[late.job_id])
    await ledger.release([claims[waiting.job_id]])
    world.clock.advance(hours=1)
    assert await ledger.prune(moment, MANY) == 2
    left = [await ledger.directive(job.job_id, "step_01", 1) for job in (sent, failed)]
    assert left == [None, None]
    kept = [await ledger.directive(job.job_id, "step_01", 1) for job in (late, waiting)]
    assert [status and status.state for status in kept] == [OutboxState.SENT, OutboxState.PENDING]
