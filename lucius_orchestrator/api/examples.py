"""One example of everything that goes in or out. Tests hold them to the shapes."""

from typing import Any

from lucius_orchestrator.api.artifacts import examples as artifacts

JOB_ID = "job_0197f3c2d1e07000a000000000000001"
LEASE_ID = "9a7c1f0e5b2d4c3a8f6e7d8c9b0a1f2e"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CORRELATION = "corr-123"

Example = dict[str, Any]

_LINKS = {
    "self": f"/v1/jobs/{JOB_ID}",
    "steps": f"/v1/jobs/{JOB_ID}/steps",
    "events": f"/v1/jobs/{JOB_ID}/events",
    "stream": f"/v1/jobs/{JOB_ID}/stream",
}
_ROUTE = {
    "mode": "DEFAULT",
    "lane": 14,
    "routing_key_used": "acme",
    "decision_source": "GLOBAL_CONFIG",
    "decision_reason": "neither request nor tenant names a mode",
}
_REPLY = {
    "schema_version": "1",
    "jobId": JOB_ID,
    "stepId": "step_01",
    "tenant_id": "acme",
    "attempt_no": 1,
    "lease_id": LEASE_ID,
    "timestamp": "2026-01-27T10:00:03Z",
    "correlation_id": CORRELATION,
    "traceparent": TRACE,
}
_ARTIFACT = {
    "name": "output.txt",
    "uri": f"az://workspace/lucius/acme/{JOB_ID}/ocr/1/output.txt",
    "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
    "size": 5,
    "media_type": "text/plain",
}
_ATTEMPT = {
    "attempt_no": 1,
    **_ROUTE,
    "dispatched_at": "2026-01-27T10:00:00Z",
    "sent_at": "2026-01-27T10:00:01Z",
    "acknowledged_at": "2026-01-27T10:00:03Z",
    "completed_at": "2026-01-27T10:00:20Z",
    "outcome": "SUCCEEDED",
    "ended_by": "RESULT_SUCCEEDED",
    "error": None,
    "ignored_replies": 0,
    "unanswered": False,
}
_STEP = {
    "stepId": "step_01",
    "step_index": 0,
    "step_type": "OCR",
    "service": "ocr",
    "state": "SUCCEEDED",
    "status": "SUCCEEDED",
    "attempt_no": 1,
    "max_attempts": 3,
    "unanswered": 0,
    "lease_expires_at": None,
    "next_attempt_at": None,
    "progress": {"fraction": 1.0, "note": "page 3 of 3"},
    "artifacts": [_ARTIFACT],
    "result_ref": {"uri": "az://outbox/invoice.json"},
    "error": None,
    "created_at": "2026-01-27T10:00:00Z",
    "updated_at": "2026-01-27T10:00:20Z",
    "completed_at": "2026-01-27T10:00:20Z",
    "attempts": [_ATTEMPT],
}
_JOB = {
    "jobId": JOB_ID,
    "tenant_id": "acme",
    "state": "SUCCEEDED",
    "status": "SUCCEEDED",
    "request_type": "OCR",
    "protocol_id": "ocr",
    "protocol_version": "1",
    "engine": "ledger",
    **_ROUTE,
    "doc_id": None,
    "input_ref": {"uri": "az://inbox/invoice.pdf"},
    "output_ref": {"uri": "az://outbox/invoice.json"},
    "final_output": "az://outbox/invoice.json",
    "error": None,
    "current_step_id": "step_01",
    "attempts_total": 1,
    "seq": 6,
    "idempotency_key": "invoice-4711",
    "redrive_of": None,
    "correlation_id": CORRELATION,
    "traceparent": TRACE,
    "created_at": "2026-01-27T10:00:00Z",
    "updated_at": "2026-01-27T10:00:20Z",
    "completed_at": "2026-01-27T10:00:20Z",
    "sla_deadline": "2026-01-28T10:00:00Z",
    "links": _LINKS,
}
_EVENT = {
    "seq": 1,
    "at": "2026-01-27T10:00:00Z",
    "type": "JOB_STATE_CHANGED",
    "stepId": None,
    "attempt_no": None,
    "before": "QUEUED",
    "after": "DISPATCHING",
    "cause": "FIRST_DIRECTIVE",
    "implied": False,
    "detail": None,
    "by": None,
}
_LETTER = {
    "id": f"{JOB_ID}.step_01.3.STEP",
    "kind": "STEP",
    "tenant_id": "acme",
    "jobId": JOB_ID,
    "stepId": "step_01",
    "attempt_no": 3,
    "code": "LEASE_EXPIRED",
    "message": "the lease ran out without a RESULT",
    "first_at": "2026-01-27T10:45:00Z",
    "last_at": "2026-01-27T10:45:00Z",
    "redriven_by": None,
}
_SERVICE = {
    "service": "ocr",
    "presence": "PRESENT",
    "heard_at": "2026-01-27T10:00:03Z",
    "waiting": 1200,
    "oldest_waiting_at": "2026-01-27T09:56:00Z",
    "oldest_waiting_seconds": 245.5,
    "unacknowledged": 3,
    "working": 8,
    "window": 12,
    "capacity": 8,
    "instances": 2,
    "rate_per_second": 4.2,
    "has_backlog": True,
    "lanes": [{"lane": 3, "waiting": 200}, {"lane": 14, "waiting": 1000}],
}
_PROTOCOL = {
    "protocol_id": "ocr",
    "version": "1",
    "request_type": "OCR",
    "aliases": [],
    "steps": [
        {
            "step_type": "OCR",
            "service": "ocr",
            "payload_key": "ocr",
            "payload_schema": {"type": "object", "properties": {"dpi": {"type": "integer"}}},
            "ack_timeout_seconds": 30.0,
            "lease_seconds": 900.0,
            "heartbeat_seconds": 300.0,
            "timeout_seconds": 7200.0,
            "max_attempts": 3,
            "backoff_seconds": [60.0, 300.0, 900.0],
            "reply_via": "http",
        }
    ],
}

