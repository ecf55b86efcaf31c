"""Replies of one attempt, and where they go."""

from datetime import UTC, datetime
from typing import Any

from lucius_contract.messages import Ack, Heartbeat, Progress, Result, ResultStatus
from lucius_sdk.addresses import ReplyAddress

LEASE = "1ea5e" + "0" * 27
TOKEN = "callback.token-that_nobody~may.see"  # noqa: S105 - opens nothing
TRACE = f"00-{'a' * 32}-{'b' * 16}-01"
AT = datetime(2026, 1, 1, tzinfo=UTC)
ON_THE_BUS = ReplyAddress(lane=3, partition_key="acme")


def identity(**changes: Any) -> dict[str, Any]:
    return {
        "job_id": "job_1",
        "step_id": "step_01",
        "tenant_id": "acme",
        "attempt_no": 2,
        "lease_id": LEASE,
        "timestamp": AT,
        "correlation_id": "c-1",
        "traceparent": TRACE,
    } | changes


def ack(**changes: Any) -> Ack:
    return Ack(**identity(**changes))


def heartbeat(**changes: Any) -> Heartbeat:
    return Heartbeat(progress=Progress(fraction=0.5), **identity(**changes))


def result(**changes: Any) -> Result:
    return Result(**identity(status=ResultStatus.SUCCEEDED) | changes)


def over_http(origin: str, token: str | None = TOKEN) -> ReplyAddress:
    base = f"{origin}/v1/callbacks"
    return ReplyAddress(3, "acme", f"{base}/ack", f"{base}/result", f"{base}/heartbeat", token)
