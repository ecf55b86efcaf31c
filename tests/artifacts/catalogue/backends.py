"""Every catalogue behind one face, so that each promise of the port is tested on all of them."""

import re
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool

import lucius_artifacts.catalogue as adapters
from lucius_artifacts.catalogue.memory import MemoryCatalogue
from lucius_artifacts.ports.catalogue import Catalogue
from lucius_outbox import Claimed, RetryPolicy
from lucius_outbox.sqlite import SqliteStore
from tests.runner.deadlines import DEADLINE

BACKENDS = ("memory", "sqlite", "postgres")
"""The packages under `lucius_artifacts/catalogue` whose adapters are tested."""

NAMESPACE = "tests"
PATIENCE = timedelta(seconds=DEADLINE)
_LEASE = timedelta(minutes=1)
_CATALOGUE = re.compile(r"^class (\w+Catalogue)\b", re.MULTILINE)


class Told(NamedTuple):
    """A message that a dispatcher would publish."""

    topic: str
    payload: Any


class Backend(ABC):
    """One store with a catalogue on it; every further one is what another process would open."""

    catalogue: Catalogue
    side_by_side = False
    """Whether two changes can be under way at once."""

    def __init__(self) -> None:
        self._catalogues = AsyncExitStack()

    async def start(self) -> None:
        self.catalogue = await self.reopen()

    async def reopen(self) -> Catalogue:
        catalogue = await self.open()
        self._catalogues.push_async_callback(catalogue.close)
        return catalogue

    async def stop(self) -> None:
        await self._catalogues.aclose()

    @abstractmethod
    async def open(self, **settings: Any) -> Catalogue:
        """One that the caller closes."""

    async def impatient(self) -> Catalogue:
        """One that waits for nobody and tries once; the caller closes it."""
        return await self.open(patience=timedelta())

    @abstractmethod
    async def told(self) -> list[Told]:
        """What a dispatcher of the namespace claims."""


class MemoryBackend(Backend):
    async def open(self, **_settings: Any) -> Catalogue:
        first = getattr(self, "catalogue", None)
        return MemoryCatalogue(first.rows if isinstance(first, MemoryCatalogue) else None)

    async def told(self) -> list[Told]:
        assert isinstance(self.catalogue, MemoryCatalogue)
        return [Told(message.topic, message.payload) for message in self.catalogue.messages]


# Adapters with a driver are imported when they are used: who lacks one can still run the others.


class SqliteBackend(Backend):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.path = folder / "catalogue.db"

    async def open(self, **settings: Any) -> Catalogue:
        from lucius_artifacts.catalogue.sqlite import SqliteCatalogue

        return await SqliteCatalogue.open(self.path, **{"patience": PATIENCE, **settings})

    async def told(self) -> list[Told]:
        async with SqliteStore(self.path, NAMESPACE) as store:
            return _told(await store.claim_batch(100, _LEASE))


class PostgresBackend(Backend):
    side_by_side = True

    def __init__(self, uri: str, schema: str) -> None:
        super().__init__()
        self._uri = uri
        self.schema = schema

    @property
    def conninfo(self) -> str:
        options = f"-c search_path={self.schema}"
        return make_conninfo(self._uri, options=options, application_name=self.schema)

    async def start(self) -> None:
        await self.execute(f"CREATE SCHEMA {self.schema}")
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        await self.execute(f"DROP SCHEMA {self.schema} CASCADE")

    async def open(self, **settings: Any) -> Catalogue:
        from lucius_artifacts.catalogue.postgres import PostgresCatalogue

        return await PostgresCatalogue.open(self.conninfo, **{"patience": PATIENCE, **settings})

    async def impatient(self) -> Catalogue:
        return await self.open(races=RetryPolicy(max_attempts=1))

    async def told(self) -> list[Told]:
        from lucius_outbox.postgres import PostgresStore

        pool = AsyncConnectionPool[AsyncConnection[Any]](
            self.conninfo, min_size=1, max_size=2, open=False
        )
        async with pool:
            return _told(await PostgresStore(pool, NAMESPACE).claim_batch(100, _LEASE))

    async def execute(self, statement: str, *values: Any) -> list[Any]:
        conninfo = make_conninfo(self.conninfo, application_name="aside")
        async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
            cursor = await connection.execute(statement.encode(), values)
            return await cursor.fetchall() if cursor.description else []


def _told(claims: list[Claimed]) -> list[Told]:
    return [Told(claimed.topic, claimed.payload) for claimed in claims]


def adapters_in_the_tree() -> set[str]:
    """Names of all classes `…Catalogue` under `lucius_artifacts/catalogue`."""
    files = Path(adapters.__file__).parent.rglob("*.py")
    return {name for path in files for name in _CATALOGUE.findall(path.read_text("utf-8"))}


def adapters_in_the_suite() -> set[str]:
    modules = {name: import_module(f"{adapters.__name__}.{name}") for name in BACKENDS}
    return {
        getattr(module, f"{name.title()}Catalogue").__name__ for name, module in modules.items()
    }
