"""Every ledger behind one face, so that each promise of the port is tested on all of them."""

import re
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path

from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

import lucius_orchestrator.adapters.ledger as adapters
from lucius_azure.storage import StorageAccount
from lucius_orchestrator.adapters.ledger.azure_tables.names import TableNames
from lucius_orchestrator.ports.ledger import Ledger
from lucius_settings.secret import Secret
from tests.runner.deadlines import DEADLINE

START = datetime(2026, 1, 27, 10, 0, 0, 123456, tzinfo=UTC)
BACKENDS = ("memory", "postgres", "sqlite", "azure_tables")
"""The modules under `adapters/ledger` whose adapters are tested; `tables` is under `memory`."""

_LEDGER = re.compile(r"^class (\w+Ledger)\b", re.MULTILINE)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **duration: float) -> None:
        self.now += timedelta(**duration)


PATIENCE = timedelta(seconds=DEADLINE)


class Backend(ABC):
    """One store with a ledger on it; every further ledger is what another process would open."""

    ledger: Ledger
    counts_exactly = True

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._ledgers = AsyncExitStack()

    async def start(self) -> None:
        self.ledger = await self.reopen()

    async def reopen(self) -> Ledger:
        ledger = await self._open()
        self._ledgers.push_async_callback(ledger.close)
        return ledger

    async def stop(self) -> None:
        await self._ledgers.aclose()

    @abstractmethod
    async def _open(self) -> Ledger: ...


# Adapters are imported when they are used: who lacks a driver can still run the others.


class MemoryBackend(Backend):
    counts_exactly = False  # it counts as tables without transactions across partitions do

    async def _open(self) -> Ledger:
        from lucius_orchestrator.adapters.ledger.memory import MemoryLedger

        first = getattr(self, "ledger", None)
        tables = first.tables if isinstance(first, MemoryLedger) else None
        return MemoryLedger(clock=self.clock, tables=tables)


class SqliteBackend(Backend):
    def __init__(self, clock: Clock, folder: Path) -> None:
        super().__init__(clock)
        self._path = folder / "ledger.db"

    async def _open(self) -> Ledger:
        from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger

        return await SqliteLedger.open(self._path, clock=self.clock, patience=PATIENCE)


class PostgresBackend(Backend):
    def __init__(self, clock: Clock, uri: str, schema: str) -> None:
        super().__init__(clock)
        self._uri = uri
        self._schema = schema

    async def start(self) -> None:
        await self._execute(f"CREATE SCHEMA {self._schema}")
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        await self._execute(f"DROP SCHEMA {self._schema} CASCADE")

    async def _open(self) -> Ledger:
        from lucius_orchestrator.adapters.ledger.postgres import PostgresLedger

        conninfo = make_conninfo(self._uri, options=f"-c search_path={self._schema}")
        return await PostgresLedger.open(conninfo, clock=self.clock, patience=PATIENCE)

    async def _execute(self, statement: str) -> None:
        connection = await AsyncConnection.connect(self._uri, autocommit=True)
        async with connection:
            await connection.execute(statement.encode())


class AzureTablesBackend(Backend):
    counts_exactly = False

    def __init__(self, clock: Clock, connection: str, name: str) -> None:
        super().__init__(clock)
        self._account = StorageAccount(Secret(connection))
        self._names = TableNames(*(f"{name}{kind}" for kind in TableNames._fields))

    async def _open(self) -> Ledger:
        from lucius_orchestrator.adapters.ledger.azure_tables import AzureTablesLedger

        return await AzureTablesLedger.open(
            self._account, self._names, clock=self.clock, grace=timedelta()
        )


def adapters_in_the_tree() -> set[str]:
    """Names of all classes `…Ledger` under `adapters/ledger`."""
    files = Path(adapters.__file__).parent.rglob("*.py")
    return {name for path in files for name in _LEDGER.findall(path.read_text(encoding="utf-8"))}


def adapters_in_the_suite() -> set[str]:
    """Those of the backends, and what they are made of."""
    modules = {name: import_module(f"{adapters.__name__}.{name}") for name in BACKENDS}
    names = {name: name.title().replace("_", "") for name in BACKENDS}
    tested = [getattr(module, f"{names[name]}Ledger") for name, module in modules.items()]
    return {base.__name__ for ledger in tested for base in ledger.__mro__} - {"object"}
