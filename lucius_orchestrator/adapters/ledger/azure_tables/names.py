"""What the tables are called in the account.

Four have names in the settings, the others begin with that of the ledger. How a name is made legal
is said in `lucius_azure.table_names`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from lucius_azure.table_names import physical_name
from lucius_orchestrator.adapters.ledger.tables import entries, indexes, partition, slots

_NAMED_AFTER_THE_LEDGER = (
    indexes.PENDING,
    indexes.TIMERS,
    indexes.STATES,
    indexes.ENDED,
    indexes.LETTERS,
    indexes.WEBHOOKS,
    partition.GRAVES,
)


class TableNames(NamedTuple):
    """As the settings give them."""

    ledger: str = "lucius_ledger"
    idempotency: str = "job-idempotency"
    job_index: str = "job-index"
    in_flight: str = "job-inflight"

    def physical(self) -> Mapping[str, str]:
        """By what the table ledger calls them. `ValueError` if a name is not legal, or if two
        tables would have the same."""
        ledger = physical_name(self.ledger)
        named = {
            partition.JOBS: ledger,
            entries.TABLE: physical_name(self.idempotency),
            indexes.JOBLIST: physical_name(self.job_index),
            slots.TABLE: physical_name(self.in_flight),
            **{name: physical_name(ledger + name) for name in _NAMED_AFTER_THE_LEDGER},
        }
        if len(set(named.values())) < len(named):
            raise ValueError("two tables would have the same name; give each its own")
        return MappingProxyType(named)
