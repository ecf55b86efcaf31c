"""Creators that die, stall or race between any two storage calls: one whole job, or nothing.

Each creation is run once for every call that it makes. Between all calls the rows are checked: an
index may name too much or too early, never too little or too late. After a repair it names nothing
too much either.
"""

from contextlib import suppress

import pytest

from lucius_contract.routing import Mode
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.ports.ledger import (
    Created,
    Ledger,
    LedgerUnavailable,
    Limits,
    Saturated,
    Scope,
    Stored,
)
from tests.ledger.jobs import LEASE, START, TENANT, Story
from tests.ledger.tables_soundness import Rows, never_too_little, nothing_too_much
from tests.ledger.tables_stage import (
    Crash,
    Meanwhile,
    Scene,
    Setting,
    Stopper,
    Store,
    and_nothing,
    and_repair,
    crashes,
    resendings,
    stall,
    stalls,
)
from tests.ledger.test_claims_at_birth import Nursery
from tests.ledger.view import job_ids

ONE = Limits(tenant=1)
OTHER_CONTENT = "o" * 64
SLOTS_TAKEN = 7
"""As many calls does a creator make before it has its tenant's slot and its mode's."""


async def a_creation(engine: Engine = Engine.LEDGER) -> Scene:
    store = Store()
    await store.world.create("bystander")
    submission = store.world.submission(entry="key:a", engine=engine)
    return Scene(store, lambda ledger: ledger.create(*submission, ONE))


async def a_helping_creation() -> Scene:
    """Somebody died after the entry was made and some of the slots were taken."""
    scene = await a_creation()
    store = scene.store
    with suppress(Crash):
        await scene.act(store.process(Stopper(store, SLOTS_TAKEN)))
    submission = store.world.submission(entry="key:a")
    return Scene(store, lambda ledger: ledger.create(*submission, ONE))


async def a_creation_for_a_workflow() -> Scene:
    return await a_creation(Engine.TEMPORAL)


async def an_adopting_creation() -> Scene:
    """By a process that starts the workflow too, as soon as it may."""
    scene = await a_creation_for_a_workflow()

    async def act(ledger: Ledger) -> object:
        ledger.adopt(START, LEASE, Nursery())
        return await scene.act(ledger)

    return Scene(scene.store, act)


CREATIONS = [a_creation, a_helping_creation, a_creation_for_a_workflow, an_adopting_creation]


async def created(store: Store) -> Stored | None:
    """The one job behind the entry, whole, or None if nothing counts."""
    found = await store.ledger.find(TENANT, "key:a")
    jobs = {stored.aggregate.job.job_id: stored for stored in await store.jobs(TENANT)}
    assert list(jobs) == ([found.job_id] if found else [])
    everybodys = [stored.aggregate.job.job_id for stored in await store.jobs()]
    assert await job_ids(store.ledger) == sorted(everybodys, reverse=True)
    return jobs[found.job_id] if found else None


async def submit_again(store: Store) -> Created:
    return await store.world.submit(store.world.submission(entry="key:a"), ONE)


@pytest.mark.parametrize("creation", CREATIONS)
async def test_a_creator_that_dies_leaves_a_whole_job_or_nothing_that_counts(
    creation: Setting[Scene],
) -> None:
    outcomes = []
    for scene in await crashes(creation):
        store = scene.store
        stored = await created(store)
        there = stored is not None
        outcomes.append(there)
        sendable = await store.sendable()
        assert len(sendable) == 1 + there, "the bystander's, and what makes the job go on"
        assert sendable == (await Rows.read(store.tables)).unsent
        assert (await store.ledger.in_flight(TENANT)).tenant in ({1} if there else {0, 1})
        await store.mended()
        assert await created(store) == stored
        assert (await store.ledger.in_flight(TENANT)).tenant == there
    assert set(outcomes) == {True, False}


@pytest.mark.parametrize("creation", CREATIONS)
@pytest.mark.parametrize("repaired", [True, False])
async def test_the_same_request_again_finds_or_creates_the_job_of_a_dead_creator(
    creation: Setting[Scene], repaired: bool
) -> None:
    """Even where the limit has room for one job only: its slots are its own."""
    for scene in await crashes(creation):
        store = scene.store
        earlier = await created(store)
        if repaired:
            await store.mended()
        answer = await submit_again(store)
        assert (answer.stored is None) == (earlier is not None)
        stored = await created(store)
        assert stored is not None
        assert stored.aggregate.job.job_id == answer.job_id
        assert (await store.ledger.in_flight(TENANT)).tenant == 1
        await store.mended()


async def and_create_the_same(store: Store) -> None:
    await submit_again(store)


async def and_repair_then_create_the_same(store: Store) -> None:
    await and_repair(store)
    await submit_again(store)


async def and_create_and_end_the_same(store: Store) -> None:
    await submit_again(store)
    stored = await store.the_job()
    await Story(store.ledger, store.clock, stored).succeeds()


async def and_create_end_and_remove_the_same(store: Store) -> None:
    await and_create_and_end_the_same(store)
    await store.ledger.remove(await store.the_job())


