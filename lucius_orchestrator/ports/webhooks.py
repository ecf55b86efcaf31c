"""What the addresses of a job are told when it ends, as messages of the outbox.

A ledger enqueues them in the commit that ends the job, so that nobody hears of an end that did not
happen and no end goes untold. They outlive the job. These functions never fail: a job must be able
to end whatever its addresses look like.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pydantic_core

from lucius_contract.audit import DeadLetterKind
from lucius_contract.states import JOB_STATUS, JobState
from lucius_orchestrator.domain.aggregate import Job
from lucius_orchestrator.ports.ledger import DeadLetterRow
from lucius_outbox.message import Claimed, Dead, Message
from lucius_outbox.retry import Delays, RetryPolicy

NAMESPACE = "lucius.webhook"
UNDELIVERED = "webhook.UNDELIVERED"
"""The code of the dead letter of a webhook that was given up."""

EVENT_TYPES: dict[JobState, str] = {
    JobState.SUCCEEDED: "job.succeeded",
    JobState.FAILED_FINAL: "job.failed",
    JobState.CANCELLED: "job.cancelled",
}
RETRIES = RetryPolicy(
    max_attempts=10,
    backoff=Delays(
        [
            timedelta(seconds=10),
            timedelta(minutes=1),
            timedelta(minutes=5),
            timedelta(minutes=30),
            timedelta(hours=2),
            timedelta(hours=6),
        ]
    ),
)
"""Ten tries in a little more than a day: a receiver may be away for a night."""

_HOST = re.compile(r"[a-z0-9._:-]{1,253}")
_NO_HOST = "no host"


class Webhook(NamedTuple):
    """One event for one address. `event_id` and `body` are the same however often it is sent."""

    event_id: str
    tenant_id: str
    url: str
    body: bytes


def webhooks_of(job: Job) -> list[Message]:
    """For a job that has just ended: one message for each of its addresses."""
    return [_message(job, position, url) for position, url in enumerate(job.callback_urls)]


def webhook_of(claimed: Claimed) -> Webhook:
    url, body = claimed.payload["url"], claimed.payload["body"]
    tenant_id = pydantic_core.from_json(body)["tenant_id"]
    return Webhook(str(claimed.dedupe_key), tenant_id, url, body.encode())


def dead_letter_of(dead: Dead, at: datetime) -> DeadLetterRow:
    """Of a webhook that was given up."""
    body = pydantic_core.from_json(dead.payload["body"])
    return DeadLetterRow(
        f"webhook.{dead.dedupe_key}",
        DeadLetterKind.OUTBOX,
        body["tenant_id"],
        body["jobId"],
        step_id=None,
        attempt_no=None,
        code=UNDELIVERED,
        message=f"{body['type']} was not delivered: {dead.last_error}",
        first_at=at,
        last_at=at,
    )


def host_of(url: str) -> str:
    """The part of an address that logs and metrics may name; the rest may hold secrets."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return _NO_HOST
    return host if _HOST.fullmatch(host) else _NO_HOST


def _message(job: Job, position: int, url: str) -> Message:
    event_id = f"{job.job_id}.{job.seq}.{position}"
    # As text: its bytes are signed, and PostgreSQL's jsonb takes no NUL character inside it.
    body = pydantic_core.to_json(_body(job, event_id)).decode()
    return Message(
        NAMESPACE,
        host_of(url),
        {"url": url.replace("\0", "%00"), "body": body},
        dedupe_key=event_id,
        not_before=job.completed_at,
    )


def _body(job: Job, event_id: str) -> Mapping[str, Any]:
    error = {"code": job.error_code, "message": job.error_message} if job.error_code else None
    return {
        "event_id": event_id,
        "type": EVENT_TYPES[job.state],
        "jobId": job.job_id,
        "tenant_id": job.tenant_id,
        "state": job.state,
        "status": JOB_STATUS[job.state],
        "final_output": job.final_output,
        "error": error,
        "correlation_id": job.correlation_id,
        "occurred_at": job.completed_at,
    }
