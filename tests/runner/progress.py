"""`--by-group`: one line for each group of tests when it is done, and failures as they happen.

A group is a folder below `tests`, an example, a service that is judged, or the documentation. The
run ends with the failures, each with the command that repeats it.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Generator
from typing import Any

import pytest

from tests.runner.tiers import TIER


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--by-group", action="store_true", help="one line per group of tests")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--by-group"):
        config.pluginmanager.register(_Progress(config))


def group_of(nodeid: str) -> str:
    file, _, name = nodeid.partition("::")
    parts = file.split("/")
    if parts[0] == "contract_tests":
        return "conformance of " + name.partition("[")[2].partition(":")[0]
    if parts[0] in {"tests", "examples"}:
        return parts[1] if parts[0] == "tests" else "/".join(parts[:2])
    return "documentation"


class _Progress:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._left: Counter[str] = Counter()
        self._counts: dict[str, Counter[str]] = {}
        self._begun: dict[str, float] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failed: dict[str, None] = {}
        self._start = time.monotonic()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        reporter.showfspath = False
        reporter._show_progress_info = False
        self._left.update(group_of(item.nodeid) for item in session.items)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        """No dots."""
        status = yield
        return status and (status[0], "", "")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        group = group_of(report.nodeid)
        counts = self._counts.setdefault(group, Counter())
        self._seconds[group] += report.duration
        if report.failed and report.nodeid not in self._failed:
            self._failed[report.nodeid] = None
            counts["failed"] += 1
            self._write(f"FAILED {report.nodeid}", red=True)
        elif report.when == "call" or (report.skipped and report.when == "setup"):
            counts[report.outcome] += 1

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        group = group_of(nodeid)
        self._left[group] -= 1
        if not self._left[group]:
            self._finish(group)

    def _finish(self, group: str) -> None:
        counts = self._counts.get(group, Counter())
        words = [f"{counts[word]:,} {word}" for word in ("passed", "failed", "skipped")]
        told = ", ".join(word for word in words if not word.startswith("0 "))
        minutes, seconds = divmod(int(time.monotonic() - self._start), 60)
        line = f"{minutes:3}:{seconds:02}  {group:28} {told:34} {self._seconds[group]:7.1f} s"
        self._write(line, red=bool(counts["failed"]))

    def _write(self, line: str, *, red: bool) -> None:
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        reporter.ensure_newline()
        reporter.write_line(line, red=red)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._failed:
            terminalreporter.section("to repeat a failure")
        for nodeid in self._failed:
            command = f"TESTS_TIER={TIER.name.lower()} .venv/bin/python -m pytest '{nodeid}'"
            terminalreporter.write_line(command)