@pytest.mark.parametrize("creation", CREATIONS)
@pytest.mark.parametrize(
    "meanwhile",
    [
        and_repair,
        and_create_the_same,
        and_repair_then_create_the_same,
        and_create_and_end_the_same,
    ],
)
async def test_a_creator_that_stalled_has_succeeded_or_finds_the_job_or_fails(
    creation: Setting[Scene], meanwhile: Meanwhile
) -> None:
    for scene, answer in await stalls(creation, meanwhile):
        store = scene.store
        stored = await created(store)
        if isinstance(answer, Created):
            assert stored is not None
            assert answer.job_id == stored.aggregate.job.job_id
        else:
            assert isinstance(answer, LedgerUnavailable)
            assert stored is None
        await store.mended()
        again = await submit_again(store)
        assert (again.stored is None) == (stored is not None)
        await store.mended()


async def test_a_creator_that_stalled_for_the_whole_life_of_its_job_does_not_repeat_it() -> None:
    """It may begin another, if it was not yet known under which id it works."""
    for scene, answer in await stalls(
        a_creation, and_create_end_and_remove_the_same, never_too_little
    ):
        stored = await created(scene.store)
        assert isinstance(answer, Created | LedgerUnavailable)
        (removed,) = (await Rows.read(scene.store.tables)).tombstones
        assert stored is None or stored.aggregate.job.job_id != removed
        await scene.store.mended()


async def test_a_repair_may_come_in_time_to_make_a_stalled_creator_fail() -> None:
    answers = {type(answer) for _, answer in await stalls(a_creation, and_repair)}
    assert answers == {Created, LedgerUnavailable}


async def test_who_helps_an_id_that_is_given_up_goes_on_under_its_own() -> None:
    for scene, answer in await stalls(a_helping_creation, and_repair):
        assert isinstance(answer, Created)
        assert answer.stored is not None
        await scene.store.mended()


async def test_an_entry_that_was_given_up_is_no_conflict_for_other_content() -> None:
    for scene in await crashes(a_creation):
        if await created(scene.store) is None:
            await scene.store.mended()
            assert await scene.store.world.create(entry="key:a", content=OTHER_CONTENT)


@pytest.mark.parametrize("creation", CREATIONS)
async def test_an_answer_that_is_lost_while_others_repair_does_no_harm(
    creation: Setting[Scene],
) -> None:
    for scene, answer in await resendings(creation, and_repair):
        assert isinstance(answer, Created | LedgerUnavailable)
        await created(scene.store)
        await scene.store.mended()
        await submit_again(scene.store)
        assert await created(scene.store) is not None


@pytest.mark.parametrize("creation", CREATIONS)
async def test_a_creator_whose_answers_are_lost_has_created_its_job(
    creation: Setting[Scene],
) -> None:
    for scene, answer in await resendings(creation, and_nothing):
        assert isinstance(answer, Created)
        assert answer.stored is not None
        assert answer.stored == await created(scene.store)
        await scene.store.mended()


async def a_contended_creation() -> Scene:
    store = Store()
    submission = store.world.submission("one")
    limits = Limits(tenant=1, mode=1, total=1)
    return Scene(store, lambda ledger: ledger.create(*submission, limits))


async def and_take_the_last_slot(store: Store) -> None:
    with suppress(Saturated):
        await store.world.create("other", limits=Limits(tenant=1, mode=1, total=1))


async def test_of_two_creators_for_the_last_slot_one_is_refused_and_leaves_nothing() -> None:
    refused = 0
    for scene, answer in await stalls(a_contended_creation, and_take_the_last_slot):
        assert len(await scene.store.jobs()) == 1
        if isinstance(answer, Saturated):
            refused += 1
            assert answer.scope is not Scope.TENANT
        in_flight = await scene.store.ledger.in_flight("one")
        assert (in_flight.total, in_flight.by_mode[Mode.DEFAULT]) == (1, 1)
        assert in_flight.tenant == (not isinstance(answer, Saturated))
        await nothing_too_much(scene.store.tables)
    assert refused > 1


async def test_a_helper_that_finds_no_room_gives_up_the_id_for_all() -> None:
    """Else the slots that it gives back could be those of the one whom it helped."""
    store = Store()
    has_tenants_slot = SLOTS_TAKEN - 1
    first, second = (store.world.submission("one", entry="key:a") for _ in range(2))
    creator = await stall(
        Scene(store, lambda ledger: ledger.create(*first, Limits(mode=1))), has_tenants_slot
    )
    assert (await store.ledger.in_flight("one")).tenant == 1
    helper = await stall(
        Scene(store, lambda ledger: ledger.create(*second, Limits(mode=1))), has_tenants_slot
    )
    other = await store.world.create("other", limits=Limits(mode=1))
    assert isinstance(await helper.end(), Saturated)
    await other.succeeds()
    assert isinstance(await creator.end(), LedgerUnavailable)
    await nothing_too_much(store.tables)
    assert (await store.ledger.in_flight("one")).total == 0
