"""Many processes on one store of tables, in any order of their storage calls."""

import asyncio
import random
from contextlib import suppress

import pytest

from lucius_orchestrator.adapters.ledger.tables.ledger import TableLedger
from lucius_orchestrator.adapters.ledger.tables.store import Call
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.domain.events import OutboxSent, RetryDue
from lucius_orchestrator.domain.workflow import Action, what_next
from lucius_orchestrator.ports.ledger import (
    Claim,
    Conflict,
    Ledger,
    LedgerUnavailable,
    Limits,
    Saturated,
    Stored,
)
from tests.ledger.backends import START
from tests.ledger.jobs import DIRECTIVE, LEASE, MANY, Story, directive_of
from tests.ledger.tables_soundness import Rows, never_too_little
from tests.ledger.tables_stage import Store
from tests.ledger.test_claims_at_birth import Nursery
from tests.ledger.test_tables_queues import Turns
from tests.ledger.view import LATER, job_ids
from tests.runner.deadlines import seconds

MOST = 3
ENGINES = list(Engine)


class Crowd:
    """Processes that take turns between storage calls, in an order that a seed decides."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.store = Store()

    async def take_turns(self, _: Call) -> None:
        for _turn in range(self.random.randrange(4)):
            await asyncio.sleep(0)
        assert len((await Rows.read(self.store.tables)).in_flight) <= MOST
        await never_too_little(self.store.tables, self.store.told)

    def process(self) -> TableLedger:
        return self.store.process(self.take_turns)

    async def submit(self, key: str, ledger: Ledger | None = None) -> None:
        for _ in range(4):
            submission = self.store.world.submission(entry=key, engine=self.random.choice(ENGINES))
            with suppress(Saturated, LedgerUnavailable):
                await (ledger or self.process()).create(*submission, Limits(MOST, MOST, MOST))
                return

    async def dispatch(self) -> None:
        ledger = self.process()
        for _ in range(4):
            in_turn = self.random.random() < 0.5
            claims = (
                ledger.claim_in_turn(Turns(2), LEASE)
                if in_turn
                else ledger.claim(DIRECTIVE, 2, LEASE)
            )
            for claim in await claims:
                stored = await ledger.load(claim.job_id)
                if stored is None:
                    await ledger.discard([claim])
                    continue
                await self.publish(ledger, stored, claim)

    async def some(self, ledger: Ledger) -> list[Claim]:
        if self.random.random() < 0.5:
            return await ledger.claim_in_turn(Turns(2), LEASE)
        return await ledger.claim(DIRECTIVE, 2, LEASE)

    async def publish(self, ledger: Ledger, stored: Stored, claim: Claim) -> None:
        row = directive_of(claim)
        sent = OutboxSent(row.step_id, row.attempt_no, row.lease_id)
        with suppress(Conflict):
            await self.story(ledger, stored).happens(sent, claim)

    async def tell(self, kind: OutboxKind) -> None:
        """What workflows are told, by a process that begins and ceases to adopt."""
        ledger, nursery = self.process(), Nursery(room=2)
        ledger.adopt(kind, LEASE, nursery)
        for _ in range(6):
            await self.submit(f"key:{self.random.randrange(4)}", ledger)
            claims = [*nursery.taken, *await ledger.claim(kind, 2, LEASE)]
            nursery.taken.clear()
            self.store.told.update(claim.row.outbox_id for claim in claims)
            await ledger.discard(claims)

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
        elif what_next(story.aggregate)["action"] == Action.OPEN:
            story.clock.now = max(story.clock.now, story.aggregate.active.next_attempt_at or START)
            await story.opened()
        elif story.job.engine is Engine.TEMPORAL and chance < 0.3:
            claim = await story.taken(ledger)
            if claim is not None:
                await self.publish(ledger, stored, claim)
        elif chance < 0.2:
            await story.fails_for_now()
            if story.job.engine is Engine.LEDGER:
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
    others += [crowd.tell(kind) for kind in (OutboxKind.START, OutboxKind.SIGNAL)]
    async with asyncio.timeout(seconds(60)):
        await asyncio.gather(*submissions, *others)
    await crowd.remove_all_that_ended()
    await crowd.store.mended()
    assert not (await Rows.read(crowd.store.tables)).orphans
