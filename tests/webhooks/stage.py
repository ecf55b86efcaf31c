"""A ledger and its webhooks, with the clock of the tests."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from psycopg.conninfo import make_conninfo

from lucius_orchestrator.adapters.ledger.postgres.webhooks import (
    open_webhooks as open_postgres,
)
from lucius_orchestrator.adapters.ledger.sqlite.webhooks import open_webhooks as open_sqlite
from lucius_orchestrator.adapters.ledger.tables.ledger import TableLedger
from lucius_orchestrator.ports.webhooks import RETRIES, Webhook, webhook_of
from lucius_outbox import Claimed, Delays, RetryPolicy, Store
from tests.ledger.backends import Backend, Clock, PostgresBackend, SqliteBackend
from tests.ledger.jobs import World

LEASE = timedelta(minutes=1)
AT_ONCE = RetryPolicy(max_attempts=10, backoff=Delays([timedelta(0)]))
MANY = 1000


class Stage(Protocol):
    clock: Clock
    backend: Backend
    world: World

    def webhooks(self, policy: RetryPolicy = RETRIES) -> AbstractAsyncContextManager[Store]:
        """The store of webhooks, as another process would open it."""


class SqliteStage:
    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.backend: Backend = SqliteBackend(self.clock, folder)
        self._path = folder / "ledger.db"

    async def start(self) -> None:
        await self.backend.start()
        self.world = World(self.backend.ledger, self.clock)

    def webhooks(self, policy: RetryPolicy = RETRIES) -> AbstractAsyncContextManager[Store]:
        return open_sqlite(self._path, policy=policy, clock=self.clock)


class PostgresStage:
    def __init__(self, uri: str, schema: str) -> None:
        self.clock = Clock()
        self.backend: Backend = PostgresBackend(self.clock, uri, schema)
        self._conninfo = make_conninfo(uri, options=f"-c search_path={schema}")

    async def start(self) -> None:
        await self.backend.start()
        self.world = World(self.backend.ledger, self.clock)

    def webhooks(self, policy: RetryPolicy = RETRIES) -> AbstractAsyncContextManager[Store]:
        return open_postgres(self._conninfo, policy=policy, clock=self.clock)


class TableStage:
    """The ledger in memory, or on Azure Tables."""

    def __init__(self, backend: Backend) -> None:
        self.clock = backend.clock
        self.backend = backend

    async def start(self) -> None:
        await self.backend.start()
        self.world = World(self.backend.ledger, self.clock)

    @asynccontextmanager
    async def webhooks(self, policy: RetryPolicy = RETRIES) -> AsyncIterator[Store]:
        ledger = await self.backend.reopen()
        assert isinstance(ledger, TableLedger)
        yield ledger.webhooks(policy)
        await ledger.close()


async def claims(store: Store) -> list[Claimed]:
    return await store.claim_batch(MANY, LEASE)


async def enqueued(stage: Stage) -> Sequence[Webhook]:
    """All that nobody has claimed yet."""
    async with stage.webhooks() as store:
        return [webhook_of(claimed) for claimed in await claims(store)]
