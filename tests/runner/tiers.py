"""Which tests a run takes: `make test`, `make check` and `make test-full` are tiers.

A test is in all three, unless
- it needs a server (PostgreSQL, Azurite, S3, Temporal) by a fixture or its parameter: it is left
  out of `make test`, where SQLite stands for every store, unless it is marked
  `@pytest.mark.always`;
- it judges a service other than the SIS example, or executes a page below `docs`: left out of
  `make test`; of a service that is judged a second time, by another contract, `make check` has the
  rules about what it reads and writes;
- it is marked `@pytest.mark.check`, or is one of the costly tests of an example that are named
  below (the examples are projects of their own, which do not know the marker): left out of
  `make test`;
- it is marked `@pytest.mark.full`: left out of `make check` too.

Pytest called by hand takes the tier `check`.
"""

import os
import re
from enum import IntEnum
from typing import TypeVar

import pytest

T = TypeVar("T")


class Tier(IntEnum):
    TEST = 1
    CHECK = 2
    FULL = 3


TIER = Tier[os.environ.get("TESTS_TIER", "check").upper()]
_CHECKED = (
    "docs/",
    "examples/embedding/tests/test_memory.py",
    "examples/ocr/tests/test_accuracy.py::test_a_picture_is_read_as_well_whatever",
    "examples/ocr/tests/test_images.py::test_a_photo_is_turned_as_its_camera_says",
    "examples/ocr/tests/test_images.py::test_pixels_of_every_common_kind_are_read",
    "examples/ocr/tests/test_memory.py",
    "examples/ocr/tests/test_threads.py::test_documents_that_are_read_at_once",
    "examples/sis/tests/test_accuracy.py::test_forms_are_filled_in_rightly_or_not_at_all",
    "examples/sis/tests/test_endpoint.py::test_an_endpoint_that_takes_too_long_times_out",
)
_JUDGED_IN_CHECK = re.compile(r"contract_tests/.*\[(ocr|embedding|embedding\.\S+|sis\.\S+):")
_JUDGED_AGAIN = re.compile(r"contract_tests/.*\[\w+\.[\w-]+:LC-(?!03|10|11|12|14)")
_SERVER_FIXTURES = {"azure_storage", "postgres_uri", "s3_server", "temporal"}
_SERVER_PARAMETERS = re.compile(r"postgres|azure|blob|\bs3\b|temporal")
_WITHOUT_SERVERS = ("tests/contract/", "tests/domain/", "tests/settings/")


def by_tier(test: T, check: T, full: T | None = None) -> T:
    """Return what the tier has time for: Hypothesis examples, jobs of a crash test."""
    if TIER is Tier.TEST:
        return test
    return full if TIER is Tier.FULL and full is not None else check


def examples(in_full: int) -> int:
    """Return how many examples Hypothesis tries, of those that `make test-full` has time for."""
    return by_tier(max(in_full // 6, 5), max(in_full // 2, 5), in_full)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    beyond = [item for item in items if _tier_of(item) > TIER]
    if beyond:
        config.hook.pytest_deselected(items=beyond)
        items[:] = [item for item in items if _tier_of(item) <= TIER]


def _tier_of(item: pytest.Item) -> Tier:
    """Parameters and pages cannot all carry a marker: some are named above."""
    if item.get_closest_marker("full") or _JUDGED_AGAIN.match(item.nodeid):
        return Tier.FULL
    if item.get_closest_marker("check") or item.nodeid.startswith(_CHECKED):
        return Tier.CHECK
    if _JUDGED_IN_CHECK.match(item.nodeid):
        return Tier.CHECK
    if _needs_server(item) and not item.get_closest_marker("always"):
        return Tier.CHECK
    return Tier.TEST


def _needs_server(item: pytest.Item) -> bool:
    if item.nodeid.startswith(_WITHOUT_SERVERS):
        return False
    if not _SERVER_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        return True
    callspec = getattr(item, "callspec", None)
    return callspec is not None and bool(_SERVER_PARAMETERS.search(callspec.id))
