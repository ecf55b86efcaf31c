"""How much a crash test does: the amount of its tier, or less where a machine is slow.

A test submits work in waves while it `wants_more`, and then waits until all that was submitted has
ended. What it asserts holds for any amount, so that a slow machine does less and not longer.
"""

import time
from collections.abc import Callable

from tests.runner.tiers import by_tier

BUDGET = by_tier(10.0, 40.0, 200.0)
"""Seconds in which work is submitted, on any machine."""


class Workload:
    """The budget begins with the first question. `enough` says whether what the test is about has
    happened, such as kills: without it there is more work, whatever the amount and the budget."""

    def __init__(
        self,
        amount: int,
        enough: Callable[[], bool] = lambda: True,
        budget: float = BUDGET,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._amount = amount
        self._enough = enough
        self._budget = budget
        self._clock = clock
        self._ends: float | None = None

    def wants_more(self, submitted: int) -> bool:
        now = self._clock()
        self._ends = now + self._budget if self._ends is None else self._ends
        if submitted == 0 or not self._enough():
            return True
        return submitted < self._amount and now < self._ends
