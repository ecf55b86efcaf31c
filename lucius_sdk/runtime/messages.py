"""What a service says about a directive: ACK, HEARTBEAT, RESULT."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lucius_contract.documents import Artifact, Ref
from lucius_contract.messages import (
    Ack,
    Capacity,
    Directive,
    Heartbeat,
    Progress,
    Result,
    ResultStatus,
)
from lucius_contract.messages import StepError as ErrorDocument
from lucius_sdk.error_model import Failure


def ack(directive: Directive, now: datetime, traceparent: str, capacity: Capacity) -> Ack:
    return Ack(**_identity(directive, now, traceparent), capacity=capacity)


def heartbeat(
    directive: Directive,
    now: datetime,
    traceparent: str,
    capacity: Capacity,
    progress: Progress | None,
) -> Heartbeat:
    identity = _identity(directive, now, traceparent)
    return Heartbeat(**identity, capacity=capacity, progress=progress)


def succeeded(
    directive: Directive,
    now: datetime,
    traceparent: str,
    artifacts: Sequence[Artifact],
    published: str | None,
) -> Result:
    return Result(
        **_identity(directive, now, traceparent),
        status=ResultStatus.SUCCEEDED,
        artifacts=list(artifacts),
        output_ref=None if published is None else Ref(uri=published),
    )


def failed(directive: Directive, now: datetime, traceparent: str, failure: Failure) -> Result:
    return Result(
        **_identity(directive, now, traceparent),
        status=failure.status,
        failure_class=failure.failure_class,
        error=ErrorDocument(code=failure.code, message=failure.message),
    )


def _identity(directive: Directive, now: datetime, traceparent: str) -> dict[str, Any]:
    return {
        "job_id": directive.job_id,
        "step_id": directive.step_id,
        "tenant_id": directive.tenant_id,
        "attempt_no": directive.attempt_no,
        "lease_id": directive.lease_id,
        "timestamp": now,
        "correlation_id": directive.correlation_id,
        "traceparent": traceparent,
    }
