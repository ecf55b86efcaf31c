"""Time limits: of each test, and of the whole run.

A test that runs out of time fails by itself (pytest-timeout raises in it); the worker goes on.
Where even that cannot interrupt it, pytest's faulthandler ends the worker (`faulthandler_timeout`),
and the scheduler fails the test and gives the rest of its share to another worker.

A run that exceeds `TESTS_LIMIT_SECONDS`, or gets SIGTERM, says which tests were running, prints the
stacks of all threads of all workers, and stops with exit code 2.
"""

import faulthandler
import multiprocessing
import os
import signal
import threading
from types import FrameType

import pytest

from tests.runner.deadlines import FACTOR, seconds

_TEST_SECONDS = 120
_NEWS_SECONDS = 1
"""What news from workers takes to arrive, and workers to write their stacks."""
_STOP_SECONDS = 30
"""Between asking the run to stop and ending the process."""

os.environ.setdefault("PYTEST_TIMEOUT", str(seconds(_TEST_SECONDS)))


_stderr = os.dup(2)
"""While a test runs, the descriptor 2 is pytest's own."""


def pytest_configure(config: pytest.Config) -> None:
    # What a shell starts in the background ignores SIGINT, with which runs and workers are stopped.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.register(signal.SIGUSR1, file=_stderr, all_threads=True)
    limit = float(os.environ.get("TESTS_LIMIT_SECONDS", "0")) * FACTOR
    config.pluginmanager.register(_RunLimit(limit))


class _RunLimit:
    def __init__(self, limit: float) -> None:
        self._running: dict[str, None] = {}
        self._handler = signal.signal(signal.SIGTERM, self._on_signal)
        self._timer = (
            self._stop_after(limit, f"It took more than {limit:.0f} s.") if limit else None
        )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = None

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._running.pop(nodeid, None)

    def pytest_unconfigure(self) -> None:
        signal.signal(signal.SIGTERM, self._handler)
        if self._timer:
            self._timer.cancel()

    def _on_signal(self, _signum: int, _frame: FrameType | None) -> None:
        self._stop_after(_NEWS_SECONDS, "It was asked to.")

    def _stop_after(self, delay: float, reason: str) -> threading.Timer:
        timer = threading.Timer(delay, self._stop, [reason])
        timer.daemon = True
        timer.start()
        return timer

    def _stop(self, reason: str) -> None:
        running = "".join(f"  {nodeid}\n" for nodeid in list(self._running))
        told = f"\nThe run is stopped. {reason} Running now:\n{running}"
        os.write(_stderr, told.encode())
        for pid in [worker.pid for worker in multiprocessing.active_children()] or [os.getpid()]:
            os.kill(pid or 0, signal.SIGUSR1)
        wait = threading.Event().wait
        wait(_NEWS_SECONDS)
        os.kill(os.getpid(), signal.SIGINT)
        wait(_STOP_SECONDS)
        for process in multiprocessing.active_children():
            process.kill()
        os._exit(2)
