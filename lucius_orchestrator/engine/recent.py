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
        if job.state in TERMINAL_JOB_STATES:
            self.drop(job.job_id)
            return
        found = self._jobs.pop(job.job_id, None)
        # A job is weighed once; what its steps add later is small beside its directives.
        weight = found[1] if found else _weight(stored)
        self._jobs[job.job_id] = (stored, weight)
        if found is None:
            self._held += weight
            self._make_room()

    def _make_room(self) -> None:
        while self._held > self._limit:
            _, (_, freed) = self._jobs.popitem(last=False)
            self._held -= freed

    def drop(self, job_id: str) -> None:
        found = self._jobs.pop(job_id, None)
        if found is not None:
            self._held -= found[1]


def _weight(stored: Stored) -> int:
    return sum(step.directive_bytes for step in stored.aggregate.steps)
