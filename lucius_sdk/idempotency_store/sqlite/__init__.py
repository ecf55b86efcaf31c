"""The store on a SQLite file: durable, and shared by the processes of one machine."""

from lucius_sdk.idempotency_store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
