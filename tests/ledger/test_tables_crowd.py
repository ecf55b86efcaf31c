"""Many processes on one store of tables, in any order of their storage calls."""

import asyncio
import random
from contextlib import suppress

import pytest

from lucius_orchestrator.adapters.ledger.tables.ledger import TableLedger
from lucius_orchestrator.adapters.ledger.tables.store import Call
from lucius_orchestrator.domain.events import OutboxSent, RetryDue
from lucius_orchestrator.ports.ledger import (
    Conflict,
    Ledger,
    LedgerUnavailable,
    Limits,
    Saturated,
    Stored,
)
from tests.ledger.jobs import DIRECTIVE, LEASE, MANY, Story
from tests.ledger.tables_soundness import Rows, never_too_little
from tests.ledger.tables_stage import Store
from tests.ledger.view import LATER, job_ids

MOST = 3


class Crowd:
    """Processes that take turns between storage calls, in an order that a seed decides."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.store = Store()

    async def take_turns(self, _: Call) -> None:
        for _turn in range(self.random.randrange(4)):
            await asyncio.sleep(0)
        assert len((await Rows.read(self.store.tables)).in_flight) <= MOST
        await never_too_little(self.store.tables)

    def process(self) -> TableLedger:
        return self.store.process(self.take_turns)

    async def submit(self, key: str) -> None:
        for _ in range(4):
            submission = self.store.world.submission(entry=key)
            with suppress(Saturated, LedgerUnavailable):
                await self.process().create(*submission, Limits(MOST, MOST, MOST))
                return

    async def dispatch(self) -> None:
        ledger = self.process()
        for _ in range(4):
            for claim in await ledger.claim(DIRECTIVE, 2, LEASE):
                stored = await ledger.load(claim.job_id)
                if stored is None:
                    await ledger.discard([claim])
                    continue
                identity = (claim.row.step_id, claim.row.attempt_no, claim.row.lease_id)
                with suppress(Conflict):
                    await self.story(ledger, stored).happens(OutboxSent(*identity), claim)

    async def work(self) -> None:
        ledger = self.process()
        for _ in range(6):
            for job_id in await job_ids(ledger):
                stored = await ledger.load(job_id)
                if stored is not None:
                    with suppress(Conflict):
                        await self.go_on(ledger, stored)

    async def go_on(self, ledger: Ledger, stored: Stored) -> None:
        story, chance = self.story(ledger, stored), self.random.random()
        if story.ended:
            await ledger.remove(stored)
        elif chance < 0.2:
            await story.fails_for_now()
            await story.fires(RetryDue)
        elif chance < 0.4:
            await ledger.reschedule(stored)
        elif chance < 0.8:
            await story.happens(story.result())

    async def repair(self) -> None:
        ledger = self.process()
        for _ in range(4):
            await ledger.repair(MANY)
            await ledger.ended(LATER, MANY)
            for _turn in range(self.random.randrange(40)):
                await asyncio.sleep(0)

    async def remove_all_that_ended(self) -> None:
        """A removal that was overtaken has deleted the entry, and is due again."""
        ledger = self.store.ledger
        for job_id in await ledger.ended(LATER, MANY):
            stored = await ledger.load(job_id)
            assert stored is not None
            await ledger.remove(stored)

    def story(self, ledger: Ledger, stored: Stored) -> Story:
        return Story(ledger, self.store.clock, stored)


@pytest.mark.parametrize("seed", range(40))
async def test_any_order_of_storage_calls_of_many_processes_is_sound(seed: int) -> None:
    crowd = Crowd(seed)
    submissions = [crowd.submit(f"key:{number % 4}") for number in range(10)]
    others = [crowd.dispatch(), crowd.work(), crowd.work(), crowd.repair(), crowd.repair()]
    async with asyncio.timeout(60):
        await asyncio.gather(*submissions, *others)
    await crowd.remove_all_that_ended()
    await crowd.store.mended()
    assert not (await Rows.read(crowd.store.tables)).orphans
