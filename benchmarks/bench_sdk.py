"""A service of the SDK whose work is nothing, beside a bare loop with the same client.

Both are processes of their own and take the same directives from the same sixteen lanes of an
emulator, which is a third process. The service has its dedup store in a SQLite file, acknowledges,
runs its handler, stores the RESULT, sends it over the bus and only then completes the message; the
loop (`benchmarks.sdk_bare`) sends two messages for each directive and completes it. Directives are
loaded before the time begins, which is from the first completion to the last. The ratio is how much
of the loop's rate is left; at least half of it must be.

Also printed: what a directive costs in CPU time in both, and what it costs the runtime on a bus in
memory (`benchmarks.sdk_memory`), with the dedup store in a file and in memory.

    python -m benchmarks.bench_sdk [ROUNDS]
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.flow_process import (
    Process,
    cpu_seconds,
    end_on_sigterm,
    first_line,
    python,
    running,
)
from benchmarks.flow_service import service
from benchmarks.report import report
from benchmarks.sdk_bus import SERVICE
from benchmarks.sdk_memory import cpu_us, with_memory, with_sqlite

TARGET = 0.5
DIRECTIVES, WARMING, ROUNDS = 3000, 500, 5
Consumer = Callable[[Path, str], AbstractContextManager[Process]]


class Measured(NamedTuple):
    per_second: float
    cpu_us: float

    def __str__(self) -> str:
        return f"{self.per_second:.0f}/s with {self.cpu_us:.0f} us each"


class Lanes:
    """Those of an emulator in a process of its own."""

    def __init__(self, process: Process, log: Path) -> None:
        self._process = process
        self._log = log

    def drained(self, count: int) -> float:
        """How many directives a second were settled, of so many."""
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        said = json.loads(first_line(self._process, self._log))
        return float(said["done"] / said["seconds"])


def main(rounds: int = ROUNDS) -> None:
    end_on_sigterm()
    bare, own = [], []
    for _ in range(rounds):
        bare.append(_measured(_bare))
        own.append(_measured(_service))
        print(f"service {own[-1]}, bare loop {bare[-1]}", file=sys.stderr)
    report(
        "sdk",
        median(one.per_second / other.per_second for one, other in zip(own, bare, strict=True)),
        TARGET,
        directives_per_second=median(one.per_second for one in own),
        bare_per_second=median(one.per_second for one in bare),
        cpu_us_per_directive=median(one.cpu_us for one in own),
        bare_cpu_us_per_directive=median(one.cpu_us for one in bare),
        cpu_us_on_memory_bus=cpu_us(with_sqlite, DIRECTIVES),
        cpu_us_on_memory_bus_and_store=cpu_us(with_memory, DIRECTIVES),
    )


def _measured(consumer: Consumer) -> Measured:
    with tempfile.TemporaryDirectory(prefix="sdk") as name:
        folder, log = Path(name), Path(name) / "bus.log"
        command = python("-m", "benchmarks.sdk_bus", str(folder / "workspace"))
        with running(command, log) as bus:
            connection = first_line(bus, log).strip()
            with consumer(folder, connection) as process:
                lanes = Lanes(bus, log)
                lanes.drained(WARMING)
                before = cpu_seconds(process)
                rate = lanes.drained(DIRECTIVES)
                return Measured(rate, (cpu_seconds(process) - before) / DIRECTIVES * 1e6)


@contextmanager
def _bare(folder: Path, connection: str) -> Iterator[Process]:
    command = python("-m", "benchmarks.sdk_bare", connection, SERVICE)
    with running(command, folder / "bare.log") as process:
        yield process


@contextmanager
def _service(folder: Path, connection: str) -> Iterator[Process]:
    with service(SERVICE, folder, connection, folder / "workspace") as started:
        started.wait()
        yield started.process


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
