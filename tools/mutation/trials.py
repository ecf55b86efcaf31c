"""The trials of an area: each break is applied to a copy and judged by the tests that cover it."""

import itertools
import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from tools.mutation.areas import AREAS, ROOT, Area
from tools.mutation.breaks import Break
from tools.mutation.copies import Copy, Lines

CACHE = ROOT / ".cache/mutation"
_SURVIVED = (0, 5)  # exit codes of pytest: all tests pass, or the break leaves none
# In seconds:
_UNBROKEN = 1800  # at most, for all tests of an area
_BUDGET = 60  # of tests for each break
_SLACK = 30  # that a run may take above four times its unbroken duration


class Trials:
    def __init__(self, area: Area, copy: Copy) -> None:
        self._area = area
        kept = _kept(area, copy)
        self._seconds: dict[str, float] = kept["seconds"]
        self._lines: Lines = kept["lines"]

    def check(self, copy: Copy) -> None:
        """Exit unless a test passes in the copy, and fails there when a file cannot be imported:
        else no outcome would mean anything."""
        file = max(self._area.source_files(), key=lambda each: len(self._running(each)))
        test = min(self._running(file) & self._seconds.keys(), key=self._seconds.__getitem__)
        if not copy.imports(file) or self._noticed_by(copy, [test]):
            raise SystemExit(f"{test} does not pass in an unbroken copy of the tree")
        with copy.broken(file, b"raise RuntimeError('broken')\n"):
            if copy.imports(file) or not self._noticed_by(copy, [test]):
                raise SystemExit(f"{file} is not imported from the copy of the tree")

    def result(self, copy: Copy, one: Break, *, every_test: bool) -> dict[str, Any]:
        """Return a line of the file of results."""
        began = time.monotonic()
        covering = self._covering(one)
        spent = itertools.accumulate(self._seconds[test] for test in covering)
        within = max(sum(total <= _BUDGET for total in spent), 1)
        tests = covering if every_test else covering[:within]
        with copy.broken(one.file, one.applied()):
            by = self._noticed_by(copy, tests) if tests else ""
        return {
            "area": self._area.name,
            "break": str(one),
            "outcome": "noticed" if by else "survived",
            "by": by,
            "tests_run": len(tests),
            "tests_covering": len(covering),
            "seconds": round(time.monotonic() - began, 1),
        }

    def _covering(self, one: Break) -> list[str]:
        """Return the tests that run the function, the fastest first, but before them those that run
        the line. If it runs before the tests, all others follow, first those that run the file.

        The tests of the line would not do: Python 3.11 leaves out lines after an await that was
        cancelled (https://github.com/python/cpython/issues/106749)."""
        of_line = self._running(one.file, one.line, one.line)
        of_function = self._running(one.file, *one.function)
        nearest = (of_line, of_function, self._running(one.file))
        tests = self._seconds if "" in of_line else of_function & self._seconds.keys()
        return sorted(
            tests, key=lambda t: (sum(t not in each for each in nearest), self._seconds[t])
        )

    def _running(self, file: str, first: int = 0, last: int = sys.maxsize) -> set[str]:
        """Return the tests that run any of these lines; "" is what runs before the tests."""
        lines = self._lines.get(file, {}).items()
        return {test for line, tests in lines if first <= int(line) <= last for test in tests}

    def _noticed_by(self, copy: Copy, tests: list[str]) -> str:
        """Return the test that fails, runs out of time or ends the process, if one does."""
        limit = _SLACK + 4 * sum(self._seconds[test] for test in tests)
        run = copy.run(self._area, limit, tests)
        if run.exit_code in _SURVIVED:
            return ""
        last = str(run.reports[-1]["test"]) if run.reports else "the start of pytest"
        if run.exit_code is None:
            return f"a time-out of {limit:.0f} s in {last}"
        return last if run.exit_code == 1 else f"exit code {run.exit_code} in {last}"


def _kept(area: Area, copy: Copy) -> dict[str, Any]:
    """Return what the tests do unbroken. It is measured again when a source or the folder of the
    tests changes. Areas that have their tests in common are measured together."""
    alike = [each for each in AREAS if (each.tests, each.tier) == (area.tests, area.tier)]
    sources = sorted({file for each in alike for file in each.source_files()})
    folders = {ROOT.joinpath(*Path(path).parts[:2]) for path in area.test_paths()}
    files = {*map(ROOT.joinpath, sources), *(f for each in folders for f in each.rglob("*.py"))}
    state: dict[str, object] = {"tests": area.tests, "tier": area.tier}
    state |= {str(file): file.stat().st_mtime_ns for file in files}
    path = CACHE / f"{alike[0].name}.json"
    kept: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
    if kept.get("state") != state:
        kept = {"state": state, **_measured(area, copy, sources)}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept))
    return kept


def _measured(area: Area, copy: Copy, sources: list[str]) -> dict[str, Any]:
    run = copy.run(area, _UNBROKEN, measured=sources)
    if run.exit_code not in (0, 1):
        raise SystemExit(f"the unbroken run ended with {run.exit_code}:\n{run.log}")
    seconds: dict[str, float] = defaultdict(float)
    for report in run.reports:
        seconds[report["test"]] += report["seconds"]
    wrong = {each["test"] for each in run.reports if each["outcome"] not in ("started", "passed")}
    for test in wrong:
        print(f"left out, since it fails or is skipped unbroken: {test}")
    passed = {test: took for test, took in seconds.items() if test not in wrong}
    print(f"{area.name}: {len(passed)} tests pass unbroken in {sum(passed.values()):.0f} s")
    return {"seconds": passed, "lines": run.lines}
