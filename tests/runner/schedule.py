"""How tests are shared out to the workers.

A share is a file of tests, with two exceptions. Where the first parameter names what is tested (the
service that is judged, the bus), the tests of each are a share, so that a service is started once.
A service is judged in two shares, by the first and by the last rules, since that takes minutes. The
crash tests are one share: side by side they would take from each other the time in which jobs must
end.

What takes minutes starts first. Some shares mostly wait (for a lock to expire, for a service that
is judged). Every other worker takes those first, the others take those that compute first, so that
the processors are never idle.
"""

import re
from collections.abc import Sequence

_BY_PARAMETER = ("contract_tests/", "tests/bus/")
_FIRST_PARAMETER = re.compile(r"\[([\w.]+)")
_LAST_RULES = re.compile(r":LC-(1[6-9]|2\d)")
_CRASHES = "tests/crash/"
_MINUTES = (
    "contract_tests/",
    "tests/conform/test_node_",
    "tests/skeleton/test_fresh_",
    "tests/flow/",
)
_WAITING = ("contract_tests/", "tests/bus/", "tests/conform/", "tests/crash/", "tests/skeleton/")


def share_of(nodeid: str) -> str:
    file, _, name = nodeid.partition("::")
    parameter = _FIRST_PARAMETER.search(name)
    if parameter and file.startswith(_BY_PARAMETER):
        half = ":last" if _LAST_RULES.search(name) else ""
        return f"{file}{parameter.group()}{half}"
    return _CRASHES if file.startswith(_CRASHES) else file


class Schedule:
    """The shares that no worker has yet. Tests are known by their index."""

    def __init__(self, nodeids: Sequence[str]) -> None:
        shares: dict[str, list[int]] = {}
        for index, nodeid in enumerate(nodeids):
            shares.setdefault(share_of(nodeid), []).append(index)
        names = sorted(shares, key=lambda name: not name.startswith(_MINUTES))
        self._shares = {name: shares[name] for name in names}

    def next_share(self, worker: int) -> list[int]:
        """Return the tests of a share; none when all are given out."""
        waiting_first = worker % 2 == 0
        preferred = (name for name in self._shares if name.startswith(_WAITING) == waiting_first)
        name = next(preferred, None) or next(iter(self._shares), None)
        return self._shares.pop(name) if name else []

    def give_back(self, tests: list[int]) -> None:
        """Take what a lost worker has not run."""
        if tests:
            self._shares[f"left over: {tests[0]}"] = tests
