"""`--workers N`: run the tests in N processes, forked when all tests are collected.

pytest-xdist starts new interpreters, each of which imports and collects everything: 80 of the 590
CPU seconds of `make test`. A forked worker starts at once, and a lost one is replaced at once.

A worker runs one share after another (`schedule.py`) and asks for the next one before it runs the
last test of its share, so that fixtures which the next test needs too stay open. It sends the
reports of each test; the controller calls the usual hooks with them.
"""

import atexit
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.runner.schedule import Schedule

_fork = multiprocessing.get_context("fork")
_LOOK_SECONDS = 0.5
"""How often the controller looks for workers that died without closing their connection: a process
that the worker forked may hold it open."""
_STOP_SECONDS = 20
"""For the fixtures of a worker to close when the run is stopped."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=0, help="processes; 0 runs tests in this one")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    option = session.config.option
    if not option.workers or option.collectonly or session.testsfailed:
        return None
    _Controller(session).run(option.workers)
    return True


class _Worker:
    """What the controller knows of a worker. `assigned`: items that it has not finished."""

    def __init__(self, number: int, session: pytest.Session, inherited: list[Connection]) -> None:
        self.number = number
        self.connection, its_end = multiprocessing.Pipe()
        self.assigned: deque[int] = deque()
        self.last: int | None = None
        to_close = [*inherited, self.connection]
        self.process = _fork.Process(target=_work, args=(session, number, its_end, to_close))
        with warnings.catch_warnings():
            # Python 3.12 warns of threads: the timer of `limits.py`, which holds no lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        its_end.close()

    def assign(self, share: list[int]) -> None:
        self.assigned.extend(share)
        self.connection.send(share)

    def ask_to_stop(self) -> None:
        """Interrupt the running test, if there is one; its fixtures are closed."""
        self.connection.close()
        if self.process.pid and self.process.exitcode is None:
            os.kill(self.process.pid, signal.SIGINT)

    def wait_or_kill(self, seconds: float) -> None:
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()


class _Controller:
    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._hook = session.config.hook
        self._schedule = Schedule([item.nodeid for item in session.items])
        self._workers: dict[Connection, _Worker] = {}
        self._handlers: dict[str, Callable[..., None]] = {
            "started": self._on_started,
            "finished": self._on_finished,
            "next": self._on_next,
        }

    def run(self, workers: int) -> None:
        try:
            for number in range(workers):
                self._start(number)
            while self._workers:
                self._look()
        finally:
            left = list(self._workers.values())
            for worker in left:
                worker.ask_to_stop()
            ends = time.monotonic() + _STOP_SECONDS
            for worker in left:
                worker.wait_or_kill(max(ends - time.monotonic(), 0.0))

    def _start(self, number: int) -> None:
        if share := self._schedule.next_share(number):
            worker = _Worker(number, self._session, list(self._workers))
            self._workers[worker.connection] = worker
            worker.assign(share)

    def _look(self) -> None:
        dead = {worker for worker in self._workers.values() if worker.process.exitcode is not None}
        for connection in wait(list(self._workers), _LOOK_SECONDS):
            assert isinstance(connection, Connection)
            worker = self._workers[connection]
            try:
                kind, *values = connection.recv()
            except (EOFError, ConnectionResetError):
                dead.add(worker)
            else:
                self._handlers[kind](worker, *values)
                dead.discard(worker)  # there may be more to read
        for worker in dead:  # not in the handler: a new worker's tests would have its exception
            self._on_end(worker)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _on_started(self, _worker: _Worker, index: int) -> None:
        item = self._session.items[index]
        self._hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)

    def _on_finished(self, worker: _Worker, index: int, reports: list[dict[str, Any]]) -> None:
        worker.assigned.remove(index)
        worker.last = index
        self._report(index, reports)

    def _on_next(self, worker: _Worker) -> None:
        worker.assign(self._schedule.next_share(worker.number))

    def _on_end(self, worker: _Worker) -> None:
        """Fail the test with which a worker was lost; what was left to it goes to others."""
        del self._workers[worker.connection]
        worker.connection.close()
        worker.wait_or_kill(_STOP_SECONDS)
        code = worker.process.exitcode
        if not worker.assigned and code == 0:
            return
        while_running = bool(worker.assigned)
        index = worker.assigned.popleft() if while_running else worker.last
        assert index is not None
        item = self._session.items[index]
        when = "running" if while_running else "closing the fixtures after"
        message = f"worker {worker.number} ended with exit code {code} while {when} {item.nodeid!r}"
        lost = pytest.TestReport(item.nodeid, item.location, {}, "failed", message, "call")
        report = self._hook.pytest_report_to_serializable(config=self._session.config, report=lost)
        self._report(index, [report])
        self._schedule.give_back(list(worker.assigned))
        self._start(worker.number)

    def _report(self, index: int, reports: list[dict[str, Any]]) -> None:
        item = self._session.items[index]
        for data in reports:
            report = self._hook.pytest_report_from_serializable(
                config=self._session.config, data=data
            )
            self._hook.pytest_runtest_logreport(report=report)
        self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


class _Reports:
    """In a worker: keeps the reports of a test, where pytest would call the hooks."""

    def __init__(self) -> None:
        self.latest: list[pytest.TestReport] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        self.latest = runtestprotocol(item, log=False, nextitem=nextitem)
        return True


def _work(
    session: pytest.Session, number: int, connection: Connection, to_close: list[Connection]
) -> None:
    """The life of a worker."""
    for other in to_close:
        other.close()
    atexit._clear()  # these are the controller's
    _enter(session.config, number)
    reports = _Reports()
    session.config.pluginmanager.register(reports)
    try:
        _run_shares(session, connection, reports)
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        session._setupstate.teardown_exact(None)  # the controller is gone, or wants no more
    if "coverage" in sys.modules and (measured := sys.modules["coverage"].Coverage.current()):
        measured.stop()
        measured.save()
    atexit._run_exitfuncs()


def _enter(config: pytest.Config, number: int) -> None:
    """Give a forked process what it must not share: signals, captured output, folders."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    folders: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.mktemp(f"worker{number}-")
    folders._next_number.clear()


def _run_shares(session: pytest.Session, connection: Connection, reports: _Reports) -> None:
    hook, items = session.config.hook, session.items
    share: deque[int] = deque(connection.recv())
    while share:
        index = share.popleft()
        if not share:
            connection.send(("next",))
            share.extend(connection.recv())
        connection.send(("started", index))
        following = items[share[0]] if share else None
        hook.pytest_runtest_protocol(item=items[index], nextitem=following)
        serialized = [
            hook.pytest_report_to_serializable(config=session.config, report=each)
            for each in reports.latest
        ]
        connection.send(("finished", index, serialized))
