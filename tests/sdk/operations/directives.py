"""A directive, as the operations of a service see it."""

from typing import Any

from lucius_contract.messages import Directive

LEASE = "0123456789abcdef0123456789abcdef"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


def directive(**changes: Any) -> Directive:
    return Directive.model_validate(
        {
            "type": "DIRECTIVE",
            "jobId": "job_1",
            "stepId": "step_01",
            "tenant_id": "acme",
            "attempt_no": 2,
            "lease_id": LEASE,
            "protocol_id": "p",
            "step_type": "OCR",
            "input_ref": {"uri": "file:///in/a.pdf"},
            "workspace_ref": {"uri": "file:///work/lucius/acme/job_1/"},
            "output_ref": {"uri": "file:///out/a.json"},
            "payload": {},
            "mode": "DEFAULT",
            "lane": 3,
            "routing_key_used": "acme",
            "correlation_id": "c-1",
            "traceparent": f"00-{TRACE}-{PARENT}-01",
            "lease_expires_at": "2026-01-01T00:15:00Z",
            "lease_seconds": 900,
            "heartbeat_seconds": 300,
        }
        | changes
    )
