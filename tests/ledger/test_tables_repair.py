"""Repair and removal, which may die, stall and meet each other at any storage call."""

from contextlib import suppress

import pytest

from lucius_contract import timeouts
from lucius_orchestrator.adapters.ledger.tables import indexes
from lucius_orchestrator.adapters.ledger.tables.partition import JOB, JOBS
from lucius_orchestrator.domain.events import AckReceived
from lucius_orchestrator.ports.ledger import Conflict, Limits
from tests.ledger.jobs import MANY, TENANT, Story
from tests.ledger.tables_soundness import Rows, never_too_little, nothing_too_much, places
from tests.ledger.tables_stage import (
    Crash,
    Scene,
    Stopper,
    Store,
    and_repair,
    check_whole,
    crashes,
    stalls,
)
from tests.ledger.test_tables_commits import CHANGES
from tests.ledger.view import LATER, job_ids

pytestmark = pytest.mark.check

DIED_BEFORE = {
    "the next directive": 1,
    "a directive that can never be sent": 8,
    "an earlier deadline": 1,
    "a pause": 1,
    "the end": 3,
    "the end that is told": 2,
}
"""Commits, and before which of their calls the process died."""

LAST_CALL_OF_A_CREATION = 9


async def die_creating(store: Store, at: int) -> None:
    with suppress(Crash):
        await store.process(Stopper(store, at)).create(*store.world.submission(), Limits())


async def a_mess() -> Store:
    """What creators and writers left who died on the way."""
    store = Store()
    await die_creating(store, LAST_CALL_OF_A_CREATION)
    for name, at in DIED_BEFORE.items():
        job = await CHANGES[name].prepare(store.world)
        act = CHANGES[name].act(job, CHANGES[name].decide(job))
        with suppress(Crash):
            await act(store.process(Stopper(store, at)))
        await store.world.claim()
    return store


async def a_repair() -> Scene:
    return Scene(await a_mess(), lambda ledger: ledger.repair(MANY))


async def test_a_repair_that_dies_is_finished_by_the_next() -> None:
    for scene in await crashes(a_repair):
        await scene.store.mended()


async def test_two_repairs_at_once_do_no_harm() -> None:
    for scene, _ in await stalls(a_repair, and_repair):
        await scene.store.mended()


async def test_a_repair_keeps_to_its_limit_and_the_next_goes_on() -> None:
    all_at_once = len(await (await a_mess()).ledger.repair(MANY))
    store, one_by_one = await a_mess(), 0
    while repairs := await store.ledger.repair(1):
        one_by_one += len(repairs)
        assert len(repairs) == 1
    await nothing_too_much(store.tables)
    assert one_by_one == all_at_once > len(DIED_BEFORE)


async def test_a_repair_says_what_was_done() -> None:
    store = Store()
    await die_creating(store, 7)
    (repair,) = await store.ledger.repair(MANY)
    assert repair.index_name == indexes.TIMERS
    assert "will never be" in repair.after


async def test_what_was_just_announced_is_left_alone_for_a_while() -> None:
    """A writer that is alive is not made to fail."""
    store = Store()
    patient = store.process(grace=timeouts.RECOVERY_GRACE)
    await die_creating(store, LAST_CALL_OF_A_CREATION)
    store.clock.advance(seconds=59)
    assert await patient.repair(MANY) == []
    store.clock.advance(seconds=1)
    assert len(await patient.repair(MANY)) == 2
    await nothing_too_much(store.tables)


async def test_rows_of_a_state_that_a_job_has_left_go_when_they_are_met() -> None:
    store = Store()
    job = await (await store.world.create()).paused()
    await job.cancelled()
    assert len(await places(store.tables, indexes.STATES)) == 2
    assert await store.ledger.in_states(list(indexes.WAITING), MANY) == [job.job_id]
    assert len(await places(store.tables, indexes.STATES)) == 1
    await job.succeeds()
    assert len(await store.ledger.repair(MANY)) == 1
    assert not await places(store.tables, indexes.STATES)


async def test_an_end_that_was_announced_and_never_came_is_forgotten_when_it_is_met() -> None:
    store = Store()
    job = await CHANGES["the end"].prepare(store.world)
    with suppress(Crash):
        decision = CHANGES["the end"].decide(job)
        await store.process(Stopper(store, 1)).commit(job.stored, decision)
    assert await store.ledger.ended(LATER, MANY) == []
    assert len(await places(store.tables, indexes.ENDED)) == 1, "it may still come"
    await job.succeeds()
    assert await store.ledger.ended(LATER, MANY) == [job.job_id]
    assert await places(store.tables, indexes.ENDED) == (await Rows.read(store.tables)).ended


