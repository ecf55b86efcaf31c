"""The webhooks that commits of the ledger have enqueued, for whoever delivers them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from psycopg_pool import AsyncConnectionPool

from lucius_orchestrator.adapters.ledger.postgres import writes
from lucius_orchestrator.adapters.ledger.postgres.connections import Connection
from lucius_orchestrator.ports.webhooks import NAMESPACE, RETRIES, dead_letter_of
from lucius_outbox.message import Dead
from lucius_outbox.postgres.store import PostgresStore
from lucius_outbox.retry import RetryPolicy


@asynccontextmanager
async def open_webhooks(
    conninfo: str,
    *,
    policy: RetryPolicy = RETRIES,
    clock: Callable[[], datetime] | None = None,
    pool_size: int = 4,
) -> AsyncIterator[PostgresStore]:
    """On the database of a ledger that was opened before, with a pool of its own. A webhook that is
    given up is a dead letter of the ledger in the same transaction."""
    now = clock or _utc_now

    async def bury(transaction: Connection, dead: Dead) -> None:
        await writes.bury(transaction, dead_letter_of(dead, now()))

    pool = AsyncConnectionPool[Connection](
        conninfo, kwargs={"autocommit": True}, min_size=1, max_size=pool_size, open=False
    )
    async with pool:
        yield PostgresStore(pool, NAMESPACE, policy=policy, on_dead=bury, clock=clock)


def _utc_now() -> datetime:
    return datetime.now(UTC)
