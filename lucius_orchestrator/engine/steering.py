"""Cancel, pause and resume, wherever the job is driven."""

from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.states import JobState
from lucius_orchestrator.domain.aggregate import Engine, Job
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.ports.invoker import Commander, InvokerRefused, InvokerUnavailable


class Steering:
    """`commander` writes the jobs that Temporal drives; None where this deployment has none."""

    def __init__(self, engine: LedgerEngine, commander: Commander | None = None) -> None:
        self._commander = commander
        self._verbs = {"cancel": engine.cancel, "pause": engine.pause, "resume": engine.resume}

    async def tell(self, job: Job, verb: str, by: str | None) -> JobState:
        """What the job is then."""
        if job.engine is Engine.TEMPORAL:
            return await self._command(job.job_id, verb, by)
        return (await self._verbs[verb](job.job_id, by)).job.state

    async def _command(self, job_id: str, verb: str, by: str | None) -> JobState:
        if self._commander is None:
            raise ContractError(
                ErrorCode.UNAVAILABLE,
                "Temporal drives the job, and nobody here asks it: set LUCIUS_TEMPORAL_ENABLED",
            )
        try:
            following = await self._commander.command(job_id, verb, by)
        except InvokerRefused as refused:
            raise ContractError(refused.code, refused.message) from refused
        except InvokerUnavailable as away:
            reason = "the invoker cannot be reached; try again"
            raise ContractError(ErrorCode.UNAVAILABLE, reason) from away
        return JobState(following["state"])
