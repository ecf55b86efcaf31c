"""Procrastinate: three tasks, each with a queue and a worker process of its own, on PostgreSQL with
`fsync` on. Each step defers the next.

    python -m benchmarks.flow_procrastinate work STEP CONCURRENCY
    python -m benchmarks.flow_procrastinate load JOBS

`load` submits that many jobs, waits until the last step of each has succeeded and prints how many
jobs a second that were.
"""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from procrastinate import App, PsycopgConnector

from benchmarks.flow_process import answer_of, first_line, python, running
from tests.postgres import postgres_server

STEPS = ("ocr", "embedding", "sis")
_ADDRESS = "LUCIUS_BENCH_POSTGRES"
_GLANCE = 0.02
_SUBMITTING = 16
_DONE = """
SELECT count(*) AS done FROM procrastinate_jobs WHERE queue_name = 'sis' AND status = 'succeeded'
"""


class Setting(NamedTuple):
    """Of each of the three workers."""

    concurrency: int
    connections: int


SETTINGS = (Setting(4, 4), Setting(32, 16), Setting(64, 16))


class ProcrastinatePeer:
    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self._log = folder / "load.log"
        self._environ = environ

    def rate(self, jobs: int) -> float:
        command = python("-m", "benchmarks.flow_procrastinate", "load", str(jobs))
        return float(answer_of(command, self._log, self._environ))


@contextmanager
def procrastinate(folder: Path, setting: Setting) -> Iterator[ProcrastinatePeer]:
    """PostgreSQL and three workers that live as long as the context."""
    folder.mkdir()
    with ExitStack() as stack:
        environ = {_ADDRESS: stack.enter_context(postgres_server())}
        module = "benchmarks.flow_procrastinate"
        answer_of(python("-m", module, "schema"), folder / "schema.log", environ)
        for step in STEPS:
            log = folder / f"{step}.log"
            command = python("-m", module, "work", step, *map(str, setting))
            first_line(stack.enter_context(running(command, log, environ)), log)
        yield ProcrastinatePeer(folder, environ)


def make_app(connections: int) -> App:
    connector = PsycopgConnector(
        conninfo=os.environ[_ADDRESS], min_size=connections, max_size=connections
    )
    app = App(connector=connector)

    @app.task(queue="ocr", name="ocr")
    async def ocr(value: int) -> None:
        await app.configure_task("embedding", queue="embedding").defer_async(value=value + 1)

    @app.task(queue="embedding", name="embedding")
    async def embedding(value: int) -> None:
        await app.configure_task("sis", queue="sis").defer_async(value=value + 1)

    @app.task(queue="sis", name="sis")
    async def sis(value: int) -> int:
        return value + 1

    return app


async def work(step: str, concurrency: int, connections: int) -> None:
    app = make_app(connections)
    async with app.open_async():
        print("ready", flush=True)
        await app.run_worker_async(queues=[step], concurrency=concurrency)


async def load(jobs: int) -> float:
    app = make_app(_SUBMITTING)
    async with app.open_async():
        before = await _done(app)
        start = time.perf_counter()
        left = iter(range(jobs))
        await asyncio.gather(*(_submit(app, left) for _ in range(_SUBMITTING)))
        async with asyncio.timeout(120):
            while await _done(app) < before + jobs:
                await asyncio.sleep(_GLANCE)
        return jobs / (time.perf_counter() - start)


async def _submit(app: App, left: Iterator[int]) -> None:
    task = app.configure_task("ocr", queue="ocr")
    for number in left:
        await task.defer_async(value=number)


async def _done(app: App) -> int:
    row = await app.connector.execute_query_one_async(_DONE)
    return int(row["done"])


async def schema() -> None:
    app = make_app(1)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
    print("applied")


def main(task: str, *arguments: str) -> None:
    if task == "work":
        asyncio.run(work(arguments[0], *map(int, arguments[1:])))
    elif task == "schema":
        asyncio.run(schema())
    else:
        print(asyncio.run(load(int(arguments[0]))))


if __name__ == "__main__":
    from benchmarks import flow_procrastinate  # where workers find the tasks

    flow_procrastinate.main(*sys.argv[1:])
