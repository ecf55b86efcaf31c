"""Engine processes, killed at random while they drive jobs of three steps.

Two replicas share one ledger. Each submits all jobs, drives what it finds, and is killed (SIGKILL)
again and again. The service repeats, delays and swaps its replies. In the end the ledger must say
that every job ended as scripted, and that no attempt had two RESULTs.
"""

import asyncio
import random
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from sys import executable

import pytest

from lucius_bus.memory import MemoryBus
from lucius_orchestrator.ports.ledger import Ledger
from tests.crash.goal import Goal
from tests.crash.jobs import LIMIT, expected, topology
from tests.crash.killer import Killer
from tests.crash.process import open_ledger
from tests.crash.service import UnreliableService
from tests.crash.shared_bus import served
from tests.crash.store import counted, store
from tests.crash.verdict import all_ended, check_attempts, check_history, history_of
from tests.ledger.view import job_ids
from tests.runner.deadlines import seconds, time_limit
from tests.runner.tiers import by_tier
from tests.runner.workload import Workload

JOBS = {"sqlite": by_tier(180, 500, 1000), "postgres": by_tier(0, 400, 1000), "azure_tables": 12}
"""Each costs many requests to Azurite."""
WAVE = {"sqlite": LIMIT, "postgres": LIMIT, "azure_tables": 12}

REPLICAS = 2
KILLS = by_tier(6, 12)
KILL_AFTER = (0.1, 1.5)  # seconds of a process's life
DEADLINE = seconds(240)

pytestmark = time_limit(280)


@pytest.mark.parametrize(
    "backend",
    [
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.check),
        pytest.param("azure_tables", marks=pytest.mark.check),
    ],
)
async def test_killed_engines_lose_no_job_and_apply_no_result_twice(
    backend: str, tmp_path: Path
) -> None:
    seed, goal = random.randrange(2**32), Goal(str(tmp_path / "goal"))
    print(f"seed {seed}")
    chance = random.Random(seed)
    bus = MemoryBus(lambda: datetime.now(UTC))
    bus.apply(topology())
    service = UnreliableService(bus, chance)
    with tempfile.TemporaryDirectory(prefix="bus") as short:
        socket = f"{short}/bus"
        async with store(backend, tmp_path) as address, served(bus, socket):
            command = (executable, "-m", "tests.crash.process", backend, address, socket, *goal)
            killer = Killer(chance, command, KILLS, KILL_AFTER)
            ledger = await open_ledger(backend, address)
            background = [asyncio.create_task(service.run())]
            background += [asyncio.create_task(killer.keep_one()) for _ in range(REPLICAS)]
            try:
                async with asyncio.timeout(DEADLINE):
                    ending = asyncio.create_task(worked(backend, ledger, service, goal, killer))
                    done, _ = await asyncio.wait(
                        {ending, *background}, return_when=asyncio.FIRST_COMPLETED
                    )
                    await asyncio.gather(*done)
                jobs = ending.result()
                print(f"{jobs} jobs")
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


async def worked(
    backend: str, ledger: Ledger, service: UnreliableService, goal: Goal, killer: Killer
) -> int:
    """When they all have ended: how many jobs there were."""
    workload = Workload(JOBS[backend], enough=lambda: killer.kills_left <= 0)
    submitted = 0
    while workload.wants_more(submitted):
        submitted += WAVE[backend]
        goal.raise_to(submitted)
        await service.has_seen(submitted)
    await all_ended(ledger, submitted, LIMIT)
    return submitted


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
    if backend == "azure_tables":
        return len(await job_ids(ledger))
    return await counted(backend, address, "SELECT count(*) FROM lucius_ledger_jobs")
