"""Which tests a run takes: `make test`, `make check` and `make test-full` are tiers.

A test without a marker is in all three. `@pytest.mark.check` leaves it out of `make test`,
`@pytest.mark.full` out of `make check` too. A parameter can be marked: `pytest.param("postgres",
marks=pytest.mark.check)`. Pytest called by hand takes the tier `check`.
"""

import os
from enum import IntEnum
from typing import TypeVar

import pytest

T = TypeVar("T")


class Tier(IntEnum):
    TEST = 1
    CHECK = 2
    FULL = 3


TIER = Tier[os.environ.get("TESTS_TIER", "check").upper()]
_MARKERS = {"check": Tier.CHECK, "full": Tier.FULL}


def by_tier(test: T, check: T, full: T | None = None) -> T:
    """Return what the tier has time for: Hypothesis examples, jobs of a crash test."""
    if TIER is Tier.TEST:
        return test
    return full if TIER is Tier.FULL and full is not None else check


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    beyond = [item for item in items if _tier_of(item) > TIER]
    if beyond:
        config.hook.pytest_deselected(items=beyond)
        items[:] = [item for item in items if _tier_of(item) <= TIER]


def _tier_of(item: pytest.Item) -> Tier:
    marked = (tier for name, tier in _MARKERS.items() if item.get_closest_marker(name))
    return max(marked, default=Tier.TEST)
