from collections.abc import AsyncIterator

import pytest

from tests.temporal.stage import Stage, working


@pytest.fixture
async def idle_stage(temporal: str) -> Stage:
    """Nobody works on its jobs yet."""
    return await Stage.new(temporal)


@pytest.fixture
async def stage(idle_stage: Stage) -> AsyncIterator[Stage]:
    async with working(idle_stage):
        yield idle_stage
