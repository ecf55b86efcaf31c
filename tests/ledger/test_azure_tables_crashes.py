"""Processes that die, stall or repeat themselves between any two calls to the real tables.

That the rows are sound between any two calls is tested in memory, where looking costs nothing.
Here it is looked at the end, by what the verbs say and by what the rows are after a repair, and
for one change of each kind: a single one costs hundreds of requests.
"""

from collections.abc import AsyncIterator

import pytest

from lucius_orchestrator.adapters.ledger.tables.store import Tables
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.ports.ledger import Conflict, Stored
from tests.azurite import Azurite
from tests.ledger.azure_stage import Account
from tests.ledger.tables_soundness import Rows
from tests.ledger.tables_stage import (
    Scene,
    and_repair,
    check_whole,
    crashes,
    resendings,
    stalls,
)
from tests.ledger.test_tables_commits import committing
from tests.ledger.test_tables_creation import ONE, created, submit_again

pytestmark = pytest.mark.check


@pytest.fixture
async def account(azure_storage: Azurite) -> AsyncIterator[Account]:
    account = Account(azure_storage)
    yield account
    await account.close()


async def at_the_end(_: Tables) -> None:
    """Not between the calls."""


@pytest.mark.parametrize(
    "name", ["the next directive", "the end that is told", "an invocation and a signal"]
)
async def test_a_row_that_was_committed_can_be_sent_whoever_died(
    account: Account, name: str
) -> None:
    outcomes = []
    for scene in await crashes(committing(name, account.new_store), at_the_end):
        store, stored = scene.store, await scene.store.the_job()
        done = stored.aggregate != scene.job.aggregate
        outcomes.append(done)
        sendable = await store.sendable()
        assert sendable == (await Rows.read(store.tables)).unsent
        assert not done or {row.outbox_id for row in scene.decision.outbox} <= sendable
        await check_whole(store, stored)
        await store.mended()
    assert set(outcomes) == {True, False}


@pytest.mark.parametrize("name", ["the next directive", "an invocation and a signal", "the end"])
async def test_a_writer_that_stalled_while_others_repaired_conflicts_or_has_succeeded(
    account: Account, name: str
) -> None:
    ends = await stalls(committing(name, account.new_store), and_repair, at_the_end)
    for scene, answer in ends:
        stored = await scene.store.the_job()
        if isinstance(answer, Stored):
            assert stored == answer
        else:
            assert isinstance(answer, Conflict)
            assert stored.aggregate == scene.job.aggregate
        await check_whole(scene.store, stored)
        await scene.store.mended()
    if name == "the next directive":
        assert {type(answer) for _, answer in ends} == {Stored, Conflict}


@pytest.mark.parametrize(
    "name", ["the next directive", "a directive that was sent", "a signal", "the end"]
)
async def test_a_writer_whose_answers_are_lost_has_made_its_commit(
    account: Account, name: str
) -> None:
    async def and_nothing(_: object) -> None: ...

    for scene, answer in await resendings(committing(name, account.new_store), and_nothing):
        assert isinstance(answer, Stored)
        assert await scene.store.the_job() == answer
        await scene.store.mended()


@pytest.mark.parametrize("engine", Engine)
async def test_a_creator_that_dies_leaves_a_whole_job_or_nothing_that_counts(
    account: Account, engine: Engine
) -> None:
    async def a_creation() -> Scene:
        store = await account.new_store()
        submission = store.world.submission(entry="key:a", engine=engine)
        return Scene(store, lambda ledger: ledger.create(*submission, ONE))

    outcomes = []
    for scene in await crashes(a_creation, at_the_end):
        store = scene.store
        stored = await created(store)
        outcomes.append(stored is not None)
        assert len(await store.sendable()) == (stored is not None)
        await store.mended()
        assert await created(store) == stored
        await submit_again(store)
        assert await created(store) is not None
    assert set(outcomes) == {True, False}
