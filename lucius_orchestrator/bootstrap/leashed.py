"""A program on a leash: a child that ends with this process, and whose output is read."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_LEASH = Path(__file__).with_name("leash.py")
_STOP_SECONDS = 15.0
_LOOK_SECONDS = 0.05
_LAST_LINES = 5
_LONGEST_LINE = 64 * 1024


class Leashed:
    """It has a session of its own, so that Ctrl-C in a terminal does not reach it: it ends when it
    is told to."""

    def __init__(self, process: Process, tell: Callable[[str], None]) -> None:
        self._process = process
        self._tell = tell
        self._last = deque[str](maxlen=_LAST_LINES)
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        environ: Mapping[str, str],
        tell: Callable[[str], None],
        inherited: Sequence[int] = (),
    ) -> "Leashed":
        """`tell` gets each line of its output; `inherited` are file descriptors that it keeps."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_LEASH), *command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=STDOUT,
            env=environ,
            pass_fds=inherited,
            start_new_session=True,
            limit=_LONGEST_LINE,
        )
        return cls(process, tell)

    @property
    def pid(self) -> int:
        """Of the leash, and of the group that it and the program are."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    @property
    def last_words(self) -> str:
        return " / ".join(self._last)

    async def wait(self) -> int:
        """Its exit code, when all that it has said was read and nothing of it is left."""
        code = await self._ended()
        self._kill()
        await self._reading
        return code

    async def stop(self) -> None:
        """Returns when it has ended; one that takes too long is killed."""
        self._tell = _nobody
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._ended()
        except TimeoutError:
            self._kill()
        await self.wait()

    async def _ended(self) -> int:
        """Its `wait` would wait for its output too, which a program holds open whose leash was
        killed."""
        while (code := self._process.returncode) is None:
            await asyncio.sleep(_LOOK_SECONDS)
        return code

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    async def _read(self) -> None:
        assert self._process.stdout is not None, "it is a pipe"
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:  # longer than anybody wants to read
                continue
            if not line:
                return
            text = line.decode(errors="replace").strip()
            if text:
                self._last.append(text)
                self._tell(text)


def _nobody(_: str) -> None:
    pass
