"""The creation of a job whose input must be held.

The input is held for the id that is planned, before there is a job, so that nothing can delete it
in between. Whatever then becomes of the request, the hold is the job's that exists, or goes.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from lucius_contract.errors import ContractError
from lucius_contract.states import TERMINAL_JOB_STATES
from lucius_orchestrator.domain.aggregate import Job
from lucius_orchestrator.engine.requests import JobRequest
from lucius_orchestrator.ports.inputs import HELD, Inputs
from lucius_orchestrator.ports.ledger import Ledger, LedgerError, Stored

Create = Callable[[], Awaitable[Stored | None]]


def is_held(job: Job) -> bool:
    uri: str = job.input_ref["uri"]
    return uri.startswith(HELD)


class HoldingCreation:
    def __init__(self, inputs: Inputs, ledger: Ledger) -> None:
        self._inputs = inputs
        self._ledger = ledger

    async def create(self, planned: Job, request: JobRequest, create: Create) -> Stored | None:
        """None: the request made a job before. Of such a request it does not matter whether its
        input can still be read."""
        is_new = await self._ledger.find(request.tenant_id, request.entry) is None
        if is_new:
            await self._hold(planned)
        try:
            created = await create()
        except ContractError:
            if is_new:
                await self._give_up(planned, request)
            raise
        job = await self._earlier(request) if created is None else created.aggregate.job
        if job is not None and (job.job_id != planned.job_id or not is_new):
            await self._hold_what_exists(job)
        if is_new and (job is None or job.job_id != planned.job_id):
            await self._inputs.release(planned.job_id)
        return created

    async def _give_up(self, planned: Job, request: JobRequest) -> None:
        """Whoever meets a creation that was begun goes on with it, under the same id, also when the
        one who began it was refused: its hold must not go with ours."""
        await self._inputs.release(planned.job_id)
        with suppress(LedgerError):
            job = await self._earlier(request)
            if job is not None:
                await self._hold_what_exists(job)

    async def _hold_what_exists(self, job: Job) -> None:
        """Whoever planned the job may have died before it was held. It exists now: what cannot be
        held for it is no reason to refuse it."""
        if job.state not in TERMINAL_JOB_STATES:
            with suppress(ContractError):
                await self._hold(job)

    async def _hold(self, job: Job) -> None:
        await self._inputs.hold(job.job_id, job.tenant_id, job.input_ref["uri"])

    async def _earlier(self, request: JobRequest) -> Job | None:
        found = await self._ledger.find(request.tenant_id, request.entry)
        stored = await self._ledger.load(found.job_id) if found else None
        return stored.aggregate.job if stored else None
