"""Jobs as they were last read or committed, so that the next event need not read them again."""

from collections import OrderedDict

from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.ports.ledger import Stored


class RecentJobs:
    """Holds up to `limit` bytes, by what their directives weigh; the longest unused go first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._jobs: OrderedDict[str, tuple[Stored, int]] = OrderedDict()

    def get(self, job_id: str) -> Stored | None:
        found = self._jobs.get(job_id)
        return found[0] if found else None

    def put(self, stored: Stored) -> None:
        """Terminal jobs are not kept: little happens to them."""
        job = stored.aggregate.job
        self.drop(job.job_id)
        if job.state in TERMINAL_JOB_STATES:
            return
        weight = sum(step.directive_bytes + step.artifacts_bytes for step in stored.aggregate.steps)
        self._jobs[job.job_id] = (stored, weight)
        self._held += weight
        while self._held > self._limit:
            _, (_, freed) = self._jobs.popitem(last=False)
            self._held -= freed

    def drop(self, job_id: str) -> None:
        found = self._jobs.pop(job_id, None)
        if found is not None:
            self._held -= found[1]
