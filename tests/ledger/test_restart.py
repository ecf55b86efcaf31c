"""What a ledger said is durable: a process that starts anew finds all of it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lucius_contract.states import OutboxState, StepState
from lucius_orchestrator.domain.events import RetryDue
from lucius_orchestrator.ports.ledger import (
    Created,
    DirectiveStatus,
    JobQuery,
    Ledger,
    LedgerUnavailable,
    Limits,
)
from tests import sqlite_syncs
from tests.ledger.backends import Backend, Clock, SqliteBackend
from tests.ledger.jobs import DIRECTIVE, LEASE, MANY, TENANT, Story, World
from tests.ledger.test_dead_letters import UNREADABLE
from tests.ledger.view import job_ids, view


async def restart(backend: Backend) -> Ledger:
    await backend.ledger.close()
    return await backend.reopen()


async def a_busy_ledger(world: World) -> list[Story]:
    """A job in every state that a restart may find."""
    jobs = await world.create_many(9, steps=2)
    claims = {claim.job_id: claim for claim in await world.claim()}
    await world.ledger.postpone([claims[jobs[0].job_id]], "unreachable")
    await world.ledger.release([claims[jobs[1].job_id]])
    await jobs[2].sent(claims[jobs[2].job_id])
    await jobs[3].acked()
    jobs[3].stored = await world.ledger.reschedule(jobs[3].stored)
    await jobs[4].fails_for_now()
    await jobs[5].paused()
    await jobs[6].cancelled()
    await jobs[7].succeeds()
    await jobs[8].fails()
    await world.ledger.bury(UNREADABLE)
    await world.ledger.mark_redriven(jobs[8].job_id, jobs[7].job_id)
    return jobs


async def test_everything_is_there_after_a_restart(backend: Backend, world: World) -> None:
    jobs = await a_busy_ledger(world)
    before = await view(backend.ledger)
    assert before.jobs == {job.job_id: job.aggregate for job in jobs}
    assert before.events == {job.job_id: job.trail for job in jobs}
    after = await restart(backend)
    assert await view(after) == before
    found = [await after.find(TENANT, f"key:{number}") for number in range(1, 10)]
    assert [one and one.job_id for one in found] == [job.job_id for job in jobs]


async def test_work_goes_on_where_it_was(backend: Backend, world: World) -> None:
    """On the very versions that were read before."""
    jobs = await a_busy_ledger(world)
    after = await restart(backend)
    for job in jobs:
        job.ledger = after
    await jobs[4].fires(RetryDue)
    await jobs[5].resumed()
    for job in jobs:
        await job.succeeds()
        assert await after.load(job.job_id) == job.stored
    assert (await after.in_flight(TENANT)).total == 0


async def test_claims_of_a_dead_process_hold_until_their_lease_ends(
    backend: Backend, world: World
) -> None:
    job = await world.create()
    await world.claim_one()
    after = await restart(backend)
    assert await after.claim(DIRECTIVE, MANY, LEASE) == []
    backend.clock.advance(seconds=31)
    (claim,) = await after.claim(DIRECTIVE, MANY, LEASE)
    story = Story(after, backend.clock, job.stored)
    await story.sent(claim)
    assert story.aggregate.active.state is StepState.AWAITING_ACK
    status = await after.directive(job.job_id, "step_01", 1)
    assert status == DirectiveStatus(OutboxState.SENT, claimable=False)


async def test_tries_and_their_backoff_are_remembered(backend: Backend, world: World) -> None:
    await world.create()
    await backend.ledger.postpone(await world.claim(), "unreachable")
    after = await restart(backend)
    assert await after.claim(DIRECTIVE, MANY, LEASE) == []
    backend.clock.advance(seconds=34)
    (claim,) = await after.claim(DIRECTIVE, MANY, LEASE)
    assert claim.tries == 1


async def test_entries_and_limits_hold_after_a_restart(backend: Backend, world: World) -> None:
    job = await world.create(entry="key:a")
    world.ledger = await restart(backend)
    again = await world.submit(world.submission(entry="key:a"), Limits(tenant=1))
    assert again == Created(job.job_id, None)
    await world.create(limits=Limits(tenant=2))


async def test_a_cursor_outlives_the_process_that_gave_it(backend: Backend, world: World) -> None:
    jobs = await world.create_many(4)
    first = await backend.ledger.jobs(JobQuery(limit=2))
    after = await restart(backend)
    rest = await job_ids(after, JobQuery(limit=2, cursor=first.cursor))
    assert rest == [jobs[1].job_id, jobs[0].job_id]


async def test_what_was_removed_stays_removed(backend: Backend, world: World) -> None:
    job = await (await world.create(entry="key:a")).succeeds()
    await backend.ledger.remove(job.stored)
    after = await restart(backend)
    assert await after.load(job.job_id) is None
    assert await after.find(TENANT, "key:a") is None
    assert await job_ids(after) == []


async def test_what_a_sqlite_ledger_answered_survives_a_loss_of_power(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every connection commits and closes with a write-ahead log and `synchronous = FULL`: NORMAL
    would lose the last commits. See `sqlite_syncs`."""
    moments = sqlite_syncs.watched(monkeypatch)
    backend = SqliteBackend(clock, tmp_path)
    await backend.start()
    await a_busy_ledger(World(backend.ledger, clock))
    await backend.stop()
    assert moments == sqlite_syncs.ALL_SYNCED


async def test_a_migration_that_fails_leaves_nothing_half_made(
    clock: Clock, tmp_path: Path
) -> None:
    in_the_way = "lucius_ledger_dead_letters"
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.execute(f"CREATE TABLE {in_the_way} (anything)")
        with pytest.raises(LedgerUnavailable, match=in_the_way):
            await SqliteBackend(clock, tmp_path).start()
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        assert tables.fetchall() == [(in_the_way,)]
