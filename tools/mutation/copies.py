"""Copies of the working tree, in which files can be broken and tests run."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage

from tools.mutation.areas import ROOT, SERVERS, Area

STOPPING = threading.Event()
"""Set by an interrupt: every run ends."""
Lines = dict[str, dict[str, list[str]]]
"""The tests that run each line of each file."""


@dataclass(frozen=True, slots=True)
class Run:
    """Of pytest. `exit_code` is None when it ran out of time."""

    exit_code: int | None
    reports: list[Any]
    lines: Lines
    log: str


class Copy:
    """The files of the working tree, with an interpreter of their own that imports them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tree = folder / "tree"
        self._python = self._tree / ".venv/bin/python"
        self._versions = itertools.count(1)
        listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout
        for name in names.decode().split("\0"):
            if name not in ("", ".venv") and os.path.lexists(ROOT / name):
                (self._tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self._tree / name, follow_symlinks=False)
        self._make_environment()

    def _make_environment(self) -> None:
        """Make a virtual environment that has the packages of the real one, but this tree before
        them. PYTHONPATH would not do: tests start processes with an environment of their own."""
        own, packages = self._tree / ".venv", sysconfig.get_path("purelib")
        venv.create(own, symlinks=True)
        path = f"{self._tree}\nimport site; site.addsitedir({packages!r})\n"
        (own / os.path.relpath(packages, sys.prefix) / "tree.pth").write_text(path)

    def imports(self, file: str) -> bool:
        """Return whether a process with an empty environment can import the file."""
        module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        command = [str(self._python), "-c", f"import {module}"]
        return subprocess.run(command, cwd="/", env={}, stderr=subprocess.DEVNULL).returncode == 0

    @contextmanager
    def broken(self, file: str, content: bytes) -> Iterator[None]:
        path = self._tree / file
        original = path.rename(f"{path}.original")
        path.write_bytes(content)
        # Two versions of one size and time would share their compiled file.
        os.utime(path, (moment := next(self._versions), moment))
        try:
            yield
        finally:
            original.replace(path)

    def run(
        self, area: Area, limit: float, tests: Sequence[str] = (), measured: Sequence[str] = ()
    ) -> Run:
        """Run the named tests until one fails; without names, run all tests of the area and watch
        which of them run which lines of the measured files."""
        # Short names: the path of a socket has at most 107 characters.
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as name:
            folder = Path(name)
            (folder / "tests").write_text(json.dumps(tests))
            (folder / "reports").touch()
            own = {
                "PYTHONPATH": "",
                "TMPDIR": name,
                "TESTS_TIER": area.tier,
                "MUTATION_FOLDER": name,
                "MUTATION_SOURCES": ",".join(f"{self._tree}/{file}" for file in measured),
            }
            if measured:
                own["COVERAGE_PROCESS_START"] = f"{self._tree}/tools/mutation/coverage.ini"
            options = ["-q", "-p", "no:cacheprovider", "-p", "tools.mutation.plugin"]
            options += [f"--basetemp={name}/base", "-k", f"not ({' or '.join(SERVERS)})"]
            files = {test.partition("::")[0] for test in tests}
            options += ["-x", *sorted(files)] if tests else area.test_paths()
            with (folder / "log").open("wb") as log:
                process = subprocess.Popen(
                    [str(self._python), "-m", "pytest", *options],
                    cwd=self._tree,
                    env={**os.environ, **own},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            code = _exit_code(process, limit)
            reports = map(json.loads, (folder / "reports").read_text().splitlines())
            text = (folder / "log").read_text(errors="replace")
            return Run(code, list(reports), self._lines(folder) if measured else {}, text[-3000:])

    def _lines(self, folder: Path) -> Lines:
        whole = coverage.Coverage(config_file=False, data_file=str(folder / "data"))
        whole.combine([str(folder)])
        data = whole.get_data()
        return {
            os.path.relpath(file, self._tree): {
                str(line): tests for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }


def _exit_code(process: subprocess.Popen[bytes], limit: float) -> int | None:
    """Wait for the process; kill it when its time is over or on an interrupt, and in any case what
    it leaves behind."""
    deadline = time.monotonic() + limit
    try:
        while process.poll() is None and time.monotonic() < deadline:
            if STOPPING.wait(0.02):
                raise KeyboardInterrupt
        return process.returncode
    finally:
        if process.returncode is None:
            _kill(process.pid)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _kill(pid: int) -> None:
    """Kill a process and all that it started: tests start processes in sessions of their own."""
    with suppress(OSError):  # it has ended meanwhile
        os.kill(pid, signal.SIGSTOP)
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                _kill(int(child))
        os.kill(pid, signal.SIGKILL)
