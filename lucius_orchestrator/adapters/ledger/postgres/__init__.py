"""The ledger on PostgreSQL, with psycopg. Needs the extra `postgres`."""

from lucius_orchestrator.adapters.ledger.postgres.ledger import PostgresLedger

__all__ = ["PostgresLedger"]
