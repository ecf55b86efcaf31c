"""The stage of the table ledger on the real tables: processes that die between any two calls."""

from collections.abc import Sequence

from lucius_azure.storage import AsyncOpened, StorageAccount, open_tables
from lucius_orchestrator.adapters.ledger.azure_tables import TableNames
from lucius_orchestrator.adapters.ledger.azure_tables.tables import AzureTables
from lucius_orchestrator.adapters.ledger.tables.store import Call, Hook, Operation, Row, Tables
from lucius_settings.secret import Secret
from tests.azurite import Azurite
from tests.ledger.tables_stage import Store
from tests.names import unique


class HookedTables:
    """Tables that several processes share, each of which can be stopped before a call."""

    def __init__(self, tables: Tables, before: Hook | None = None) -> None:
        self._tables = tables
        self._before = before

    def shared(self, before: Hook | None = None) -> "HookedTables":
        return HookedTables(self._tables, before)

    async def batch(
        self, table: str, partition: str, operations: Sequence[Operation]
    ) -> list[str | None]:
        await self._announce(Call("batch", table, partition, tuple(operations)))
        return await self._tables.batch(table, partition, operations)

    async def get(self, table: str, partition: str, row: str) -> Row | None:
        await self._announce(Call("get", table, partition))
        return await self._tables.get(table, partition, row)

    async def query(
        self,
        table: str,
        partition: str,
        first: str,
        end: str,
        limit: int,
        also: str | None = None,
    ) -> list[Row]:
        await self._announce(Call("query", table, partition))
        return await self._tables.query(table, partition, first, end, limit, also)

    async def scan(self, table: str, after: tuple[str, str], end: str, limit: int) -> list[Row]:
        await self._announce(Call("scan", table, after[0]))
        return await self._tables.scan(table, after, end, limit)

    async def close(self) -> None:
        """The connections are the account's, which other processes use too."""

    async def _announce(self, call: Call) -> None:
        if self._before is not None:
            await self._before(call)


class Account:
    """A storage account with as many ledgers as are asked for, over one client."""

    def __init__(self, azurite: Azurite) -> None:
        self._opened = open_tables(StorageAccount(Secret(azurite.connection)), retry_total=0)

    async def new_tables(self) -> HookedTables:
        name = unique("stage")
        names = TableNames(*(f"{name}{kind}" for kind in TableNames._fields))
        tables = AzureTables(AsyncOpened(self._opened.client, None), names.physical())
        await tables.create()
        return HookedTables(tables)

    async def new_store(self) -> Store:
        return Store(await self.new_tables())

    async def close(self) -> None:
        await self._opened.close()
