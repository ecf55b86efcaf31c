"""The stores that ledgers of killed processes share, and a look into them beside the port."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from psycopg import AsyncConnection

from tests import azurite, postgres
from tests.components import require


@asynccontextmanager
async def store(backend: str, folder: Path) -> AsyncIterator[str]:
    if backend == "sqlite":
        yield str(folder / "ledger.db")
    elif backend == "azure_tables":
        require(azurite.is_available(), "Azurite")
        with azurite.azurite_server() as server:
            yield server.connection
    else:
        require(postgres.is_available(), "PostgreSQL")
        with postgres.postgres_server() as uri:
            yield uri


async def counted(backend: str, address: str, count: str) -> int:
    """What a `SELECT count(*)` says."""
    if backend == "postgres":
        async with await AsyncConnection.connect(address) as connection:
            found = await (await connection.execute(count.encode())).fetchone()
    else:
        with closing(sqlite3.connect(address)) as connection:
            found = connection.execute(count).fetchone()
    assert found is not None
    return int(found[0])
