"""Jobs as clients read them: no lease ids, no payloads of steps, no addresses of webhooks."""

from typing import Any

from lucius_contract.routing import Route
from lucius_contract.states import JOB_STATUS, STEP_STATUS
from lucius_orchestrator.api.paths import job_links
from lucius_orchestrator.domain.aggregate import Aggregate, Attempt, Job, Step
from lucius_orchestrator.domain.decision import AuditEvent

View = dict[str, Any]


def job_with_steps(aggregate: Aggregate) -> View:
    return {**job_view(aggregate.job), "steps": [step_view(step) for step in aggregate.steps]}


def job_view(job: Job) -> View:
    return {
        "jobId": job.job_id,
        "tenant_id": job.tenant_id,
        "state": job.state,
        "status": JOB_STATUS[job.state],
        "request_type": job.request_type,
        "protocol_id": job.protocol_id,
        "protocol_version": job.protocol_version,
        "engine": job.engine,
        **route_view(job.route),
        "doc_id": job.doc_id,
        "input_ref": job.input_ref,
        "output_ref": job.output_ref,
        "final_output": job.final_output,
        "error": error_view(job.error_code, job.error_message),
        "current_step_id": job.current_step_id,
        "attempts_total": job.attempts_total,
        "seq": job.seq,
        "idempotency_key": job.idempotency_key,
        "redrive_of": job.redrive_of,
        "correlation_id": job.correlation_id,
        "traceparent": job.traceparent,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
        "completed_at": job.completed_at,
        "sla_deadline": job.sla_deadline,
        "links": job_links(job.job_id),
    }


def step_view(step: Step) -> View:
    return {
        "stepId": step.step_id,
        "step_index": step.step_index,
        "step_type": step.step_type,
        "service": step.service,
        "state": step.state,
        "status": STEP_STATUS[step.state],
        "attempt_no": step.attempt_no,
        "max_attempts": step.policy.max_attempts,
        "unanswered": step.unanswered,
        "lease_expires_at": step.lease_expires_at,
        "next_attempt_at": step.next_attempt_at,
        "progress": step.progress,
        "artifacts": step.artifacts,
        "result_ref": step.result_ref,
        "error": error_view(step.last_error_code, step.last_error_message),
        "created_at": step.created_at,
        "updated_at": step.updated_at,
        "completed_at": step.completed_at,
        "attempts": [attempt_view(attempt) for attempt in step.attempts],
    }


def attempt_view(attempt: Attempt) -> View:
    return {
        "attempt_no": attempt.attempt_no,
        **route_view(attempt.route),
        "dispatched_at": attempt.dispatched_at,
        "sent_at": attempt.sent_at,
        "acknowledged_at": attempt.acknowledged_at,
        "completed_at": attempt.completed_at,
        "outcome": attempt.outcome,
        "ended_by": attempt.ended_by,
        "error": error_view(attempt.error_code, attempt.error_message),
        "ignored_replies": attempt.ignored_replies,
        "unanswered": attempt.unanswered,
    }


def route_view(route: Route) -> View:
    return {
        "mode": route.mode,
        "lane": route.lane,
        "routing_key_used": route.routing_key_used,
        "decision_source": route.decision_source,
        "decision_reason": route.decision_reason,
    }


def event_view(event: AuditEvent) -> View:
    return {
        "seq": event.seq,
        "at": event.at,
        "type": event.type,
        "stepId": event.step_id,
        "attempt_no": event.attempt_no,
        "before": event.source,
        "after": event.target,
        "cause": event.cause,
        "implied": event.implied,
        "detail": event.detail,
        "by": event.by,
    }


def error_view(code: str | None, message: str | None) -> View | None:
    return None if code is None else {"code": code, "message": message or ""}
