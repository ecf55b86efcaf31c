"""The whole system beside Celery and Procrastinate: jobs of three steps that do nothing, durable.

Ours: `lucius up` on SQLite with `synchronous = FULL`, the bus inside with its journal, three
services of the SDK with the Azure client and a SQLite file each; jobs are submitted over HTTP for
many tenants, so that all lanes are used. Services answer over HTTP in one turn, over the bus in
another. The peers have three worker processes as well, one for each step: a Celery chain on Redis
that syncs every write, with late acknowledgement, and Procrastinate on PostgreSQL, where each step
defers the next. Their settings are tried first, and the best of each is kept.

The time is from the first submit to the last job that has succeeded. Systems take turns, and only
the one whose turn it is runs. The ratio is how much faster ours is than the better peer of the same
round, in terms of what is asked for: 1.3 with answers over HTTP, 1.1 over the bus.

    python -m benchmarks.bench_flow [ROUNDS [JOBS]]
"""

import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple, Protocol, TypeVar

from benchmarks import flow_celery, flow_procrastinate
from benchmarks.flow_celery import celery
from benchmarks.flow_lucius import lucius
from benchmarks.flow_process import end_on_sigterm
from benchmarks.flow_procrastinate import procrastinate
from benchmarks.report import report

OVER_HTTP, OVER_BUS = 1.3, 1.1
JOBS, ROUNDS = 1000, 5
S = TypeVar("S")


class System(Protocol):
    def rate(self, jobs: int) -> float:
        """Jobs a second."""


class Round(NamedTuple):
    http: float
    bus: float
    celery: float
    procrastinate: float

    @property
    def better_peer(self) -> float:
        return max(self.celery, self.procrastinate)


def main(rounds: int = ROUNDS, jobs: int = JOBS) -> None:
    end_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="flow", ignore_cleanup_errors=True) as name:
        turns = _Turns(Path(name), jobs)
        makers = (
            partial(lucius, reply_via="http"),
            partial(lucius, reply_via="bus"),
            partial(celery, setting=turns.best_of(celery, flow_celery.SETTINGS)),
            partial(
                procrastinate, setting=turns.best_of(procrastinate, flow_procrastinate.SETTINGS)
            ),
        )
        measured = [turns.round(makers) for _ in range(rounds)]
    _report(measured)


class _Turns:
    """Each in a new folder. A quarter of the jobs comes first and warms up; a trial has half."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self._folder = folder
        self._jobs = jobs
        self._count = 0

    def round(self, makers: Iterable[Callable[[Path], AbstractContextManager[System]]]) -> Round:
        found = Round(*(self._turn(maker, self._jobs) for maker in makers))
        said = (f"{name} {rate:.0f}" for name, rate in found._asdict().items())
        print("jobs/s:", ", ".join(said), file=sys.stderr)
        return found

    def best_of(
        self, make: Callable[[Path, S], AbstractContextManager[System]], settings: Sequence[S]
    ) -> S:
        return max(settings, key=partial(self._trial, make))

    def _trial(
        self, make: Callable[[Path, S], AbstractContextManager[System]], setting: S
    ) -> float:
        rate = self._turn(lambda folder: make(folder, setting), self._jobs // 2)
        print(f"{setting}: {rate:.0f} jobs/s", file=sys.stderr)
        return rate

    def _turn(self, make: Callable[[Path], AbstractContextManager[System]], jobs: int) -> float:
        self._count += 1
        with make(self._folder / str(self._count)) as system:
            system.rate(self._jobs // 4)
            return system.rate(jobs)


def _report(rounds: Sequence[Round]) -> None:
    over_http = median(one.http / one.better_peer for one in rounds)
    over_bus = median(one.bus / one.better_peer for one in rounds)
    report(
        "flow",
        min(over_http / OVER_HTTP, over_bus / OVER_BUS),
        1.0,
        http_to_peer=over_http,
        bus_to_peer=over_bus,
        http_jobs_per_second=median(one.http for one in rounds),
        bus_jobs_per_second=median(one.bus for one in rounds),
        celery_jobs_per_second=median(one.celery for one in rounds),
        procrastinate_jobs_per_second=median(one.procrastinate for one in rounds),
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
