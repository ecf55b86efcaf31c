"""A new job: everything that its rows need is resolved here and not looked up again."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from lucius_contract import timeouts
from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_contract.ids import step_id
from lucius_contract.messages import DIRECTIVE_LIMIT
from lucius_contract.routing import Route
from lucius_orchestrator.domain.aggregate import (
    Aggregate,
    Engine,
    Job,
    JsonObject,
    Step,
    StepPolicy,
    evolve,
)
from lucius_orchestrator.domain.directive import common_bytes, own_bytes


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step of the protocol, with the payload that the request gives it."""

    step_type: str
    service: str
    payload: JsonObject
    policy: StepPolicy = field(default_factory=StepPolicy)


class JobPlan(NamedTuple):
    """A request that was validated, matched with its protocol and routed."""

    job_id: str
    tenant_id: str
    request_type: str
    protocol_id: str
    protocol_version: str
    steps: tuple[StepPlan, ...]
    route: Route
    input_ref: JsonObject
    output_ref: JsonObject
    workspace_ref: JsonObject
    idempotency_hash: str
    correlation_id: str
    traceparent: str
    idempotency_key: str | None = None
    doc_id: str | None = None
    callback_urls: tuple[str, ...] = ()
    redrive_of: str | None = None
    engine: Engine = Engine.LEDGER
    sla: timedelta = timeouts.JOB_SLA


def new_job(plan: JobPlan, now: datetime) -> Aggregate:
    """The rows of a QUEUED job with PENDING steps; the event `Submitted` sets it going."""
    job = Job(
        job_id=plan.job_id,
        tenant_id=plan.tenant_id,
        tenant_bucket=f"{plan.tenant_id}#{now:%Y%m}",
        request_type=plan.request_type,
        protocol_id=plan.protocol_id,
        protocol_version=plan.protocol_version,
        engine=plan.engine,
        route=plan.route,
        input_ref=plan.input_ref,
        output_ref=plan.output_ref,
        idempotency_hash=plan.idempotency_hash,
        idempotency_key=plan.idempotency_key,
        correlation_id=plan.correlation_id,
        traceparent=plan.traceparent,
        sla_deadline=now + plan.sla,
        current_step_id=step_id(0),
        doc_id=plan.doc_id,
        callback_urls=plan.callback_urls,
        redrive_of=plan.redrive_of,
        created_at=now,
        updated_at=now,
    )
    steps = tuple(_new_step(plan, index, now) for index in range(len(plan.steps)))
    common = common_bytes(job, steps[0])
    return Aggregate(job, tuple(_sized(plan, step, common) for step in steps))


def _new_step(plan: JobPlan, index: int, now: datetime) -> Step:
    step_plan = plan.steps[index]
    return Step(
        step_id=step_id(index),
        step_index=index,
        step_type=step_plan.step_type,
        service=step_plan.service,
        policy=step_plan.policy,
        route=plan.route,
        input_ref=plan.input_ref,
        workspace_ref=plan.workspace_ref,
        output_ref=plan.output_ref,
        payload=step_plan.payload,
        directive_bytes=0,
        created_at=now,
        updated_at=now,
    )


def _sized(plan: JobPlan, step: Step, common: int) -> Step:
    earlier = (other.step_type for other in plan.steps[: step.step_index])
    size = common + own_bytes(step, earlier)
    if size > DIRECTIVE_LIMIT:
        raise ContractError(
            ErrorCode.TOO_LARGE,
            f"the directive of step {step.step_type} would have {size} bytes",
            [Problem("/payload", f"at most {DIRECTIVE_LIMIT} bytes with all refs")],
        )
    return evolve(step, {"directive_bytes": size})
