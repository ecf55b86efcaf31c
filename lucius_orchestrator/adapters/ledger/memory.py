"""The ledger in memory, for tests: the table ledger on tables that are dictionaries.

It keeps to what tables can do, so what runs on it runs on Azure Tables; it is not a simpler ledger.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from lucius_contract import timeouts
from lucius_orchestrator.adapters.ledger.tables.ledger import TableLedger
from lucius_orchestrator.adapters.ledger.tables.store import MemoryTables

_AT_ONCE = timedelta()


class MemoryLedger(TableLedger):
    """A second one on the same `tables` is another process, or the same one after a restart.

    Repair does not wait: a writer to memory is stopped by nothing but a test.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        dispatch_backoff: timeouts.Delays = timeouts.DISPATCH_BACKOFF,
        tables: MemoryTables | None = None,
        grace: timedelta = _AT_ONCE,
    ) -> None:
        # A handle of its own, so that closing one ledger leaves the others open.
        self.tables = tables.shared(tables.before) if tables else MemoryTables()
        super().__init__(self.tables, clock=clock, dispatch_backoff=dispatch_backoff, grace=grace)
