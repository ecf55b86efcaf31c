"""The outbox on PostgreSQL, with psycopg. Needs the extra `postgres`."""

from lucius_outbox.postgres.enqueueing import enqueue, enqueue_all
from lucius_outbox.postgres.rows import OnDead, PostgresRows
from lucius_outbox.postgres.schema import migrate
from lucius_outbox.postgres.store import PostgresStore

__all__ = ["OnDead", "PostgresRows", "PostgresStore", "enqueue", "enqueue_all", "migrate"]
