"""Every adapter is in this suite, can be checked, listened to, repaired and closed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from uuid import UUID

import pytest

from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.ledger.outbox_rows import NAMESPACES
from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.domain.timers import TimerKind
from lucius_orchestrator.ports.ledger import (
    DeadLetterQuery,
    JobQuery,
    Ledger,
    LedgerUnavailable,
    Limits,
    Queue,
    TrafficReport,
)
from lucius_outbox import ReplayForbidden
from lucius_outbox.sqlite import SqliteStore
from tests.ledger.backends import START, Backend, adapters_in_the_suite, adapters_in_the_tree
from tests.ledger.jobs import DIRECTIVE, LEASE, MANY, TENANT, World
from tests.ledger.test_dead_letters import UNREADABLE
from tests.ledger.view import LATER, assert_unchanged, view
from tests.runner.deadlines import DEADLINE


def test_every_adapter_is_in_this_suite() -> None:
    assert adapters_in_the_tree() == adapters_in_the_suite()


async def test_a_ledger_that_can_be_used_passes_its_check(ledger: Ledger, world: World) -> None:
    await ledger.check()
    await world.create()
    await ledger.check()


async def test_closing_twice_is_nothing(backend: Backend, world: World) -> None:
    await world.create()
    await backend.ledger.close()
    await backend.ledger.close()


async def test_two_may_close_at_once(backend: Backend) -> None:
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(backend.ledger.close(), backend.ledger.close())


async def test_closing_one_ledger_leaves_the_others_open(backend: Backend, world: World) -> None:
    other = await backend.reopen()
    await other.close()
    await backend.ledger.check()
    job = await world.create()
    await job.succeeds()


class NoTurns:
    """No service has room."""

    def room(self, _service: str) -> int:
        return 0

    def last(self, _service: str, _mode: Mode) -> Queue | None:
        return None

    def allot(self, _service: str, _waiting: Sequence[Queue]) -> Mapping[Queue, int]:
        return {}


NO_TURNS = NoTurns()
REPORT = TrafficReport("process_1", START, "{}")
VERBS: dict[str, Callable[[Ledger, World], Awaitable[object]]] = {
    "create": lambda ledger, world: ledger.create(*world.submission(), Limits()),
    "load": lambda ledger, _: ledger.load("job_1"),
    "find": lambda ledger, _: ledger.find(TENANT, "key:a"),
    "jobs": lambda ledger, _: ledger.jobs(JobQuery()),
    "events": lambda ledger, _: ledger.events("job_1"),
    "due": lambda ledger, _: ledger.due(list(TimerKind), LATER, 1),
    "ended": lambda ledger, _: ledger.ended(LATER, 1),
    "claim": lambda ledger, _: ledger.claim(DIRECTIVE, 1, LEASE),
    "claim_in_turn": lambda ledger, _: ledger.claim_in_turn(NO_TURNS, LEASE),
    "take": lambda ledger, _: ledger.take("job_1", "step_01", 1, LEASE),
    "directive": lambda ledger, _: ledger.directive("job_1", "step_01", 1),
    "in_flight": lambda ledger, _: ledger.in_flight(TENANT),
    "backlog": lambda ledger, _: ledger.backlog(),
    "backlogs": lambda ledger, _: ledger.backlogs(),
    "publish_report": lambda ledger, _: ledger.publish_report(REPORT),
    "reports": lambda ledger, _: ledger.reports(START),
    "withdraw_report": lambda ledger, _: ledger.withdraw_report("process_1"),
    "dead_letters": lambda ledger, _: ledger.dead_letters(DeadLetterQuery()),
    "bury": lambda ledger, _: ledger.bury(UNREADABLE),
    "mark_redriven": lambda ledger, _: ledger.mark_redriven("job_1", "job_2"),
    "prune": lambda ledger, _: ledger.prune(LATER, 1),
    "repair": lambda ledger, _: ledger.repair(1),
    "check": lambda ledger, _: ledger.check(),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_closed_ledger_is_unavailable(backend: Backend, world: World, verb: str) -> None:
    """At once, and with no error of a driver."""
    await backend.ledger.close()
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(LedgerUnavailable):
            await VERBS[verb](backend.ledger, world)


async def test_a_store_that_is_well_needs_no_repair(ledger: Ledger, world: World) -> None:
    jobs = await world.create_many(4)
    await jobs[1].fails()
    await jobs[2].paused()
    (claim, *_) = await world.claim()
    await jobs[0].sent(claim)
    before = await view(ledger)
    assert await ledger.repair(MANY) == []
    assert_unchanged(before, await view(ledger))


@pytest.mark.parametrize("engine", Engine)
async def test_a_listener_is_woken_by_commits_that_bring_something_to_send(
    ledger: Ledger, world: World, engine: Engine
) -> None:
    """It may miss some, and may wake for nothing at first: more come until it woke thrice."""
    woken = asyncio.Event()
    listening = asyncio.create_task(ledger.listen(woken.set))
    try:
        async with asyncio.timeout(DEADLINE):
            for _ in range(3):
                woken.clear()
                while not woken.is_set():
                    await world.create(engine=engine)
                    await asyncio.wait([listening], timeout=0.05)
                    assert not listening.done()
    finally:
        listening.cancel()
        await asyncio.wait([listening])
    assert listening.cancelled()


async def test_a_ledger_can_be_closed_while_it_is_listened_to(backend: Backend) -> None:
    """Listening may end with the ledger, but with no error of a driver."""
    listening = asyncio.create_task(backend.ledger.listen(lambda: None))
    await asyncio.wait([listening], timeout=0.05)
    async with asyncio.timeout(DEADLINE):
        await backend.ledger.close()
        listening.cancel()
        (ended,) = await asyncio.gather(listening, return_exceptions=True)
    assert isinstance(ended, asyncio.CancelledError | LedgerUnavailable | None)


async def test_rows_that_jobs_bring_are_never_replayed_by_hand(tmp_path: Path) -> None:
    """Those of webhooks may be."""
    ledger = await SqliteLedger.open(tmp_path / "ledger.db")
    await ledger.close()
    for kind, namespace in NAMESPACES.items():
        async with SqliteStore(tmp_path / "ledger.db", namespace) as store:
            may_be = kind is OutboxKind.WEBHOOK
            with nullcontext() if may_be else pytest.raises(ReplayForbidden):
                await store.replay([str(UUID(int=1))], by="ada", reason="please")
