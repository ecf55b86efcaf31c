"""Client processes at work."""

import asyncio
import os
import random
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")


class Crew:
    """The client processes. One that is killed is replaced by another of its kind, which does what
    the first has not said that it did."""

    def __init__(self, connection: str, queue: str, chance: random.Random) -> None:
        self._connection = connection
        self._queue = queue
        self._chance = chance
        self.progress = asyncio.Event()
        self._running: dict[asyncio.subprocess.Process, tuple[str, ...]] = {}
        self.done: Counter[int] = Counter()
        self.kills = 0

    async def run(self, *task: str) -> None:
        """Until it has done its task or the crew is dismissed."""
        while True:
            process = await self._start(*task)
            self._running[process] = task
            try:
                await self._listen(process)
                await process.wait()
            finally:
                del self._running[process]
                with suppress(ProcessLookupError):
                    process.kill()
                rest, _ = await process.communicate()
                for line in rest.splitlines():
                    self._note(line)
            if process.returncode == 0:
                return

    async def _start(self, what: str, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            WORKER,
            what,
            self._connection,
            self._queue,
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self._note(line)

    def _note(self, line: bytes) -> None:
        what, number = line.split()
        if what == b"done":
            self.done[int(number)] += 1
            self.progress.set()

    def kill_one(self) -> None:
        process = self._chance.choice(list(self._running))
        with suppress(ProcessLookupError):
            process.kill()
            self.kills += 1
