"""The ledger of a deployment, and the outboxes beside it, by what the settings name."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path

from lucius_orchestrator.adapters.ledger.memory import MemoryLedger
from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger
from lucius_orchestrator.adapters.ledger.sqlite import webhooks as sqlite_webhooks
from lucius_orchestrator.adapters.ledger.tables.ledger import TableLedger
from lucius_orchestrator.engine.engine import World
from lucius_orchestrator.ports.ledger import Ledger, LedgerUnavailable
from lucius_orchestrator.settings import Settings, StorageBackend
from lucius_outbox.store import Store


@asynccontextmanager
async def open_ledger(settings: Settings, world: World) -> AsyncIterator[Ledger]:
    ledger = await _opened(settings, world)
    try:
        yield ledger
    finally:
        await ledger.close()


async def _opened(settings: Settings, world: World) -> Ledger:
    if settings.storage_backend is StorageBackend.MEMORY:
        return MemoryLedger(clock=world.clock)
    if settings.storage_backend is StorageBackend.SQLITE:
        make_folder(settings.data_dir)
        return await SqliteLedger.open(ledger_file(settings))
    if settings.storage_backend is StorageBackend.AZURE_TABLES:
        return await _azure_tables(settings)
    from lucius_orchestrator.adapters.ledger.postgres import PostgresLedger

    return await PostgresLedger.open(conninfo_of(settings))


async def _azure_tables(settings: Settings) -> Ledger:
    from lucius_azure.storage import StorageAccount
    from lucius_orchestrator.adapters.ledger.azure_tables import AzureTablesLedger, TableNames

    names = TableNames(
        settings.ledger_table,
        settings.idempotency_table,
        settings.job_index_table,
        settings.inflight_table,
    )
    account = StorageAccount(settings.table_connection, settings.table_endpoint)
    return await AzureTablesLedger.open(account, names)


def open_webhook_store(settings: Settings, ledger: Ledger) -> AbstractAsyncContextManager[Store]:
    """What commits of the open ledger enqueue. One on tables keeps it among them."""
    if isinstance(ledger, TableLedger):
        return nullcontext(ledger.webhooks())
    if settings.storage_backend is StorageBackend.SQLITE:
        return sqlite_webhooks.open_webhooks(ledger_file(settings))
    from lucius_orchestrator.adapters.ledger.postgres import webhooks as postgres_webhooks

    return postgres_webhooks.open_webhooks(conninfo_of(settings))


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise LedgerUnavailable(f"{folder} cannot be made: {error.strerror}") from error


def ledger_file(settings: Settings) -> Path:
    return settings.data_dir / "ledger.db"


def conninfo_of(settings: Settings) -> str:
    assert settings.database_url is not None, "the settings were checked"
    return settings.database_url.reveal()
