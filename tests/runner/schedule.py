"""How tests are shared out to the workers of pytest-xdist.

A share is a file of tests, with two exceptions. Where the first parameter says what is tested (the
service that is judged, the bus), the tests of each are a share, so that a service is started once.
A service is judged in two shares, by the first and by the last rules, since that takes minutes. The
crash tests are one share, since side by side they would take from each other the time in which jobs
must end.

What takes minutes is begun first. Some shares mostly wait (for a lock to expire, for a service that
is judged). Every other worker takes those first, the others take those that compute first, so that
the processors are never idle.
"""

import re
from collections import OrderedDict
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

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


class ShareScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Unlike its base class, it goes on when a worker is lost: the test that ran fails, and what
    was left of the worker's shares goes to others. (The base class queues finished shares again,
    and a worker that is given one is never given anything else.)"""

    def schedule(self) -> None:
        collected = next(iter(self.registered_collections.values()))
        self._numbers = {nodeid: number for number, nodeid in enumerate(collected)}
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return share_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        share = self._next_share(node)
        unit = self.workqueue.pop(share)
        self.assigned_work.setdefault(node, {})[share] = unit
        node.send_runtest_some([self._numbers[nodeid] for nodeid in unit])

    def _next_share(self, node: WorkerController) -> str:
        waits_first = int(node.gateway.id.removeprefix("gw")) % 2 == 0
        for share in self.workqueue:
            if share.startswith(_WAITING) == waits_first:
                return str(share)
        return str(next(iter(self.workqueue)))

    def remove_node(self, node: WorkerController) -> str | None:
        crashed: str | None = None
        left: OrderedDict[str, dict[str, bool]] = OrderedDict()
        for share, unit in self.assigned_work.pop(node).items():
            unfinished = [nodeid for nodeid, completed in unit.items() if not completed]
            if unfinished and crashed is None:
                crashed = unfinished.pop(0)
            if unfinished:
                left[share] = dict.fromkeys(unfinished, False)
        self.workqueue.update(left)
        for other in self.assigned_work:
            if other in self.registered_collections:
                self._reschedule(other)
        return crashed


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ShareScheduling:
    return ShareScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the tests of a share together, and the longest shares to the beginning."""
    shares: dict[str, list[pytest.Item]] = {}
    for item in items:
        shares.setdefault(share_of(item.nodeid), []).append(item)
    ordered = sorted(shares, key=lambda share: not share.startswith(_MINUTES))
    items[:] = [item for share in ordered for item in shares[share]]
