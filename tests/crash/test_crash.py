"""Engine processes, killed at random while they drive 1,000 jobs of three steps.

Two replicas share one ledger. Each submits all jobs, drives what it finds, and is killed (SIGKILL)
again and again. The service repeats, delays and swaps its replies. In the end the ledger must say
that every job ended as scripted, and that no attempt had two RESULTs.
"""

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sys import executable

import pytest
from psycopg import AsyncConnection

from lucius_bus.memory import MemoryBus
from lucius_bus.topology import Topology, lane_topology
from lucius_contract.states import TERMINAL_JOB_STATES, TERMINAL_STEP_STATES, StepState
from lucius_contract.transitions import StepTrigger
from lucius_orchestrator.domain.aggregate import Aggregate
from lucius_orchestrator.domain.decision import AuditEvent
from lucius_orchestrator.ports.ledger import Ledger
from tests import azurite, postgres
from tests.components import require
from tests.crash.jobs import LIMIT, SERVICES, expected, key
from tests.crash.process import open_ledger
from tests.crash.service import UnreliableService
from tests.crash.shared_bus import served
from tests.ledger.view import job_ids

JOBS = {"sqlite": 1000, "postgres": 1000, "azure_tables": 40}
"""Each costs many requests to Azurite."""

REPLICAS = 2
KILLS = 12
KILL_AFTER = (0.1, 1.5)  # seconds of a process's life
LOCK = timedelta(seconds=3)
DEADLINE = 280  # before the limit of a whole test
_RESULTS = {
    StepTrigger.RESULT_SUCCEEDED,
    StepTrigger.RESULT_RETRYABLE,
    StepTrigger.RESULT_FINAL,
}


@asynccontextmanager
async def store(backend: str, folder: Path) -> AsyncIterator[str]:
    if backend == "sqlite":
        yield str(folder / "ledger.db")
    elif backend == "azure_tables":
        require(azurite.is_available(), "Azurite")
        with azurite.azurite_server() as server:
            yield server.connection
    else:
        require(postgres.is_available(), "PostgreSQL")
        with postgres.postgres_server() as uri:
            yield uri


def topology() -> Topology:
    """With short locks, so that what a killed process held is soon received again."""
    usual = lane_topology(SERVICES).topics
    return Topology(
        {
            topic: tuple(replace(s, lock_duration=LOCK, max_delivery_count=100) for s in settings)
            for topic, settings in usual.items()
        }
    )


class Killer:
    """Starts a replica, lets it live for a moment, kills it; the last one lives on."""

    def __init__(self, chance: random.Random, command: tuple[str, ...]) -> None:
        self._chance = chance
        self._command = command
        self.kills_left = KILLS

    async def keep_one(self) -> None:
        while True:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdout=asyncio.subprocess.PIPE
            )
            try:
                assert process.stdout is not None
                assert await process.stdout.readline() == b"ready\n", "the process did not start"
                if self.kills_left <= 0:
                    await process.wait()
                    raise AssertionError("a process ended by itself")
                self.kills_left -= 1
                await asyncio.sleep(self._chance.uniform(*KILL_AFTER))
            finally:
                if process.returncode is None:
                    process.kill()
                await process.wait()


async def all_ended(ledger: Ledger, jobs: int) -> None:
    """Look at the counters until nothing is in flight; they never go above the limit."""
    found = 0
    while found < jobs:
        total = (await ledger.in_flight()).total
        assert 0 <= total <= LIMIT
        if total == 0:
            found = sum([await is_terminal(ledger, number) for number in range(jobs)])
        await asyncio.sleep(0.2)


async def is_terminal(ledger: Ledger, number: int) -> bool:
    found = await ledger.find(f"tenant-{number % 20}", f"key:{key(number)}")
    stored = await ledger.load(found.job_id) if found else None
    return stored is not None and stored.aggregate.job.state in TERMINAL_JOB_STATES


async def aggregate_of(ledger: Ledger, number: int) -> Aggregate:
    found = await ledger.find(f"tenant-{number % 20}", f"key:{key(number)}")
    assert found is not None
    stored = await ledger.load(found.job_id)
    assert stored is not None
    return stored.aggregate


