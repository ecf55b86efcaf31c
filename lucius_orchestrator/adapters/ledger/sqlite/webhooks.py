"""The webhooks that commits of the ledger have enqueued, for whoever delivers them."""

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from os import PathLike

from lucius_orchestrator.adapters.ledger.sqlite import writes
from lucius_orchestrator.ports.webhooks import NAMESPACE, RETRIES, dead_letter_of
from lucius_outbox.message import Dead
from lucius_outbox.retry import RetryPolicy
from lucius_outbox.sqlite.store import SqliteStore


def open_webhooks(
    path: str | PathLike[str],
    *,
    policy: RetryPolicy = RETRIES,
    clock: Callable[[], datetime] | None = None,
    patience: timedelta = timedelta(seconds=10),
) -> SqliteStore:
    """To be used as `async with`, on the file of a ledger that was opened before. A webhook that is
    given up is a dead letter of the ledger in the same transaction."""
    now = clock or _utc_now

    def bury(transaction: sqlite3.Connection, dead: Dead) -> None:
        writes.bury(transaction, dead_letter_of(dead, now()))

    return SqliteStore(
        path, NAMESPACE, policy=policy, on_dead=bury, clock=clock, busy_timeout=patience
    )


def _utc_now() -> datetime:
    return datetime.now(UTC)
