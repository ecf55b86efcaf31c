"""Runs workflows."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from lucius_orchestrator.bootstrap import Part
from lucius_orchestrator.invoker.client import HttpInvoker
from lucius_orchestrator.temporal.worker import TemporalWorker, WorkerSettings
from tests.crash.roles.place import KEY, QUICK, Place, run


@asynccontextmanager
async def parts(place: Place) -> AsyncIterator[Sequence[Part]]:
    async with HttpInvoker(f"http://127.0.0.1:{place.invoker_port}", KEY) as invoker:
        yield [TemporalWorker(place.options(), invoker, WorkerSettings(pause=QUICK))]


if __name__ == "__main__":
    run(parts)
