from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orchestrator_mock import Mock, MockSettings
from tests.mock.scene import SERVICE, HttpService


@pytest.fixture
async def mock(tmp_path: Path) -> AsyncIterator[Mock]:
    async with Mock(MockSettings(SERVICE, tmp_path)) as mock:
        yield mock
        assert mock.defects == []


@pytest.fixture
async def http_service() -> AsyncIterator[HttpService]:
    async with HttpService() as service:
        yield service
