"""Counts the attempts on each live plane, and says at the end of the run how many were held."""

import re
from collections import Counter

import pytest

_ATTEMPT = re.compile(r"::test_an_attempt_is_held\[(\w+)-")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Attempts(), "attempts on live planes")


class _Attempts:
    def __init__(self) -> None:
        self._tried: Counter[str] = Counter()
        self._held: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        attempt = _ATTEMPT.search(report.nodeid)
        if attempt and (report.when == "call" or report.failed):
            self._tried[attempt[1]] += 1
            self._held[attempt[1]] += report.passed

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for plane, tried in sorted(self._tried.items()):
            held = self._held[plane]
            line = f"attempts on a live plane with {plane}: {tried} tried, {held} held"
            terminalreporter.write_line(line, red=held < tried)
