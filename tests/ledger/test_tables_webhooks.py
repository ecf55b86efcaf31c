"""Webhooks of a table ledger: whoever dies or stalls, every end is told, and no other."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest

from lucius_orchestrator.adapters.ledger.tables import indexes
from lucius_orchestrator.adapters.ledger.tables.ledger import TableLedger
from lucius_orchestrator.adapters.ledger.tables.store import Call, Tables
from lucius_orchestrator.domain.events import AckReceived
from lucius_orchestrator.ports.ledger import Conflict, DeadLetterQuery, Ledger, Stored
from lucius_orchestrator.ports.webhooks import webhook_of
from lucius_outbox import Claimed, Delays, Failure, LeaseLost, RetryPolicy
from tests.azurite import Azurite
from tests.ledger.azure_stage import Account
from tests.ledger.jobs import MANY, TENANT, Story
from tests.ledger.tables_soundness import Rows, never_too_little, places, rows_of
from tests.ledger.tables_stage import (
    Meanwhile,
    NewStore,
    Scene,
    Setting,
    Store,
    and_nothing,
    and_repair,
    crashes,
    in_memory,
    resendings,
    stall,
    stalls,
)
from tests.ledger.test_tables_commits import Committing, and_end, and_reply, committing
from tests.ledger.view import LATER

LEASE = timedelta(minutes=1)
AT_ONCE = RetryPolicy(backoff=Delays([timedelta()]), max_reclaims=100)
ONCE = RetryPolicy(max_attempts=1)
URLS = ("https://a.example", "https://b.example")
Told = Counter[str]


def the_end_in(new_store: NewStore) -> Setting[Committing]:
    return committing("the end that is told", new_store)


the_end = the_end_in(in_memory)


@pytest.fixture
def memory() -> NewStore:
    return in_memory


@pytest.fixture
async def azure(azure_storage: Azurite) -> AsyncIterator[NewStore]:
    account = Account(azure_storage)
    yield account.new_store
    await account.close()


@pytest.fixture(params=["memory", "azure"])
def new_store(request: pytest.FixtureRequest) -> NewStore:
    found: NewStore = request.getfixturevalue(request.param)
    return found


async def anything(_: Tables) -> None:
    """Of webhooks that were delivered, no row is left."""


def tellings(claims: list[Claimed]) -> Told:
    return Counter(webhook_of(claimed).event_id for claimed in claims)


async def delivered(ledger: Ledger) -> Told:
    """All that are due, told and acknowledged."""
    assert isinstance(ledger, TableLedger)
    store = ledger.webhooks(AT_ONCE)
    claims = await store.claim_batch(MANY, LEASE)
    await store.ack(claims)
    return tellings(claims)


async def delivered_later(store: Store) -> Told:
    """When all leases of those who died are over."""
    store.clock.advance(hours=1)
    return await delivered(store.ledger)


async def to_be_told(store: Store) -> Told:
    """By the commit that ended the job, whatever was recorded since; once each."""
    job = (await store.the_job()).aggregate.job
    events = await store.ledger.events(job.job_id, limit=MANY)
    ending = [event.seq for event in events if event.at == job.completed_at]
    return Counter(f"{job.job_id}.{seq}.{n}" for seq in ending[-1:] for n in range(len(URLS)))


async def test_of_a_writer_that_dies_the_end_is_told_if_it_came(new_store: NewStore) -> None:
    outcomes = []
    for scene in await crashes(the_end_in(new_store), anything):
        store = scene.store
        expected = await to_be_told(store)
        assert await delivered(store.ledger) == expected
        outcomes.append(bool(expected))
        if not expected:
            await store.ledger.repair(MANY)
            assert not await places(store.tables, indexes.WEBHOOKS)
            await store.ledger.commit(await store.the_job(), scene.decision)
            assert await delivered(store.ledger) == await to_be_told(store)
        assert not await places(store.tables, indexes.WEBHOOKS)
    assert set(outcomes) == {True, False}


async def test_after_a_repair_too() -> None:
    for scene in await crashes(the_end):
        await scene.store.mended()
        assert await delivered(scene.store.ledger) == await to_be_told(scene.store)


class Deliveries:
    """Something done while a process stands still, and then a delivery: what was told, by store."""

    def __init__(self, before: Meanwhile = and_nothing) -> None:
        self.told = defaultdict[Store, Told](Counter)
        self._before = before

    async def __call__(self, store: Store) -> None:
        await self._before(store)
        self.told[store] += await delivered(store.ledger)


@pytest.mark.parametrize("meanwhile", [and_nothing, and_repair, and_reply, and_end])
async def test_of_a_writer_that_stalls_the_end_that_came_is_told_once(
    meanwhile: Meanwhile,
) -> None:
    """Its own, or the one that others brought meanwhile; or none, if none came."""
    deliveries = Deliveries(meanwhile)
    answers = set()
    for scene, answer in await stalls(the_end, deliveries, anything):
        assert isinstance(answer, Stored | Conflict)
        await deliveries(scene.store)
        assert deliveries.told[scene.store] == await to_be_told(scene.store)
        answers.add(type(answer))
    assert Stored in answers


async def test_a_webhook_whose_commit_is_to_come_is_neither_delivered_nor_deleted() -> None:
    scene = await the_end()
    writer = await stall(scene, 2)
    assert len(await places(scene.store.tables, indexes.WEBHOOKS)) == len(URLS)
    assert await delivered(scene.store.ledger) == Told()
    assert isinstance(await writer.end(), Stored)
    assert await delivered(scene.store.ledger) == await to_be_told(scene.store)


async def test_a_webhook_whose_commit_can_never_come_is_deleted_by_who_meets_it() -> None:
    scene = await the_end()
    writer = await stall(scene, 2)
    await and_reply(scene.store)
    assert await delivered(scene.store.ledger) == Told()
    assert not await places(scene.store.tables, indexes.WEBHOOKS)
    assert isinstance(await writer.end(), Conflict)


async def test_a_writer_that_was_overtaken_takes_its_webhooks_back() -> None:
    scene = await the_end()
    writer = await stall(scene, 2)
    await and_reply(scene.store)
    assert isinstance(await writer.end(), Conflict)
    assert not await places(scene.store.tables, indexes.WEBHOOKS)


@pytest.mark.parametrize("meanwhile", [and_nothing, and_repair, and_reply, and_end])
async def test_an_end_whose_answers_are_lost_is_told_once(meanwhile: Meanwhile) -> None:
    deliveries = Deliveries(meanwhile)
    for scene, answer in await resendings(the_end, deliveries):
        assert isinstance(answer, Stored | Conflict)
        await deliveries(scene.store)
        assert deliveries.told[scene.store] == await to_be_told(scene.store)


@pytest.mark.parametrize(("name", "cost"), [("the end", 0), ("the end that is told", 1)])
async def test_addresses_cost_one_call_however_many_and_none_if_there_are_none(
    name: str, cost: int
) -> None:
    scene, calls = await committing(name)(), Counter[str]()

    async def count(call: Call) -> None:
        calls[call.table] += 1

    await scene.act(scene.store.process(count))
    assert calls[indexes.WEBHOOKS] == cost


Verb = Callable[[TableLedger], Awaitable[object]]


async def acking(ledger: TableLedger) -> list[Claimed]:
    store = ledger.webhooks(AT_ONCE)
    claims = await store.claim_batch(MANY, LEASE)
    await store.ack(claims)
    return claims


async def failing(ledger: TableLedger) -> list[Claimed]:
    store = ledger.webhooks(AT_ONCE)
    claims = await store.claim_batch(MANY, LEASE)
    await store.nack([Failure(claimed, "no answer") for claimed in claims])
    return claims


async def releasing(ledger: TableLedger) -> list[Claimed]:
    store = ledger.webhooks(AT_ONCE)
    claims = await store.claim_batch(MANY, LEASE)
    await store.extend(claims, 2 * LEASE)
    await store.release(claims)
    return claims


async def giving_up(ledger: TableLedger) -> list[Claimed]:
    store = ledger.webhooks(ONCE)
    claims = await store.claim_batch(MANY, LEASE)
    await store.nack([Failure(claimed, "gone", permanent=True) for claimed in claims])
    return claims


async def sweeping(ledger: TableLedger) -> object:
    """Of webhooks whose deliverer died too often."""
    return await ledger.webhooks(RetryPolicy(max_reclaims=0)).sweep_dead()


def delivering(
    verb: Verb, *, expired: bool = False, new_store: NewStore = in_memory
) -> Setting[Committing]:
    """A verb on the webhooks of a job that has ended."""

    async def setting() -> Committing:
        scene = await the_end_in(new_store)()
        await scene.act(scene.store.ledger)
        if expired:
            await scene.store.ledger.webhooks().claim_batch(MANY, LEASE)
            scene.store.clock.advance(minutes=2)

        async def act(ledger: Ledger) -> object:
            assert isinstance(ledger, TableLedger)
            return await verb(ledger)

        return Committing(scene.store, act, scene.job, scene.decision)

    return setting


@pytest.mark.parametrize("verb", [acking, failing, releasing])
async def test_a_deliverer_that_dies_leaves_what_it_did_not_settle_to_others(verb: Verb) -> None:
    left = []
    for scene in await crashes(delivering(verb), anything):
        told = await delivered_later(scene.store)
        left.append(len(told))
        assert told in (Told(), await to_be_told(scene.store))
        assert not await places(scene.store.tables, indexes.WEBHOOKS)
    assert left[:-1] == [len(URLS)] * (len(left) - 1)
    assert left[-1] == (0 if verb is acking else len(URLS))


async def letters_of(store: Store) -> list[str]:
    """Of webhooks that were given up."""
    page = await store.ledger.dead_letters(DeadLetterQuery(code="webhook.UNDELIVERED"))
    return sorted(letter.id for letter in page.items)


@pytest.mark.parametrize(
    "setting", [delivering(giving_up), delivering(sweeping, expired=True)], ids=["nack", "sweep"]
)
async def test_what_was_given_up_is_a_dead_letter_whoever_died(
    setting: Setting[Committing],
) -> None:
    """Or it is still to be delivered; never neither, and never both."""
    kept = set()
    for scene in await crashes(setting, anything):
        store = scene.store
        buried = await store.ledger.webhooks(AT_ONCE).sweep_dead()
        assert buried.failed == []
        dead = {dead.id for dead in await store.ledger.webhooks().dead()}
        told = set(await delivered_later(store))
        assert dead | told == set(await to_be_told(store))
        assert not dead & told
        assert await letters_of(store) == sorted(f"webhook.{event_id}" for event_id in dead)
        states = {row.key.partition("!")[0] for row in await rows_of(store.tables, "webhooks")}
        assert states <= {"DEAD"}
        kept.add(len(dead))
    assert {0, len(URLS)} <= kept


async def test_of_two_deliverers_one_gets_a_webhook() -> None:
    deliveries = Deliveries()
    for scene, answer in await stalls(delivering(acking), deliveries, anything):
        assert isinstance(answer, list)
        told = deliveries.told[scene.store] + tellings(answer)
        assert told == await to_be_told(scene.store)


async def test_no_try_is_forgotten_by_a_deliverer_that_had_read_the_webhook_before() -> None:
    tried = defaultdict[Store, int](int)

    async def and_fail(store: Store) -> None:
        tried[store] += len(await failing(store.ledger))

    for scene, answer in await stalls(delivering(acking), and_fail, anything):
        assert isinstance(answer, list)
        assert {claimed.attempts for claimed in answer} <= {2 if tried[scene.store] else 1}


@pytest.mark.parametrize(
    ("new_store", "verb"),
    [
        ("memory", acking),
        ("memory", failing),
        ("memory", releasing),
        ("memory", giving_up),
        ("azure", acking),
        ("azure", giving_up),
    ],
    indirect=["new_store"],
)
async def test_a_deliverer_whose_answers_are_lost_holds_what_it_claimed(
    new_store: NewStore, verb: Verb
) -> None:
    for scene, answer in await resendings(delivering(verb, new_store=new_store), and_nothing):
        store = scene.store
        assert isinstance(answer, list)
        assert tellings(answer) == await to_be_told(store)
        left = await places(store.tables, indexes.WEBHOOKS)
        assert len(left) == (0 if verb is acking else len(URLS))
        assert len(await letters_of(store)) == (len(URLS) if verb is giving_up else 0)
        told = await delivered(store.ledger)
        assert len(told) == (len(URLS) if verb in (failing, releasing) else 0)


async def test_a_claim_that_was_taken_over_settles_nothing() -> None:
    scene = await delivering(acking)()
    slow, quick = scene.store.ledger.webhooks(), scene.store.ledger.webhooks()
    mine = await slow.claim_batch(MANY, LEASE)
    scene.store.clock.advance(minutes=2)
    theirs = await quick.claim_batch(MANY, LEASE)
    assert [claimed.id for claimed in theirs] == [claimed.id for claimed in mine]
    for settle in (slow.ack, slow.release):
        with pytest.raises(LeaseLost):
            await settle(mine)
    assert len(await places(scene.store.tables, indexes.WEBHOOKS)) == len(URLS)
    await quick.ack(theirs)


async def a_removal() -> Committing:
    scene = await the_end()
    await scene.act(scene.store.ledger)

    async def act(ledger: Ledger) -> None:
        await ledger.remove(await scene.store.the_job())

    return Committing(scene.store, act, scene.job, scene.decision)


async def and_forget(store: Store) -> None:
    """The job is removed, and after a day nothing is left of it."""
    for stored in await store.jobs(TENANT):
        await store.ledger.remove(stored)
    store.clock.advance(days=2)
    await store.ledger.prune(LATER, MANY)
    assert not (await Rows.read(store.tables)).tombstones


async def test_a_removal_that_dies_keeps_no_end_from_being_told() -> None:
    for scene in await crashes(a_removal, never_too_little):
        store = scene.store
        await and_forget(store)
        await store.ledger.repair(MANY)
        assert len(await delivered(store.ledger)) == len(URLS)
        assert not await places(store.tables, indexes.WEBHOOKS)


@pytest.mark.parametrize("verb", [acking, failing, releasing])
async def test_a_deliverer_that_stalls_while_the_job_goes_loses_no_webhook(verb: Verb) -> None:
    for scene, answer in await stalls(delivering(verb), and_forget, anything):
        got = tellings(answer) if verb is acking and isinstance(answer, list) else Told()
        later = await delivered_later(scene.store)
        assert len(got + later) == len(URLS)
        assert not await places(scene.store.tables, indexes.WEBHOOKS)


async def test_a_repair_that_stalls_while_a_job_goes_loses_no_webhook() -> None:
    async def a_repair() -> Scene:
        scene = await the_end()
        await scene.act(scene.store.ledger)
        return Scene(scene.store, lambda ledger: ledger.repair(MANY))

    async def and_remove(store: Store) -> None:
        for stored in await store.jobs(TENANT):
            await store.ledger.remove(stored)

    for scene, _ in await stalls(a_repair, and_remove, anything):
        await and_forget(scene.store)
        assert len(await delivered(scene.store.ledger)) == len(URLS)


async def test_what_was_given_up_is_forgotten_in_time_and_its_letter_stays() -> None:
    scene = await delivering(giving_up)()
    store = scene.store
    await scene.act(store.ledger)
    given_up_at = store.clock.now
    assert await store.ledger.prune(given_up_at, MANY) == 0
    store.clock.advance(hours=1)
    assert await store.ledger.prune(store.clock.now, 1) == 1
    assert await store.ledger.prune(store.clock.now, MANY) == 1
    assert await store.ledger.webhooks().dead() == []
    assert len(await letters_of(store)) == len(URLS)


async def test_who_delivers_hears_of_an_end_that_is_to_be_told() -> None:
    store, heard = Store(), Counter[str]()
    listening = asyncio.create_task(store.ledger.webhooks().listen(lambda: heard.update(["end"])))
    await asyncio.sleep(0)
    await (await store.world.create()).succeeds()
    assert heard.total() == 0
    await (await store.world.create(callback_urls=URLS)).succeeds()
    assert heard.total() == 1
    listening.cancel()
    await asyncio.wait([listening])
    await (await store.world.create(callback_urls=URLS)).succeeds()
    assert heard.total() == 1


async def test_a_late_reply_changes_nothing_of_what_is_told() -> None:
    scene = await the_end()
    store = scene.store
    await scene.act(store.ledger)
    story = Story(store.ledger, store.clock, await store.the_job())
    await story.happens(AckReceived("step_01", 1, "late", TENANT))
    assert await delivered(store.ledger) == await to_be_told(store)
