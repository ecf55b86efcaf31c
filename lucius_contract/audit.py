"""What a job's audit trail is made of."""

from enum import StrEnum


class EventType(StrEnum):
    JOB_STATE_CHANGED = "JOB_STATE_CHANGED"
    STEP_STATE_CHANGED = "STEP_STATE_CHANGED"
    REPLY_IGNORED = "REPLY_IGNORED"
    OUTBOX_RECORDED = "OUTBOX_RECORDED"
    DISPATCH_WOKEN = "DISPATCH_WOKEN"
    WORKFLOW_RESTARTED = "WORKFLOW_RESTARTED"
    REFUSED = "REFUSED"


class DeadLetterKind(StrEnum):
    JOB = "JOB"
    STEP = "STEP"
    OUTBOX = "OUTBOX"
    REPLY = "REPLY"


class Verdict(StrEnum):
    """What became of a reply."""

    APPLIED = "APPLIED"
    DUPLICATE = "DUPLICATE"
    STALE_ATTEMPT = "STALE_ATTEMPT"
    RESULT_CONFLICT = "RESULT_CONFLICT"


VERDICT_HTTP_STATUS: dict[Verdict, int] = {
    Verdict.APPLIED: 200,
    Verdict.DUPLICATE: 200,
    Verdict.STALE_ATTEMPT: 409,
    Verdict.RESULT_CONFLICT: 409,
}
