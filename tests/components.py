"""Components that a machine may not be able to get."""

import os

import pytest


def require(available: bool, what: str) -> None:
    """Without it the test is skipped on a laptop and fails in CI."""
    if available:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs {what}")
    pytest.skip(f"needs {what}")
