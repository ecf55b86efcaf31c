"""Processes of a benchmark: each is started, waited for and stopped by whoever needs it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

Process = subprocess.Popen[str]
_START, _STOP = 60.0, 20.0


@contextmanager
def running(
    command: Sequence[str], log: Path, environ: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """What it says on stderr goes to the file `log`; stdin and stdout are pipes."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("LUCIUS_")}
    with log.open("a") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**inherited, **(environ or {})},
        )
    try:
        yield process
    finally:
        _stop(process)


def end_on_sigterm() -> None:
    """So that whoever is told to end stops first what it has started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def answer_of(command: Sequence[str], log: Path, environ: Mapping[str, str]) -> str:
    """The last line that a process printed before it ended well."""
    with running(command, log, environ) as process:
        assert process.stdout is not None, "it is a pipe"
        lines = process.stdout.read().splitlines()
        if process.wait() != 0 or not lines:
            raise RuntimeError(f"{' '.join(command[1:4])} failed:\n{log.read_text()[-4000:]}")
    return lines[-1]


def first_line(process: Process, log: Path) -> str:
    assert process.stdout is not None, "it is a pipe"
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"it did not start:\n{log.read_text()[-4000:]}")
    return line


def wait_until(is_there: Callable[[], bool], what: str, pause: float = 0.02) -> None:
    deadline = time.monotonic() + _START
    while not is_there():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {_START:.0f} s")
        time.sleep(pause)


def answers_well(url: str) -> bool:
    try:
        with urlopen(url, timeout=2) as answer:  # noqa: S310 - a loopback address of ours
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _stop(process: Process) -> None:
    process.terminate()
    try:
        process.wait(_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def cpu_seconds(process: Process) -> float:
    """That it has used so far, with all its threads."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
