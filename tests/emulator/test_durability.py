"""An emulator with a data folder is killed while clients work: what was accepted is there, what was
completed is gone."""

import asyncio
import os
import random
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from servicebus_emulator.journal import Journal
from servicebus_emulator.server import Emulator
from tests.emulator.chaos.crew import Crew
from tests.emulator.durable_server import QUEUE
from tests.runner.deadlines import seconds, time_limit
from tests.runner.tiers import by_tier

SERVER = Path(__file__).with_name("durable_server.py")
ROOT = Path(__file__).parents[2]
MESSAGES = by_tier(2_400, 4_000, 12_000)
KILLS = by_tier(3, 4, 12)
DEADLINE = seconds(200)
SEED = 7


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@asynccontextmanager
async def server(folder: Path, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        SERVER,
        folder,
        str(port),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def done(crew: Crew, count: int) -> None:
    while len(crew.done) < count:
        crew.progress.clear()
        await crew.progress.wait()


@time_limit(280)
async def test_kills_lose_nothing_that_was_accepted_and_bring_back_nothing_that_was_completed(
    tmp_path: Path,
) -> None:
    chance, port = random.Random(SEED), free_port()
    connection = (
        f"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=local;SharedAccessKey=local;"
        "UseDevelopmentEmulator=true;"
    )
    crew = Crew(connection, QUEUE, chance)
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        sender = tasks.create_task(crew.run("send", "0", str(MESSAGES)))
        receiver = tasks.create_task(crew.run("receive"))
        for kill in range(1, KILLS + 1):
            async with server(tmp_path, port) as process:
                await done(crew, kill * MESSAGES // (KILLS + 2) + chance.randrange(400))
                process.kill()
        async with server(tmp_path, port):
            await sender
            await done(crew, MESSAGES - KILLS)
            receiver.cancel()
    assert set(crew.done.values()) == {1}
    # A kill may fall between a completion and its answer, once for the one receiver.
    assert MESSAGES - KILLS <= len(crew.done) <= MESSAGES
    journal = Journal(tmp_path)
    counts = Emulator(journal=journal).broker.queue(QUEUE).counts
    journal.close()
    assert counts.active <= MESSAGES - len(crew.done)
