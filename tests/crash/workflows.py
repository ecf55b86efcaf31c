"""A Temporal server that is killed, workflows that are ended by hand, and what became of them."""

import asyncio
import random
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError

from lucius_orchestrator.temporal.connection import TemporalOptions, connected
from tests.temporal_server import TemporalServer, temporal_server

_PORTS = (20_000, 30_000)
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
_PAUSE = 0.2
_AWAY = (RPCError, RuntimeError)


@contextmanager
def server_file() -> Iterator[Path]:
    """For the server's database, in memory where that can be: it outlives the server there too, and
    need not wait for a disk at every step of every workflow."""
    folder = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="temporal", dir=folder) as made:
        yield Path(made) / "temporal.db"


def server_port(chance: random.Random) -> int:
    """Free, and no client will be given it while the server that had it is away."""
    while True:
        port = chance.randrange(*_PORTS)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


@asynccontextmanager
async def _started(db_file: Path, port: int) -> AsyncIterator[TemporalServer]:
    """In a thread, since others are at work meanwhile; one that is still starting at the end is
    stopped too."""
    context = temporal_server(db_file, port)
    starting = asyncio.create_task(asyncio.to_thread(context.__enter__))
    try:
        yield await asyncio.shield(starting)
    finally:
        await asyncio.wait({starting})
        await asyncio.to_thread(context.__exit__, None, None, None)


class ServerKiller:
    """Starts the server, kills it when it has lived for a moment after there was something to lose,
    starts it again with the same file; the last one lives on."""

    def __init__(
        self, chance: random.Random, kills: int, after: tuple[float, float], begun: asyncio.Event
    ) -> None:
        self._chance = chance
        self._after = after
        self._begun = begun
        self.kills_left = kills

    async def keep_one(self, db_file: Path, port: int) -> None:
        while True:
            async with _started(db_file, port) as server:
                if self.kills_left <= 0:
                    await asyncio.to_thread(server.process.wait)
                    raise AssertionError("the server ended by itself")
                await self._begun.wait()
                await asyncio.sleep(self._chance.uniform(*self._after))
                self.kills_left -= 1
                await asyncio.to_thread(server.kill)


class Terminator:
    """Ends up to `count` runs of workflows by hand, as anybody may in Temporal's own tools. `asked`
    are those that it has tried to end: if the server is killed then, only the server knows."""

    def __init__(self, chance: random.Random, address: str, count: int) -> None:
        self._chance = chance
        self._address = address
        self._count = count
        self.asked: set[str] = set()

    async def run(self) -> None:
        while len(self.asked) < self._count:
            await asyncio.sleep(self._chance.random())
            try:
                await self._terminate_one(await connected(TemporalOptions(self._address)))
            except _AWAY:
                continue

    async def _terminate_one(self, client: Client) -> None:
        query = "ExecutionStatus = 'Running'"
        if running := [found async for found in client.list_workflows(query)]:
            found = self._chance.choice(running)
            self.asked.add(found.run_id)
            await client.get_workflow_handle(found.id, run_id=found.run_id).terminate("by hand")


async def all_closed(address: str) -> list[WorkflowExecution]:
    """All runs of all workflows, once none is running."""
    while True:
        try:
            client = await connected(TemporalOptions(address))
            runs = [run async for run in client.list_workflows()]
        except _AWAY:
            runs = []
        if runs and all(run.status is not WorkflowExecutionStatus.RUNNING for run in runs):
            return runs
        await asyncio.sleep(_PAUSE)
