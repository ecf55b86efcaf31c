"""What is owed after a job has ended, or when it turned out that it will never be.

Each part may be done twice, by several at once. The leash goes last: as long as it is there, the
rest is found again.
"""

from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.ledger.tables.entries import Entries
from lucius_orchestrator.adapters.ledger.tables.indexes import Indexes, listed
from lucius_orchestrator.adapters.ledger.tables.partition import Place
from lucius_orchestrator.adapters.ledger.tables.slots import Slots
from lucius_orchestrator.adapters.ledger.tables.store import Values
from lucius_orchestrator.domain.aggregate import Job


class Ending:
    def __init__(self, indexes: Indexes, entries: Entries, slots: Slots) -> None:
        self._indexes = indexes
        self._entries = entries
        self._slots = slots

    async def finish(self, job: Job, leash: Place) -> None:
        """The job is terminal."""
        await self._slots.give_back(job.tenant_id, job.route.mode, job.job_id)
        await self._indexes.drop(leash)

    async def give_up(self, reach: Values, leash: Place) -> None:
        """A tombstone stands where the job was to be."""
        tenant_id, mode, job_id = reach["tenant_id"], Mode(reach["mode"]), reach["job_id"]
        await self._entries.release(tenant_id, reach["entry"], job_id)
        await self._slots.give_back(tenant_id, mode, job_id)
        await self._indexes.drop(listed(tenant_id, job_id), leash)
