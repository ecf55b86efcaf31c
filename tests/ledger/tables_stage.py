"""A stage for table ledgers: processes that die, stall or repeat themselves at any storage call."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol, TypeVar

from lucius_orchestrator.adapters.ledger.tables import indexes
from lucius_orchestrator.adapters.ledger.tables.ledger import TableLedger
from lucius_orchestrator.adapters.ledger.tables.store import (
    Call,
    Hook,
    MemoryTables,
    Operation,
    Tables,
)
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.domain.timers import TimerKind, next_due
from lucius_orchestrator.ports.ledger import Ledger, LedgerError, Stored
from tests.ledger.backends import Clock
from tests.ledger.jobs import LEASE, MANY, TENANT, World
from tests.ledger.tables_soundness import (
    Check,
    Rows,
    never_too_little_while_jobs_stay,
    nothing_too_much,
)
from tests.ledger.view import LATER, letters
from tests.runner.deadlines import DEADLINE

Act = Callable[[Ledger], Awaitable[object]]


class Crash(Exception):
    """The process is gone."""


class SharedTables(Tables, Protocol):
    """Tables that several processes use."""

    def shared(self, before: Hook | None = None) -> Tables:
        """Those of another process, which can be stopped before its calls."""


class Store:
    """Tables with a ledger that is well, beside those that a test breaks."""

    def __init__(self, tables: SharedTables | None = None) -> None:
        self.clock = Clock()
        self.tables = tables or MemoryTables()
        self.ledger = self.process()
        self.told: set[str] = set()
        self.world = World(self.ledger, self.clock)

    def process(self, before: Hook | None = None, grace: timedelta = timedelta()) -> TableLedger:
        return TableLedger(self.tables.shared(before), clock=self.clock, grace=grace)

    async def jobs(self, tenant: str | None = None) -> list[Stored]:
        rows = await Rows.read(self.tables)
        wanted = [job for job in rows.jobs.values() if tenant in (None, job.tenant_id)]
        found = [await self.ledger.load(job.job_id) for job in wanted]
        return [stored for stored in found if stored is not None]

    async def sendable(self) -> set[str]:
        """What can be claimed or taken once every lease is over."""
        self.clock.advance(seconds=31)
        claims = [claim for kind in OutboxKind for claim in await self.world.claim(kind=kind)]
        attempts = [
            (stored.aggregate.job.job_id, step.step_id, attempt.attempt_no)
            for stored in await self.jobs()
            for step in stored.aggregate.steps
            for attempt in step.attempts
        ]
        taken = [await self.ledger.take(*attempt, LEASE) for attempt in attempts]
        return {claim.row.outbox_id for claim in [*claims, *taken] if claim is not None}

    async def the_job(self) -> Stored:
        (stored,) = await self.jobs(TENANT)
        return stored

    async def mended(self) -> None:
        await self.ledger.repair(MANY)
        await nothing_too_much(self.tables, self.told)
        assert await self.ledger.repair(MANY) == []


NewStore = Callable[[], Awaitable[Store]]


async def in_memory() -> Store:
    return Store()


@dataclass(frozen=True)
class Scene:
    """A store on which something is about to be done."""

    store: Store
    act: Act


SceneT = TypeVar("SceneT", bound=Scene)
Setting = Callable[[], Awaitable[SceneT]]
Meanwhile = Callable[[Store], Awaitable[None]]


@dataclass
class Stopper:
    """A hook that stops its process before one call, and looks at the rows before each."""

    store: Store
    at: int
    check: Check = never_too_little_while_jobs_stay
    crashes: bool = True
    calls: int = 0
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, _: Call) -> None:
        await self.check(self.store.tables)
        number, self.calls = self.calls, self.calls + 1
        if number < self.at:
            return
        self.stopped.set()
        if self.crashes:
            raise Crash
        if number == self.at:
            await self.go.wait()


async def crashes(
    setting: Setting[SceneT], check: Check = never_too_little_while_jobs_stay
) -> list[SceneT]:
    """Scenes as a process leaves them that dies before its first call, its second, and so on; at
    last as it leaves them when it is done."""
    left = []
    for at in itertools.count():
        scene = await setting()
        hook = Stopper(scene.store, at, check)
        with suppress(Crash):
            await scene.act(scene.store.process(hook))
        await check(scene.store.tables)
        left.append(scene)
        if not hook.stopped.is_set():
            break
    assert len(left) > 1
    return left


class Stall:
    """A process that stands still before a call, until it is told to go on."""

    def __init__(self, scene: Scene, hook: Stopper) -> None:
        self._hook = hook
        self._task = asyncio.ensure_future(scene.act(scene.store.process(hook)))

    async def begin(self) -> bool:
        """Whether it came to stand."""
        waiting = asyncio.ensure_future(self._hook.stopped.wait())
        async with asyncio.timeout(DEADLINE):
            await asyncio.wait([waiting, self._task], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return self._hook.stopped.is_set()

    async def end(self) -> object:
        self._hook.go.set()
        return await _answer(self._task)


async def stall(scene: Scene, at: int, check: Check = never_too_little_while_jobs_stay) -> Stall:
    """A process that stands still before the call of this number, if it makes so many."""
    stalled = Stall(scene, Stopper(scene.store, at, check, crashes=False))
    await stalled.begin()
    return stalled


async def stalls(
    setting: Setting[SceneT],
    meanwhile: Meanwhile,
    check: Check = never_too_little_while_jobs_stay,
) -> list[tuple[SceneT, object]]:
    """Scenes and answers after a process stood still before each of its calls in turn, while
    something else was done."""
    ends: list[tuple[SceneT, object]] = []
    for at in itertools.count():
        scene = await setting()
        stalled = Stall(scene, Stopper(scene.store, at, check, crashes=False))
        if not await stalled.begin():
            await stalled.end()
            break
        await meanwhile(scene.store)
        ends.append((scene, await stalled.end()))
        await check(scene.store.tables)
    assert ends
    return ends


class Resending:
    """A client that sends one of its batches again, since the answer to the first was lost."""

    def __init__(self, store: Store, number: int, meanwhile: Meanwhile) -> None:
        self._store = store
        self._tables = tables = store.tables.shared()
        self._countdown = number
        self._meanwhile = meanwhile
        self.get = tables.get
        self.query = tables.query
        self.scan = tables.scan
        self.close = tables.close

    @property
    def has_resent(self) -> bool:
        return self._countdown < 0

    async def batch(
        self, table: str, partition: str, operations: Sequence[Operation]
    ) -> list[str | None]:
        self._countdown -= 1
        if self._countdown == -1:
            await self._tables.batch(table, partition, operations)
            await self._meanwhile(self._store)
        return await self._tables.batch(table, partition, operations)


async def resendings(setting: Setting[SceneT], meanwhile: Meanwhile) -> list[tuple[SceneT, object]]:
    """Scenes and answers after each of the batches in turn was sent twice, with something done in
    between."""
    ends: list[tuple[SceneT, object]] = []
    for number in itertools.count():
        scene = await setting()
        tables = Resending(scene.store, number, meanwhile)
        answer = await _answer(scene.act(TableLedger(tables, clock=scene.store.clock)))
        if not tables.has_resent:
            break
        ends.append((scene, answer))
    assert ends
    return ends


async def and_nothing(_: Store) -> None:
    pass


async def and_repair(store: Store) -> None:
    await store.ledger.repair(MANY)


async def _answer(act: Awaitable[object]) -> object:
    """What became of it: its answer, or its error if a ledger may raise it."""
    async with asyncio.timeout(DEADLINE):
        try:
            return await act
        except LedgerError as error:
            return error


async def check_whole(store: Store, stored: Stored) -> None:
    """What the verbs say of the job is what its rows say."""
    ledger, job = store.ledger, stored.aggregate.job
    events = await ledger.events(job.job_id, limit=MANY)
    assert [event.seq for event in events] == list(range(1, job.seq + 1))
    deadline = next_due(stored.aggregate)
    if deadline is not None:
        assert job.job_id in dict(await ledger.due(list(TimerKind), deadline.at, MANY))
    assert (job.job_id in await ledger.ended(LATER, MANY)) == (job.completed_at is not None)
    waiting = await ledger.in_states(list(indexes.WAITING), MANY)
    assert (job.job_id in waiting) == (job.state in indexes.WAITING)
    if job.error_code is not None:
        assert job.error_code in {letter.code for letter in await letters(ledger)}