async def a_removal() -> Scene:
    """Of a job with more rows than a batch holds, one of them a directive nobody published."""
    store = Store()
    job = await store.world.create(entry="key:a", steps=2)
    for number in range(50):
        for step_id in ("step_01", "step_02"):
            await job.happens(AckReceived(step_id, 9, f"stray {number}", TENANT))
    await job.fails()
    assert job.job.seq > 100
    return Scene(store, lambda ledger: ledger.remove(job.stored))


async def test_a_removal_leaves_a_tombstone_and_dead_letters_only() -> None:
    scene = await a_removal()
    await scene.act(scene.store.ledger)
    tables = scene.store.tables
    for index in (indexes.TIMERS, indexes.PENDING, indexes.STATES, indexes.ENDED, indexes.JOBLIST):
        assert not await places(tables, index)
    left = {place.row.partition("!")[0] for place in await places(tables, JOBS)}
    assert left == {JOB, "LETTER"}
    assert (await Rows.read(tables)).tombstones


async def test_a_removal_that_dies_leaves_the_job_whole_or_gone() -> None:
    outcomes = []
    for scene in await crashes(a_removal, never_too_little):
        store, jobs = scene.store, await scene.store.jobs()
        outcomes.append(not jobs)
        assert await job_ids(store.ledger) == [one.aggregate.job.job_id for one in jobs]
        claims = await store.world.claim()
        if jobs:
            assert len(claims) == 1
            await check_whole(store, jobs[0])
        else:
            await store.ledger.discard(claims)
            store.clock.advance(minutes=1)
            assert await store.world.claim() == []
            assert await store.ledger.find(TENANT, "key:a") is None
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {True, False}


async def test_a_removal_that_was_cut_short_is_finished_by_who_looks_for_the_next() -> None:
    for scene in await crashes(a_removal, never_too_little):
        store = scene.store
        for job_id in await store.ledger.ended(LATER, MANY):
            stored = await store.ledger.load(job_id)
            assert stored is not None, "what is gone is not found"
            await store.ledger.remove(stored)
        rows = await Rows.read(store.tables)
        assert not rows.orphans
        assert len(rows.letters) == 1
        assert not await places(store.tables, indexes.ENDED)
        await store.mended()
        assert await store.world.create(entry="key:a")


async def test_two_removals_at_once_are_one() -> None:
    async def and_remove(store: Store) -> None:
        for stored in await store.jobs():
            await store.ledger.remove(stored)

    for scene, answer in await stalls(a_removal, and_remove, never_too_little):
        assert answer is None
        await scene.store.ledger.ended(LATER, MANY)
        assert not (await Rows.read(scene.store.tables)).orphans
        await scene.store.mended()


async def test_a_removal_that_a_late_reply_overtakes_is_a_conflict() -> None:
    async def and_reply(store: Store) -> None:
        for stored in await store.jobs():
            story = Story(store.ledger, store.clock, stored)
            await story.happens(AckReceived("step_01", 1, "late", TENANT))

    answers = set()
    for scene, answer in await stalls(a_removal, and_reply, never_too_little):
        answers.add(type(answer))
        assert len(await scene.store.jobs()) == isinstance(answer, Conflict)
        await scene.store.ledger.ended(LATER, MANY)
        assert not (await Rows.read(scene.store.tables)).orphans
    assert answers == {Conflict, type(None)}


async def test_tombstones_rest_for_a_day_and_are_pruned_then() -> None:
    store = Store()
    await die_creating(store, 7)
    await store.mended()
    job = await (await store.world.create()).succeeds()
    await store.ledger.remove(job.stored)
    assert len((await Rows.read(store.tables)).tombstones) == 2
    store.clock.advance(hours=23)
    assert await store.ledger.prune(LATER, MANY) == 0
    store.clock.advance(hours=2)
    assert await store.ledger.prune(LATER, 1) == 1
    assert await store.ledger.prune(LATER, MANY) == 1
    assert not (await Rows.read(store.tables)).tombstones
    assert await store.ledger.prune(LATER, MANY) == 0
