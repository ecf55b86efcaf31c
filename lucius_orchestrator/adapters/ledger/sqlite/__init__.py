"""The ledger in a SQLite file: the embedded default."""

from lucius_orchestrator.adapters.ledger.sqlite.ledger import SqliteLedger

__all__ = ["SqliteLedger"]
