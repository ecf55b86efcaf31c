import pytest

from tests.emulator.broker.world import World


@pytest.fixture
def world() -> World:
    return World()
