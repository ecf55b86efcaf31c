"""Kills processes (SIGKILL) that another one starts again (`tests.crash.offspring`)."""

import asyncio
import os
import random
import signal
from contextlib import suppress


class Killer:
    """Lets each process live for a moment after it has written its id, and kills it; the last ones
    live on. `after`: for so many seconds, at least and at most."""

    def __init__(
        self,
        chance: random.Random,
        command: tuple[str, ...],
        kills: int,
        after: tuple[float, float],
    ) -> None:
        self._chance = chance
        self._command = command
        self._after = after
        self.kills_left = kills

    async def keep_one(self) -> None:
        parent = await asyncio.create_subprocess_exec(
            *self._command, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        try:
            assert parent.stdout is not None
            async for line in parent.stdout:
                if self.kills_left > 0:
                    self.kills_left -= 1
                    await asyncio.sleep(self._chance.uniform(*self._after))
                    os.kill(int(line), signal.SIGKILL)
            raise AssertionError("a process ended by itself")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)
            await parent.wait()
