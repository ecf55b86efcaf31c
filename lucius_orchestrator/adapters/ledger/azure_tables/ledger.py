"""The ledger on Azure Table Storage, opened."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import SansIOHTTPPolicy

from lucius_azure.storage import StorageAccount, open_tables
from lucius_contract import timeouts
from lucius_orchestrator.adapters.ledger.azure_tables.clock import ServiceClock
from lucius_orchestrator.adapters.ledger.azure_tables.names import TableNames
from lucius_orchestrator.adapters.ledger.azure_tables.tables import AzureTables
from lucius_orchestrator.adapters.ledger.tables.ledger import TableLedger
from lucius_orchestrator.adapters.ledger.tables.partition import JOBS
from lucius_orchestrator.adapters.ledger.tables.store import EntityExists, Insert, Tables
from lucius_orchestrator.ports.ledger import LedgerUnavailable, UnknownSchema

SCHEMA_VERSION = 1
_SCHEMA = ("!SCHEMA", "VERSION")  # no id of a job is spelled so
_CONNECT_SECONDS = 5
_READ_SECONDS = 10
_NAMES = TableNames()


class AzureTablesLedger(TableLedger):
    """Opened by `open`. Two of them on one account, with the same names, are one ledger."""

    @classmethod
    async def open(
        cls,
        account: StorageAccount,
        names: TableNames = _NAMES,
        *,
        clock: Callable[[], datetime] | None = None,
        dispatch_backoff: timeouts.Delays = timeouts.DISPATCH_BACKOFF,
        grace: timedelta = timeouts.RECOVERY_GRACE,
    ) -> "AzureTablesLedger":
        """Makes the tables that are missing. Without a clock, that of the service counts."""
        there = ServiceClock(partial(datetime.now, UTC))
        tables = AzureTables(_opened(account, there), names.physical())
        try:
            await tables.create()
            await _check_schema(tables)
        except BaseException:
            await tables.close()
            raise
        return cls(tables, clock=clock or there, dispatch_backoff=dispatch_backoff, grace=grace)


def _opened(account: StorageAccount, clock: ServiceClock) -> Any:
    try:
        return open_tables(
            account,
            retry_total=0,  # the tables try again by themselves, also what a batch was refused for
            connection_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            per_retry_policies=[_WatchClock(clock)],
        )
    except ValueError as error:
        raise LedgerUnavailable("the connection string of the tables cannot be read") from error


async def _check_schema(tables: Tables) -> None:
    partition, row = _SCHEMA
    stored = await tables.get(JOBS, partition, row)
    if stored is None:
        try:
            await tables.batch(JOBS, partition, [Insert(row, {"version": SCHEMA_VERSION})])
        except EntityExists:
            stored = await tables.get(JOBS, partition, row)
    if stored is not None and stored.values["version"] > SCHEMA_VERSION:
        raise UnknownSchema(
            f"the tables have schema {stored.values['version']}, this release knows up to"
            f" {SCHEMA_VERSION}: install the release that made them"
        )


class _WatchClock(SansIOHTTPPolicy[Any, Any]):
    """Lets the clock see the time of every answer."""

    def __init__(self, clock: ServiceClock) -> None:
        super().__init__()
        self._clock = clock

    def on_request(self, request: PipelineRequest[Any]) -> None:
        request.context["lucius_sent_at"] = self._clock.now_here()

    def on_response(
        self, request: PipelineRequest[Any], response: PipelineResponse[Any, Any]
    ) -> None:
        self._clock.seen(
            request.context["lucius_sent_at"], response.http_response.headers.get("Date")
        )
