"""The Temporal engine beside a bare workflow of three activities, on one server in the same run.

Ours: a job of three steps that do nothing: its rows in SQLite with `synchronous = FULL`, a workflow
that asks the invoker over HTTP, directives and replies over a bus, signals. The peer: see
`benchmarks.temporal_bare`. Both have one process beside the server, whose database is a file.
They take turns: `JOBS` with `AT_ONCE` in flight for the rate, then `SINGLES` one after the other
for the latency. A job of ours counts when its workflow has closed, after callers see its end.

    python -m benchmarks.bench_temporal [ROUNDS [JOBS]]
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from benchmarks import temporal_bare
from benchmarks.report import report
from benchmarks.temporal_engine import temporal_engine
from lucius_orchestrator.temporal.connection import TemporalOptions, connected
from tests.temporal_server import temporal_server

TARGET = 0.5
ROUNDS, JOBS, AT_ONCE, SINGLES = 5, 200, 32, 20


async def rate(run_many: Callable[[int, int], Awaitable[None]], jobs: int) -> float:
    start = time.perf_counter()
    await run_many(jobs, AT_ONCE)
    return jobs / (time.perf_counter() - start)


async def latency(run_one: Callable[[], Awaitable[None]]) -> float:
    """Milliseconds of a job that is alone."""
    found = []
    for _ in range(SINGLES):
        start = time.perf_counter()
        await run_one()
        found.append(time.perf_counter() - start)
    return 1000 * median(found)


async def measured(folder: Path, server: str, rounds: int, jobs: int) -> list[tuple[float, ...]]:
    client = await connected(TemporalOptions(server))
    found: list[tuple[float, ...]] = []

    async def bare_many(jobs: int, at_once: int) -> None:
        await temporal_bare.run_many(client, jobs, at_once)

    async def bare_one() -> None:
        await temporal_bare.run_one(client)

    async with temporal_engine(folder, server) as ours, temporal_bare.worker(client):
        await bare_many(AT_ONCE, AT_ONCE)
        await ours.run_many(AT_ONCE, AT_ONCE)
        for _ in range(rounds):
            rates = await rate(ours.run_many, jobs), await rate(bare_many, jobs)
            times = await latency(ours.run_one), await latency(bare_one)
            found.append((*rates, *times))
            said = f"{rates[0]:.0f} beside {rates[1]:.0f} jobs/s"
            print(f"{said}, {times[0]:.0f} beside {times[1]:.0f} ms", file=sys.stderr)
    return found


def main(rounds: int = ROUNDS, jobs: int = JOBS) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with temporal_server(folder / "temporal.db") as server:
            found = asyncio.run(measured(folder, server.address, rounds, jobs))
    ours, bare, own_ms, bare_ms = map(median, zip(*found, strict=True))
    ratios = [round[0] / round[1] for round in found]
    report(
        "temporal",
        median(ratios),
        TARGET,
        jobs_per_second=ours,
        bare_jobs_per_second=bare,
        latency_ms=own_ms,
        bare_latency_ms=bare_ms,
        latency_ratio=own_ms / bare_ms,
        lowest=min(ratios),
        highest=max(ratios),
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
