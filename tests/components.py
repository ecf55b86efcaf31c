"""Components that a machine may not be able to get, and tests that CI has no time for."""

import os

import pytest

IN_FULL = os.environ.get("TESTS_IN_FULL") == "1"
"""`make test-full`: every kind of store and engine, also where CI has the time for some only."""


def require(available: bool, what: str) -> None:
    """Without it the test is skipped on a laptop and fails in CI."""
    if available:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs {what}")
    pytest.skip(f"needs {what}")
