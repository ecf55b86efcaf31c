import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.outbox.backends import Backend, Clock, PostgresBackend, SqliteBackend

_schemas = itertools.count(1)


@pytest.fixture
async def sqlite_backend(tmp_path: Path) -> AsyncIterator[SqliteBackend]:
    backend = SqliteBackend(tmp_path)
    yield backend
    await backend.close()


@pytest.fixture
async def postgres_backend(postgres_uri: str) -> AsyncIterator[PostgresBackend]:
    backend = PostgresBackend(postgres_uri, f"test{next(_schemas)}")
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
