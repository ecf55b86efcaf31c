from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.names import unique
from tests.outbox.backends import Backend, Clock, PostgresBackend, SqliteBackend


@pytest.fixture
async def sqlite_backend(tmp_path: Path) -> AsyncIterator[SqliteBackend]:
    backend = SqliteBackend(tmp_path)
    yield backend
    await backend.close()


@pytest.fixture
async def postgres_backend(postgres_uri: str) -> AsyncIterator[PostgresBackend]:
    backend = PostgresBackend(postgres_uri, unique("test"))
    await backend.open()
    yield backend
    await backend.close()


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest) -> Backend:
    backend: Backend = request.getfixturevalue(f"{request.param}_backend")
    return backend


@pytest.fixture
def clock() -> Clock:
    return Clock()
