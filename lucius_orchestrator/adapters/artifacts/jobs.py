"""Jobs as artifacts ask about them."""

from lucius_artifacts.errors import Unavailable
from lucius_artifacts.ports.jobs import Ended, Running, Standing, Unknown
from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.ports.ledger import Ledger, LedgerError


class LedgerJobs:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def standing(self, job_id: str) -> Standing:
        try:
            stored = await self._ledger.load(job_id)
        except LedgerError as error:
            raise Unavailable(f"the ledger cannot be asked about {job_id}: {error}") from error
        if stored is None:
            return Unknown()
        job = stored.aggregate.job
        if job.state not in TERMINAL_JOB_STATES:
            return Running()
        return Ended(job.completed_at or job.updated_at)
