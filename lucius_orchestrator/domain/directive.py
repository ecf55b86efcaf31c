"""The DIRECTIVE of an attempt, as an outbox row."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pydantic_core

from lucius_contract import CONTRACT_VERSION
from lucius_contract.ids import LEASE_BYTES, message_id
from lucius_contract.messages import MessageType
from lucius_contract.routing import directive_topic, partition_key
from lucius_orchestrator.domain.aggregate import Engine, Job, JsonObject, Step
from lucius_orchestrator.domain.decision import DirectiveRow, OutboxKind
from lucius_orchestrator.domain.draft import Draft

ENVELOPE_ALLOWANCE = 4096
"""Bytes kept free in a directive for what the dispatcher adds: callback addresses and tokens."""

_TYPE = MessageType.DIRECTIVE.value
Prior = dict[str, Sequence[JsonObject]]


class DirectiveBody(dict[str, Any]):
    """The members of a DIRECTIVE, which are not changed any more. The ledger and the bus need the
    same text: to encode it twice costs 1 % of a job."""

    __slots__ = ("_text",)

    def text(self) -> str:
        try:
            return self._text
        except AttributeError:
            self._text: str = pydantic_core.to_json(self).decode()
            return self._text


def text_of_body(body: JsonObject) -> str:
    return body.text() if isinstance(body, DirectiveBody) else pydantic_core.to_json(body).decode()


def directive_row(
    draft: Draft, step: Step, attempt_no: int, lease_id: str, lease_expires_at: datetime
) -> DirectiveRow:
    job = draft.job
    return DirectiveRow(
        outbox_id(job.job_id, step.step_id, attempt_no),
        step.step_id,
        attempt_no,
        lease_id,
        step.service,
        directive_topic(step.route.lane),
        partition_key(step.route.routing_key_used),
        message_id(job.job_id, step.step_id, attempt_no, lease_id, _TYPE),
        directive_body(job, step, attempt_no, lease_id, lease_expires_at, _prior(draft, step)),
        step.policy.reply_via,
        draft.now,
        lease_expires_at,
        OutboxKind.DIRECTIVE if job.engine is Engine.LEDGER else OutboxKind.INVOCATION,
    )


def turn_row(draft: Draft, step: Step, attempt_no: int) -> DirectiveRow:
    """Return the place of an attempt in the queue of its service. Nothing is published with it."""
    job, route = draft.job, step.route
    outbox_id = turn_id(job.job_id, step.step_id, attempt_no)
    body = {
        "jobId": job.job_id,
        "stepId": step.step_id,
        "attempt_no": attempt_no,
        "lease_id": "",
        "tenant_id": job.tenant_id,
        "mode": route.mode.value,
        "lane": route.lane,
    }
    return DirectiveRow(
        outbox_id,
        step.step_id,
        attempt_no,
        "",
        step.service,
        directive_topic(route.lane),
        partition_key(route.routing_key_used),
        outbox_id,
        body,
        step.policy.reply_via,
        draft.now,
        job.sla_deadline,
        OutboxKind.TURN,
    )


def turn_id(job_id: str, step_id: str, attempt_no: int) -> str:
    """Return the name of the TURN of an attempt, which has at most one."""
    return f"{outbox_id(job_id, step_id, attempt_no)}.turn"


def outbox_id(job_id: str, step_id: str, attempt_no: int) -> str:
    """Made of what it stands for, so that an attempt cannot have two."""
    return f"{job_id}.{step_id}.{attempt_no}"


def directive_body(
    job: Job,
    step: Step,
    attempt_no: int,
    lease_id: str,
    lease_expires_at: datetime,
    prior_artifacts: Prior,
) -> DirectiveBody:
    body = DirectiveBody(_of_job(job, step))
    body |= _of_attempt(step, attempt_no, lease_id, prior_artifacts)
    body["lease_expires_at"] = on_the_wire(lease_expires_at)
    return body


def _of_job(job: Job, step: Step) -> dict[str, Any]:
    """What the directives of all steps have in common."""
    route = step.route
    return {
        "type": _TYPE,
        "schema_version": CONTRACT_VERSION,
        "jobId": job.job_id,
        "tenant_id": job.tenant_id,
        "protocol_id": job.protocol_id,
        "input_ref": step.input_ref,
        "workspace_ref": step.workspace_ref,
        "output_ref": step.output_ref,
        "mode": route.mode.value,
        "lane": route.lane,
        "routing_key_used": route.routing_key_used,
        "correlation_id": job.correlation_id,
        "traceparent": job.traceparent,
    }


def _of_attempt(
    step: Step, attempt_no: int, lease_id: str, prior_artifacts: Prior
) -> dict[str, Any]:
    policy = step.policy
    return {
        "stepId": step.step_id,
        "step_type": step.step_type,
        "attempt_no": attempt_no,
        "lease_id": lease_id,
        "lease_seconds": policy.lease.total_seconds(),
        "heartbeat_seconds": policy.heartbeat_interval.total_seconds(),
        "payload": step.payload,
        "prior_artifacts": prior_artifacts,
    }


def common_bytes(job: Job, step: Step) -> int:
    """The part of a directive's size that all steps of a job share, with what the dispatcher adds
    and the longest time that can be written."""
    expiry = "2026-01-01T00:00:00.000000Z"
    common = {**_of_job(job, step), "lease_expires_at": expiry}
    return len(pydantic_core.to_json(common)) + ENVELOPE_ALLOWANCE


def own_bytes(step: Step, earlier_types: Iterable[str]) -> int:
    """The rest of its size, before any artifact of earlier steps is in it. The comma that joins the
    two parts takes the place of two braces."""
    nothing_yet: Prior = dict.fromkeys(earlier_types, ())
    lease_id = "0" * 2 * LEASE_BYTES
    own = _of_attempt(step, step.policy.max_attempts, lease_id, nothing_yet)
    return len(pydantic_core.to_json(own)) - 1


def on_the_wire(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _prior(draft: Draft, step: Step) -> Prior:
    """What the steps before produced, this decision's own result included."""
    return {
        earlier.step_type: draft.step_changes.get(earlier.step_index, {}).get(
            "artifacts", earlier.artifacts
        )
        for earlier in draft.aggregate.steps[: step.step_index]
    }
