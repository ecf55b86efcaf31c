"""A process of ours that says `ready` on its standard output when it is."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from lucius_cli.failures import EnvironmentFailed

_READY = b"ready "
_TAIL_LINES = 5


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Child:
    """Started, watched and stopped by this handle alone. It has a session of its own, so that
    Ctrl-C in the terminal reaches it through us, in the order in which things should end."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        log: Path,
    ) -> None:
        self.name = name
        self.log = log
        self._command = command
        self._folder = folder
        self._environ = environ
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._running.pid

    def start(self) -> None:
        """Returns at once. `EnvironmentFailed` if there is nothing to start."""
        try:
            with open(self.log, "ab", opener=_private) as log:
                self._process = subprocess.Popen(  # noqa: S603  # the commands are our own
                    self._command,
                    cwd=self._folder,
                    env=dict(self._environ),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            raise EnvironmentFailed(f"{self.name} cannot be started: {error}") from error

    def until_ready(self, within: float) -> dict[str, str]:
        """What the line says, by name. `EnvironmentFailed` if it does not come, with the reason
        that the process gave."""
        line = self._first_line(within)
        if not line.startswith(_READY):
            raise EnvironmentFailed(f"{self.name} {self._why(within)}\n{self._last_words()}")
        words = line.decode().split()[1:]
        return dict(word.split("=", 1) for word in words)

    def kill(self) -> None:
        """SIGKILL, to all that it has started too: it has no chance to tidy up."""
        if self._process is None:
            return
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._output.close()

    def send(self, number: signal.Signals) -> None:
        """Nothing, if it was not started or has ended."""
        if self._process is not None:
            self._process.send_signal(number)

    def ended(self, within: float) -> bool:
        """Wait for its end."""
        try:
            if self._process is not None:
                self._process.wait(within)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it was started"
        return self._process

    @property
    def _output(self) -> IO[bytes]:
        assert self._running.stdout is not None, "it is a pipe"
        return self._running.stdout

    def _first_line(self, within: float) -> bytes:
        ends = time.monotonic() + within
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            while not line.endswith(b"\n") and selector.select(max(ends - time.monotonic(), 0)):
                piece = os.read(self._output.fileno(), 1)
                if not piece:
                    break
                line += piece
        return line

    def _why(self, within: float) -> str:
        with suppress(subprocess.TimeoutExpired):
            return f"ended with exit code {self._running.wait(1)} before it was ready:"
        return f"was not ready within {within:g} s; its log, {self.log}, ends with:"

    def _last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])
