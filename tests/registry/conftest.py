from collections.abc import Iterator

import pytest

from tests.registry.app_configuration_double import AppConfiguration, running_app_configuration


@pytest.fixture
def double() -> Iterator[AppConfiguration]:
    with running_app_configuration() as double:
        yield double
