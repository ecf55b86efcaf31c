"""The processor time of each test: its own, and that of the processes which it started and saw end.

With `--costs` the run ends with a table: CPU seconds per module, and the slowest tests. Servers
that live as long as a worker (PostgreSQL, Azurite, Temporal), imports and collection are the
difference between the sum and the total.
"""

import os
import resource
from collections import defaultdict
from collections.abc import Generator

import pytest

_MODULES = 40
_TESTS = 30
_started = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--costs", action="store_true", help="report the CPU time of modules and tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--costs"):
        config.pluginmanager.register(_Report())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    item.stash[_started] = _spent()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Every report carries what was spent since the test began, so that the last one has it all."""
    report = yield
    report.cpu = _spent() - item.stash[_started]  # type: ignore[attr-defined]
    return report


def _spent() -> float:
    own, _, children, children_system = (times := os.times())[:4]
    return own + times.system + children + children_system


class _Report:
    def __init__(self) -> None:
        self._cpu: dict[str, float] = {}
        self._wall: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._wall[report.nodeid] += report.duration
        # A worker's servers end with its last test; their time is not that test's.
        if report.when != "teardown" or report.nodeid not in self._cpu:
            self._cpu[report.nodeid] = getattr(report, "cpu", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        modules: defaultdict[str, list[float]] = defaultdict(list)
        for nodeid, cpu in self._cpu.items():
            modules[nodeid.partition("::")[0]].append(cpu)
        terminalreporter.section("CPU seconds")
        write(f"{_total():8.1f}  all processes")
        write(f"{sum(self._cpu.values()):8.1f}  tests; the rest is collection and servers")
        for module, costs in sorted(modules.items(), key=lambda row: -sum(row[1]))[:_MODULES]:
            write(f"{sum(costs):8.1f}  {module} ({len(costs)})")
        terminalreporter.section("slowest tests: seconds, CPU seconds")
        for nodeid, wall in sorted(self._wall.items(), key=lambda row: -row[1])[:_TESTS]:
            write(f"{wall:8.1f} {self._cpu[nodeid]:8.1f}  {nodeid}")


def _total() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
