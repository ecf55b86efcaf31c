"""Submits the jobs, and has their workflows started."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from lucius_orchestrator.bootstrap import Part
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.temporal.starts import WorkflowStarts
from tests.crash.goal import Goal
from tests.crash.jobs import snapshot
from tests.crash.process import submit_all
from tests.crash.roles.place import COURIERS, Place, run

LIMIT = 40
"""Jobs in flight at a time: fewer than there are, so that every kill meets some."""


class Submission:
    """Every job up to the goal, as a part."""

    def __init__(self, engine: LedgerEngine, goal: Goal) -> None:
        self._engine = engine
        self._goal = goal

    async def run(self) -> None:
        await submit_all(self._engine, self._goal, snapshot(limit=LIMIT), Engine.TEMPORAL)

    async def stop(self) -> None:
        """It is killed instead."""


@asynccontextmanager
async def parts(place: Place) -> AsyncIterator[Sequence[Part]]:
    async with place.engine() as engine:
        starts = WorkflowStarts(engine, place.workflows(), COURIERS)
        yield [Submission(engine, Goal(place.goal)), starts]


if __name__ == "__main__":
    run(parts)
