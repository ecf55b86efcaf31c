"""What the engine needs of a request, whether a client sent it or an operator redrives a job."""

from dataclasses import dataclass
from typing import Protocol

from lucius_contract.canonical import digest
from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.states import JobState
from lucius_orchestrator.domain.aggregate import Aggregate, Engine, JsonObject, Step
from lucius_orchestrator.domain.creation import JobPlan, StepPlan
from lucius_orchestrator.ports.ledger import Limits


class JobRequest(Protocol):
    """A request that was validated, matched with its protocol and routed."""

    @property
    def tenant_id(self) -> str: ...

    @property
    def entry(self) -> str:
        """The idempotency entry, with its prefix."""

    @property
    def content_hash(self) -> str:
        """Equal for two requests exactly when they ask for the same."""

    @property
    def limits(self) -> Limits: ...

    def job_plan(self, job_id: str) -> JobPlan: ...


@dataclass(frozen=True, slots=True)
class Redrive:
    """A failed job as a request for a new one: protocol, payload and route as they were then."""

    failed: Aggregate
    limits: Limits
    idempotency_key: str | None = None
    engine: Engine = Engine.LEDGER

    def __post_init__(self) -> None:
        job = self.failed.job
        if job.state is not JobState.FAILED_FINAL:
            raise ContractError(
                ErrorCode.STATE_CONFLICT,
                f"{job.job_id} is {job.state}; only a job that is FAILED_FINAL can be redriven",
            )

    @property
    def tenant_id(self) -> str:
        return self.failed.job.tenant_id

    @property
    def entry(self) -> str:
        if self.idempotency_key is not None:
            return f"key:{self.idempotency_key}"
        return f"redrive:{self.failed.job.job_id}"

    @property
    def content_hash(self) -> str:
        """Not the failed job's own: a key that stands for its request cannot stand for this."""
        job = self.failed.job
        return digest({"redrive_of": job.job_id, "idempotency_hash": job.idempotency_hash})

    def job_plan(self, job_id: str) -> JobPlan:
        job, first = self.failed.job, self.failed.steps[0]
        return JobPlan(
            job_id=job_id,
            tenant_id=job.tenant_id,
            request_type=job.request_type,
            protocol_id=job.protocol_id,
            protocol_version=job.protocol_version,
            steps=tuple(_plan_of(step) for step in self.failed.steps),
            route=job.route,
            input_ref=job.input_ref,
            output_ref=job.output_ref,
            workspace_ref=_workspace_of(job_id, job.job_id, first.workspace_ref),
            idempotency_hash=job.idempotency_hash,
            correlation_id=job.correlation_id,
            traceparent=job.traceparent,
            idempotency_key=self.idempotency_key,
            doc_id=job.doc_id,
            callback_urls=job.callback_urls,
            redrive_of=job.job_id,
            engine=self.engine,
            sla=job.sla_deadline - job.created_at,
        )


def _plan_of(step: Step) -> StepPlan:
    return StepPlan(step.step_type, step.service, step.payload, step.policy)


def _workspace_of(job_id: str, failed_id: str, workspace: JsonObject) -> JsonObject:
    """The folder beside the failed job's, whose name is the job's id."""
    uri: str = workspace["uri"]
    return {**workspace, "uri": f"{uri.removesuffix(f'{failed_id}/')}{job_id}/"}