EXAMPLES: dict[str, Example] = {
    **artifacts.EXAMPLES,
    "Envelope": {
        "tenant_id": "acme",
        "request_type": "OCR",
        "input_ref": {"uri": "az://inbox/invoice.pdf"},
        "output_ref": {"uri": "az://outbox/invoice.json"},
        "payload": {"ocr": {"dpi": 300}},
        "schema_version": "1",
        "idempotency_key": "invoice-4711",
    },
    "Ack": {"type": "ACK", "status": "ACKED", **_REPLY},
    "Result": {
        "type": "RESULT",
        "status": "SUCCEEDED",
        **_REPLY,
        "artifacts": [_ARTIFACT],
        "output_ref": {"uri": "az://outbox/invoice.json"},
    },
    "Heartbeat": {
        "type": "HEARTBEAT",
        **_REPLY,
        "progress": {"fraction": 0.3, "note": "page 1 of 3"},
    },
    "Accepted": {
        "jobId": JOB_ID,
        "state": "DISPATCHING",
        "status": "QUEUED",
        "duplicate": False,
        "links": _LINKS,
    },
    "JobStanding": {
        "jobId": JOB_ID,
        "state": "CANCELLING",
        "status": "IN_PROGRESS",
        "links": _LINKS,
    },
    "JobPage": {"items": [_JOB], "next_cursor": None},
    "JobWithSteps": {**_JOB, "steps": [_STEP]},
    "StepPage": {"items": [_STEP], "next_cursor": None},
    "EventPage": {"items": [_EVENT], "next_cursor": None},
    "DeadLetterPage": {"items": [_LETTER], "next_cursor": None},
    "ProtocolPage": {"items": [_PROTOCOL], "next_cursor": None},
    "ProtocolView": _PROTOCOL,
    "ServicePage": {"items": [_SERVICE], "next_cursor": None},
    "ReplyVerdict": {
        "verdict": "APPLIED",
        "lease_expires_at": "2026-01-27T10:15:03Z",
        "cancel_requested": False,
    },
    "Liveness": {"status": "live"},
    "Readiness": {
        "status": "ready",
        "checks": [{"name": "ledger", "ok": True, "detail": "answers"}],
    },
}
"""By the name of the schema."""

TEXTS: dict[str, str] = {
    "streamEvents": f'id: 1\nevent: event\ndata: {{"seq": 1, "jobId": "{JOB_ID}"}}\n\n',
    "metrics": "lucius_jobs_submitted_total 1.0\n",
    **artifacts.TEXTS,
}
"""Bodies that are not JSON, by operation."""