async def history_of(ledger: Ledger, number: int) -> tuple[Aggregate, list[AuditEvent]]:
    """Of one moment: what the service repeats is recorded also when the job has ended."""
    while True:
        aggregate = await aggregate_of(ledger, number)
        events = await ledger.events(aggregate.job.job_id, limit=10_000)
        if (await aggregate_of(ledger, number)).job.seq == aggregate.job.seq:
            return aggregate, events


def check_history(aggregate: Aggregate, events: list[AuditEvent]) -> None:
    """One RESULT per attempt at most, steps in order, no gap in the events."""
    assert [event.seq for event in events] == list(range(1, aggregate.job.seq + 1))
    results = Counter(
        (event.step_id, event.attempt_no) for event in events if event.cause in _RESULTS
    )
    assert set(results.values()) <= {1}
    ended: list[str] = []
    for event in events:
        if event.target == StepState.DISPATCHING and event.step_id is not None:
            assert ended == [f"step_{n + 1:02d}" for n in range(len(ended))]
            assert event.step_id == f"step_{len(ended) + 1:02d}"
        if event.target == StepState.SUCCEEDED and event.step_id is not None:
            ended.append(event.step_id)


def check_attempts(aggregate: Aggregate, service: UnreliableService) -> None:
    """What the ledger says was done, the service did."""
    for step in aggregate.steps:
        assert step.state in TERMINAL_STEP_STATES
        assert [attempt.attempt_no for attempt in step.attempts] == list(
            range(1, len(step.attempts) + 1)
        )
        for attempt in step.attempts:
            if attempt.result_digest is not None:
                made = (aggregate.job.job_id, step.step_id, attempt.attempt_no)
                assert service.directives[made] >= 1


@pytest.mark.parametrize("backend", JOBS)
async def test_killed_engines_lose_no_job_and_apply_no_result_twice(
    backend: str, tmp_path: Path
) -> None:
    jobs, seed = JOBS[backend], random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    bus = MemoryBus(lambda: datetime.now(UTC))
    bus.apply(topology())
    service = UnreliableService(bus, chance)
    with tempfile.TemporaryDirectory(prefix="bus") as short:
        socket = f"{short}/bus"
        async with store(backend, tmp_path) as address, served(bus, socket):
            command = (executable, "-m", "tests.crash.process", backend, address, socket, str(jobs))
            killer = Killer(chance, command)
            ledger = await open_ledger(backend, address)
            background = [asyncio.create_task(service.run())]
            background += [asyncio.create_task(killer.keep_one()) for _ in range(REPLICAS)]
            try:
                async with asyncio.timeout(DEADLINE):
                    ending = asyncio.create_task(all_ended(ledger, jobs))
                    done, _ = await asyncio.wait(
                        {ending, *background}, return_when=asyncio.FIRST_COMPLETED
                    )
                    await asyncio.gather(*done)
                assert killer.kills_left <= 0
                for number in range(jobs):
                    aggregate, events = await history_of(ledger, number)
                    assert aggregate.job.state is expected(number)
                    check_attempts(aggregate, service)
                    check_history(aggregate, events)
                assert (await ledger.in_flight()).total == 0
                await check_repair(backend, ledger)
                assert await count_of_jobs(backend, ledger, address) == jobs
            finally:
                for task in background:
                    task.cancel()
                await asyncio.gather(*background, return_exceptions=True)
                await ledger.close()


async def check_repair(backend: str, ledger: Ledger) -> None:
    """Where a commit is one transaction nothing is left to mend; else what the killed have left
    is mended, and that has an end."""
    found = await ledger.repair(10_000)
    assert backend == "azure_tables" or found == []
    async with asyncio.timeout(DEADLINE):
        while found:
            found = await ledger.repair(10_000)


async def count_of_jobs(backend: str, ledger: Ledger, address: str) -> int:
    """Submitted many times over, each job exists once."""
    count = "SELECT count(*) FROM lucius_ledger_jobs"
    if backend == "azure_tables":
        return len(await job_ids(ledger))
    if backend == "postgres":
        async with await AsyncConnection.connect(address) as connection:
            found = await (await connection.execute(count)).fetchone()
    else:
        import sqlite3

        with sqlite3.connect(address) as plain:
            found = plain.execute(count).fetchone()
        plain.close()
    assert found is not None
    return int(found[0])
