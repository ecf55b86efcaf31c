"""The whole system as processes: `lucius up` on SQLite with the bus inside, three services of the
SDK that do nothing, and a client that submits over HTTP.

    python -m benchmarks.flow_lucius URL LEDGER FIRST JOBS

submits that many jobs, numbered from FIRST, waits until all have succeeded and prints how many jobs
a second that were. It looks into the file of the ledger now and then: asking the API would take the
time of what is measured.
"""

import re
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import uvloop

from benchmarks.engine import request
from benchmarks.flow_process import Process, answer_of, first_line, python, running
from benchmarks.flow_service import connection_of, service
from benchmarks.http_load import answers_per_second, post

SERVICES = ("ocr", "embedding", "sis")
_ACCEPTED = 202
_GLANCE = 0.02
_READY = re.compile(r"ready api=(\S+) bus=(\S+)\n")
_COUNT = "SELECT state, count(*) FROM lucius_ledger_jobs GROUP BY state"
_QUIET = {"LUCIUS_LOG_LEVEL": "ERROR"}


class Lucius:
    """`processes` are the control plane and the services, by name."""

    def __init__(self, folder: Path, url: str, processes: Mapping[str, Process]) -> None:
        self._folder = folder
        self._url = url
        self._submitted = 0
        self.processes = processes

    def rate(self, jobs: int) -> float:
        numbers = str(self._submitted), str(jobs)
        self._submitted += jobs
        ledger = str(self._folder / "data" / "ledger.db")
        command = python("-m", "benchmarks.flow_lucius", self._url, ledger, *numbers)
        return float(answer_of(command, self._folder / "load.log", {}))


@contextmanager
def lucius(folder: Path, reply_via: str) -> Iterator[Lucius]:
    """A control plane and three services that live as long as the context."""
    folder.mkdir()
    with ExitStack() as stack:
        log = folder / "up.log"
        command = python("-m", "lucius_cli", "up", "--port", "0", "--bus-port", "0")
        environ = {"LUCIUS_REPLY_VIA": reply_via, "LUCIUS_DATA_DIR": str(folder / "data")}
        up = stack.enter_context(running(command, log, {**_QUIET, **environ}))
        ready = _READY.fullmatch(first_line(up, log))
        assert ready is not None, "it says where it is, or nothing"
        where = folder, connection_of(ready[2]), folder / "data" / "workspace"
        started = {name: stack.enter_context(service(name, *where)) for name in SERVICES}
        for one in started.values():
            one.wait()
        processes = {name: one.process for name, one in started.items()}
        yield Lucius(folder, ready[1], {"up": up, **processes})


def run(url: str, ledger: str, first: int, jobs: int) -> float:
    submits = [post("/v1/orchestrate", request(n)) for n in range(first, first + jobs)]
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection:
        start = time.perf_counter()
        uvloop.run(answers_per_second(url, submits, _ACCEPTED))
        deadline = time.monotonic() + 120
        while not _all_succeeded(connection, first + jobs):
            if time.monotonic() > deadline:
                raise TimeoutError("the jobs did not end")
            time.sleep(_GLANCE)
        return jobs / (time.perf_counter() - start)


def _all_succeeded(ledger: sqlite3.Connection, jobs: int) -> bool:
    states = dict(ledger.execute(_COUNT).fetchall())
    if "FAILED_FINAL" in states:
        raise RuntimeError(f"{states['FAILED_FINAL']} jobs failed")
    return bool(states.get("SUCCEEDED", 0) == jobs)


if __name__ == "__main__":
    print(run(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
