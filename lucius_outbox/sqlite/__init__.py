"""The outbox on SQLite."""

from lucius_outbox.sqlite.enqueueing import enqueue, enqueue_all
from lucius_outbox.sqlite.rows import OnDead, SqliteRows
from lucius_outbox.sqlite.schema import migrate
from lucius_outbox.sqlite.store import SqliteStore

__all__ = ["OnDead", "SqliteRows", "SqliteStore", "enqueue", "enqueue_all", "migrate"]
