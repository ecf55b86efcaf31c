"""Loaded by pytest in a copy of the tree: keeps the named tests, in this order; writes what each
reports; names the running test to coverage.py, also in processes that the test starts."""

import json
import os
from pathlib import Path

import coverage
import pytest

_FOLDER = Path(os.environ["MUTATION_FOLDER"])


def pytest_collection_finish(session: pytest.Session) -> None:
    named = json.loads((_FOLDER / "tests").read_bytes())
    if named:
        items = {item.nodeid: item for item in session.items}
        session.items[:] = [items[each] for each in named if each in items]


def pytest_runtest_logstart(nodeid: str) -> None:
    _write(nodeid, "started", 0)
    os.environ["MUTATION_TEST"] = nodeid  # see coverage.ini
    if measured := coverage.Coverage.current():
        measured.switch_context(nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _write(report.nodeid, report.outcome, report.duration)


def _write(test: str, outcome: str, seconds: float) -> None:
    with (_FOLDER / "reports").open("a") as reports:
        reports.write(json.dumps({"test": test, "outcome": outcome, "seconds": seconds}) + "\n")
