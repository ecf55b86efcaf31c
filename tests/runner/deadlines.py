"""How long tests wait for what must happen, and the one factor for slow machines.

A deadline decides nothing while the code is right: a test waits for an event, and the deadline ends
it when the event never comes. `TESTS_TIME_FACTOR` multiplies all of them.
"""

import os

import pytest

FACTOR = float(os.environ.get("TESTS_TIME_FACTOR", "1"))


def seconds(on_a_quiet_machine: float) -> float:
    return on_a_quiet_machine * FACTOR


DEADLINE = seconds(30)
"""For one step of a test inside one process."""
PROCESS_DEADLINE = seconds(60)
"""For processes to start, to stop, and to answer."""


def time_limit(on_a_quiet_machine: float) -> pytest.MarkDecorator:
    """Mark a test that takes longer than others; see `tests.runner.limits`."""
    return pytest.mark.timeout(seconds(on_a_quiet_machine))
